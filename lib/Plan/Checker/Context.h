//===- Context.h - What all parts of the checker share ----------*- C++ -*-===//
//
// The parts run in order: structure first, and only when it found nothing the
// others, which may then index and add without looking.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLAN_CHECKER_CONTEXT_H
#define GTP_LIB_PLAN_CHECKER_CONTEXT_H

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/KernelRegistry.h"

#include <set>

namespace gtp::plan::check {

/// Axes of the mesh as bits. Axes of degree 1 are never set.
using AxisMask = uint32_t;

constexpr int kMaxAxes = 32;
constexpr int kMaxStreams = 16;
constexpr int kMaxMembers = 1024;
/// Together they keep sums of sizes below 2^63.
constexpr uint64_t kMaxMemory = uint64_t(1) << 44;
constexpr int kMaxBuffers = 1 << 19;

/// One operand of an operation, in bytes of its buffer, over all iterations of
/// its region and all ranks.
struct Touch {
  const pb::Operand *operand = nullptr;
  const OperandSpec *spec = nullptr; ///< null unless of a kernel
  uint64_t begin = 0;
  uint64_t end = 0;
  bool reads = false;
  bool writes = false;

  uint32_t buffer() const { return operand->buffer(); }
};

struct OperationInfo {
  const pb::Operation *operation = nullptr;
  const KernelSpec *kernel = nullptr; ///< of a kernel
  /// What it, or the part of a fused kernel, is about; 0: none.
  uint32_t parameterPlus1 = 0;
  /// Operands in their order; a collective's sources, then its destinations.
  std::vector<Touch> touches;
  /// Transient buffers whose life begins here: it is the first to touch them.
  struct Acquired {
    uint32_t buffer;
    bool everyIteration;
  };
  std::vector<Acquired> acquired;
  /// Of a fused kernel: its parts, by whose touches it is interpreted. Order
  /// and memory know only its own.
  std::vector<OperationInfo> parts;
};

/// Whether an access hands what a transient buffer holds on from one iteration
/// of a repeated region to another.
inline bool isCarried(const Touch &touch, const pb::Operation &operation) {
  return touch.operand->accumulate() ||
         touch.operand->iteration_stride() != 0 ||
         operation.when() != pb::Operation::ALWAYS;
}

struct RegionInfo {
  const pb::Region *region = nullptr;
  uint32_t index = 0;
  uint32_t program = 0;
  std::vector<OperationInfo> operations;

  OperationPlace place(size_t operation) const {
    return {index, static_cast<uint32_t>(operation), program};
  }
};

/// Iterations of a region that differ in which operations run.
enum class Variant { Only, First, Middle, Last };

/// Whether an operation runs in iterations of a variant.
bool runsIn(pb::Operation::When when, Variant variant);

/// The variants of a region, in order; one when no operation is conditional.
std::vector<Variant> orderVariants(const pb::Region &region);

class Context {
public:
  Context(const pb::Plan &plan, CheckReport &report)
      : plan(plan), report(report) {}

  const pb::Plan &plan;
  CheckReport &report;

  /// The program that is being checked. Programs never run together, and each
  /// leaves what persists as it must find it, so each is checked by itself.
  const pb::Program &program() const {
    return plan.programs(static_cast<int>(programIndex));
  }
  uint32_t programIndex = 0;
  /// Whether it changes weights and states: the others only read them.
  bool trains() const { return program().kind() == pb::Program::TRAIN_STEP; }
  const pb::Buffer &buffer(uint32_t index) const {
    return plan.buffers(static_cast<int>(index));
  }
  const pb::Parameter &parameter(uint32_t index) const {
    return plan.parameters(static_cast<int>(index));
  }

  /// Of the program that is being checked, filled by `deriveAccesses`.
  std::vector<RegionInfo> regions;

  /// Records a finding; equal ones once.
  void fail(const std::string &rule, const std::string &message) {
    record({rule, message});
  }
  /// Records a finding about an operation: `message` goes on behind its place.
  void failAt(const std::string &rule, OperationPlace operation,
              const std::string &message,
              std::optional<OperationPlace> other = std::nullopt) {
    record({rule, where(operation) + message, operation, other});
  }
  bool full() const { return report.findings.size() >= kMaxFindings; }

  /// Counts work that can be more than linear in the plan's size; false, with a
  /// finding, once it is more than any sensible plan needs.
  bool spend(uint64_t units);

  /// String by index, which may be out of range.
  std::string string(uint64_t index) const;
  /// "buffer 3 'layers.0.w'".
  std::string bufferText(uint32_t index) const;
  std::string parameterText(uint32_t index) const;
  /// "region 1 (BODY), operation 12 (layers.0.mlp.wgrad: linear_wgrad)"; of
  /// another program than the first, "EVAL, region 1 ...".
  std::string where(OperationPlace place) const;
  std::string axesText(AxisMask mask) const;
  /// "EVAL: " before what is wrong in another program than the first.
  std::string programText() const {
    return programIndex == 0 ? ""
                             : pb::Program::Kind_Name(program().kind()) + ": ";
  }

  /// Axes of degree above 1 among `axes`.
  template <typename List>
  AxisMask maskOf(const List &axes) const {
    AxisMask mask = 0;
    for (uint32_t axis : axes)
      if (plan.mesh().axes(static_cast<int>(axis)).degree() > 1)
        mask |= AxisMask(1) << axis;
    return mask;
  }
  AxisMask communicatorMask(uint32_t communicator) const {
    return maskOf(plan.communicators(static_cast<int>(communicator)).axes());
  }
  /// Axes that cut the tokens of a microbatch.
  AxisMask tokenAxes() const;
  /// Axes that cut the shards of a parameter.
  AxisMask storageAxes(uint32_t parameter) const;

private:
  void record(Finding finding);

  std::set<std::string> known;
  uint64_t work = 0;
};

/// Whether the program's input of that name has a piece for each microbatch.
bool isBatchInput(std::string_view name);

/// Rules `structure` and `unsupported`; also `alias`. Fills nothing.
void checkStructure(Context &context);
/// Fills `Context::regions`, after `checkStructure` found nothing.
void deriveAccesses(Context &context);
/// Rule `alias`: operands of one operation that overlap.
void checkAliases(Context &context);
/// Rules `race`, `collective-order` and `collective-ctas`.
void checkOrder(Context &context);
/// Rule `read-only`: what persists, in programs that do not train.
void checkReadOnly(Context &context);
/// Counts `CheckReport::liveBytes` and `gatheredBytes` of the program.
void countLive(Context &context);
/// Rules `peak` and `budget`, once all programs are counted.
void checkMemory(Context &context);
/// Rules `undefined-read`, `weight-version`, `exactly-once`, `partial`, `pad`,
/// `role`.
void checkValues(Context &context);

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_CONTEXT_H
