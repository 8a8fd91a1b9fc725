//===- Interpreter.h - Runs a plan on abstract values -----------*- C++ -*-===//
//
// Executes the operations in issue order on what buffers hold instead of
// numbers. Issue order is one execution that the plan allows, and without a
// race every execution reads the same, so it stands for all. All ranks hold the
// same abstract values: a shard is "this rank's shard".
//
// Of a repeated body it runs the first iteration, middle ones until the state
// at their end repeats (then all further ones are alike), and the last.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLAN_CHECKER_INTERPRETER_H
#define GTP_LIB_PLAN_CHECKER_INTERPRETER_H

#include "Contents.h"
#include "Context.h"
#include "Cotangents.h"
#include "Gradients.h"

#include <map>

namespace gtp::plan::check {

class Interpreter {
public:
  explicit Interpreter(Context &context);
  void run();

private:
  // Interpreter.cpp: control and memory.
  void runRegion(const RegionInfo &region);
  void runIteration(const RegionInfo &region, Variant variant);
  void endIteration(bool first);
  void endBody(bool only);
  void execute(size_t index);
  void finish();
  uint64_t fingerprint() const;

  void take(uint32_t buffer);
  /// What the touch sees; reports bytes that are not defined.
  Read read(const Touch &touch);
  void write(const Touch &touch, const Tag &tag);
  /// `valid` bytes of the value from its start, zeros behind them.
  void writeValue(const Touch &touch, const Tag &tag, uint64_t valid);
  void fail(const char *rule, const std::string &message);

  // KernelValues.cpp
  void kernel(const OperationInfo &info);
  void compute(const OperationInfo &info);
  void merge(const OperationInfo &info);
  void mergeGradients(const OperationInfo &info,
                      const std::vector<Read> &reads);
  void checkWeight(uint32_t parameter, const Touch &touch, const Read &read);
  void produceGradient(uint32_t parameter, const Touch &touch);
  Tag resultTag(const KernelSpec &spec, uint64_t id, const Read *squared);
  AxisMask keepFirstAxes(const OperationInfo &info) const;

  // CollectiveValues.cpp
  void collective(const OperationInfo &info);
  void allGather(const Touch &source, const Touch &destination);
  void reduce(const Touch &source, const Touch &destination);
  void scatterGradient(const Read &value, const Touch &source,
                       const Touch &destination);
  void copy(const OperationInfo &info);
  void slice(const Touch &source, const Touch &destination);
  void writeReduced(const Touch &destination, Tag tag, uint64_t valid);

  // OwnPieces.cpp
  struct OwnPiece {
    const pb::Operand *destination;
    Read value; ///< of what was copied
  };
  /// Of a copy whose destination depends on the rank.
  void putOwnPiece(const Touch &source, const Touch &destination);
  /// What such a copy has put where a gather reads it in place.
  Read takeOwnPiece(const Touch &source);
  /// Null where none has.
  const OwnPiece *findOwnPiece(const Touch &source) const;

  // SumValues.cpp
  /// A read of the step's data is of one microbatch an iteration, or of all.
  void checkMicrobatch(const Touch &touch);
  /// What a kernel other than a linear one reads is a whole sum.
  void checkWholeSum(const Read &read, const std::string &operand);
  void checkSquaredNorm(const Read &read, const std::string &operand);
  /// Outputs that are sums have each term once, of every microbatch.
  void checkSumOutput(uint32_t buffer, const Read &read);
  /// Parts of the square of a parameter's gradient.
  uint32_t squareOf(uint32_t parameter);
  /// The union of two sums' parts; `sum` says what is added, for the message.
  uint32_t uniteSums(uint32_t a, uint32_t b);

  // UpdateValues.cpp
  void update(const OperationInfo &info);
  /// Whether the read is the parameter's gradient, complete and reduced;
  /// otherwise reports what it lacks. `what` is the subject of the message,
  /// behind the place of the operation being executed if that is at fault.
  void expectWholeGradient(uint32_t parameter, const Read &read,
                           const std::string &what, bool byOperation);
  void checkGradientBuffers();
  void checkEnd();

  std::string describe(const Read &read) const;
  uint64_t logicalBytes(uint32_t parameter, pb::DType type) const;
  uint64_t shardBytes(uint32_t parameter, pb::DType type) const;
  uint64_t gatheredBytes(uint32_t parameter, pb::DType type) const;

  struct BufferState {
    Contents contents;
    bool held = false; ///< nothing else was written to its bytes since
    int64_t lostTo = -1;
  };
  struct ParameterState {
    bool updated = false;
    /// Identities of the values that its forward uses read.
    std::vector<uint64_t> forwardUses;
    uint64_t logical = 0; ///< elements
    uint64_t shard = 0;
    uint64_t gathered = 0;
    AxisMask storage = 0;
  };

  Context &c;
  std::vector<BufferState> buffers;
  std::vector<ParameterState> parameters;
  /// Buffers that hold their bytes, by memory and offset.
  std::vector<std::map<uint64_t, uint32_t>> held;
  PartTable parts;
  /// All that copies have put so far.
  std::vector<OwnPiece> ownPieces;
  /// Identity of the use that a gradient kernel last contributed for, or of the
  /// terms that a kernel summed.
  std::map<uint64_t, uint64_t> contributedUses;
  Cotangents cotangents;
  /// What the first update scaled its gradient by.
  std::optional<uint64_t> commonScale;
  bool makesScale = false; ///< a kernel wrote the factor of every gradient
  /// Buffers of inputs with one piece a microbatch.
  std::vector<bool> isBatchInput;
  AxisMask tokenAxes;

  // The operation being executed.
  const RegionInfo *region = nullptr;
  Variant variant = Variant::Only;
  size_t operation = 0;
  uint64_t firstOperation = 0; ///< number of the region's first in the program
  bool firstIteration() const {
    return variant == Variant::Only || variant == Variant::First;
  }
  uint64_t operationNumber() const { return firstOperation + operation; }
};

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_INTERPRETER_H
