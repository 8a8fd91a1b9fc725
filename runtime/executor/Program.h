//===- Program.h - A plan as a backend walks it ---------------------------===//
//
// Decoded once and never changed; all ranks share it. Addresses are offsets in
// the arena, to which a rank adds its base.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_EXECUTOR_PROGRAM_H
#define GTP_RUNTIME_EXECUTOR_PROGRAM_H

#include "CallSite.h"
#include "CollectiveSpec.h"
#include "Ranks.h"

#include <string>
#include <utility>
#include <vector>

namespace gtp::rt {

/// One operand of an operation.
struct Place {
  uint32_t buffer = 0;
  uint64_t offset = 0; ///< in the arena, for coordinates and iteration 0
  uint64_t iterationStride = 0;
  /// (axis, bytes a unit of the coordinate)
  std::vector<std::pair<uint32_t, uint64_t>> rankStrides;
  Shape shape;
  bool accumulate = false;
  bool reads = false;
  bool writes = false;
  /// What it holds before and after means nothing.
  bool scratch = false;
};

/// Bytes that no longer hold anything when an operation starts.
struct Poison {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool everyIteration = false;
};

struct Operation {
  uint32_t index = 0; ///< in the plan's region
  uint32_t stream = 0;
  uint32_t source = 0; ///< string
  plan::pb::Operation::When when = plan::pb::Operation::ALWAYS;
  std::vector<uint32_t> waits; ///< events of other streams
  uint32_t eventPlus1 = 0;
  /// Of a collective: sources, then as many destinations; then scratch, if its
  /// transport needs any.
  std::vector<Place> places;
  std::vector<Poison> poisons; ///< empty unless a backend fills it
  /// Empty for a collective.
  KernelBody body;
  CollectiveSpec collective;
  uint32_t communicator = 0;
  /// A copy that only serves a gather behind it: of the rank's own shard to its
  /// place there.
  bool putsOwnPiece = false;

  bool isCollective() const { return !body; }
  bool runsIn(uint64_t iteration, uint64_t repeat) const;
};

struct Region {
  plan::pb::Region::Kind kind = plan::pb::Region::ONCE;
  uint64_t repeat = 1;
  uint32_t events = 0;
  std::vector<Operation> operations;
  /// Indices into `operations`, a list a stream.
  std::vector<std::vector<uint32_t>> streams;
};

struct Program {
  std::vector<Region> regions;
};

/// The whole plan.
struct Code {
  uint64_t ranks = 1;
  uint64_t arenaBytes = 0;
  uint64_t arenaAlignment = 0;
  struct Buffer {
    uint64_t offset, bytes;
  };
  std::vector<Buffer> buffers;
  std::vector<Groups> communicators;
  std::vector<Program> programs;
  /// Streams that have operations, in order.
  std::vector<uint32_t> streams;
  size_t mostPlaces = 0;
};

/// What a backend is to `decode`: what it can run, and the bodies it makes.
class Target {
public:
  virtual ~Target() = default;
  /// "the host backend", for messages.
  virtual const char *name() const = 0;
  /// Fails when `ranks` arenas of `bytes` do not fit what the backend has.
  virtual Status checkMemory(uint64_t ranks, uint64_t bytes) = 0;
  virtual StatusOr<KernelBody> kernel(const CallSite &site) = 0;
  /// Copies operand 0 to operand 1, of the same rows, columns and type.
  virtual KernelBody copy(const Shape &from, const Shape &to) = 0;
  /// Sets the bytes of operand 0.
  virtual KernelBody fill(uint64_t bytes, uint8_t value) = 0;
};

/// Fails when the plan is damaged or needs what `target` does not have; names
/// the operation.
StatusOr<Code> decode(const plan::pb::Plan &plan, Target &target);

/// Where every reduced gradient of a program is whole: its first UPDATE region,
/// which must follow every BODY region.
StatusOr<uint32_t> updateRegion(const Code &code, uint32_t program);

/// "program 0, region 1, operation 12 (layers.0.mlp.wgrad)".
std::string describePlace(const plan::pb::Plan &plan, uint64_t program,
                          uint64_t region, uint32_t operation);

} // namespace gtp::rt

#endif // GTP_RUNTIME_EXECUTOR_PROGRAM_H
