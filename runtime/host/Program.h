//===- Program.h - A plan as the host's workers walk it -------------------===//
//
// Decoded once and never changed; all ranks share it. Addresses are offsets in
// the arena, to which a rank adds its base.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_PROGRAM_H
#define GTP_RUNTIME_HOST_PROGRAM_H

#include "Collectives.h"
#include "Kernel.h"
#include "Ranks.h"

#include <utility>

namespace gtp::rt::host {

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
  /// Of a collective: sources, then as many destinations.
  std::vector<Place> places;
  std::vector<Poison> poisons;
  /// Empty for a collective.
  KernelBody body;
  CollectiveSpec collective;
  uint32_t communicator = 0;

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
  KernelTables tables;
};

/// Fails when the plan is damaged or needs what the host does not have; names
/// the operation.
StatusOr<Code> decode(const plan::pb::Plan &plan);

/// Finds, for every TRANSIENT buffer, the operation that acquires it: the first
/// of the program that touches it, provided the plan orders the others after
/// it.
void placePoison(const plan::pb::Plan &plan, Program &program);

/// "program 0, region 1, operation 12 (layers.0.mlp.wgrad)".
std::string describePlace(const plan::pb::Plan &plan, uint64_t program,
                          uint64_t region, uint32_t operation);

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_PROGRAM_H
