//===- Memory.h - Addresses that are sound under happens-before -----------===//
//
// Buffers of a step are given offsets in one arena. Two buffers share a byte
// only if all accesses of one happen before all accesses of the other in the
// order that exists already: packing never adds an edge.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLANNING_MEMORY_H
#define GTP_PLANNING_MEMORY_H

#include "gtp/Planning/OrderGraph.h"
#include "gtp/Support/RoundUp.h"

namespace gtp::planning {

inline constexpr uint64_t kBufferAlignment = 256;

/// `bytes` rounded up to whole alignment units.
constexpr uint64_t alignBytes(uint64_t bytes) {
  return roundUp(bytes, kBufferAlignment);
}

/// A piece of the step between two joins of all streams.
struct MemoryRegion {
  OrderGraph order;
  /// Runs more than once; each iteration ends in a join. A buffer that an
  /// iteration leaves to the next, or to another region, holds its memory for
  /// the whole region.
  bool repeated = false;
};

/// The operations of one region that touch a buffer, ascending.
struct MemoryAccess {
  uint32_t region;
  std::vector<OpIndex> ops;
};

struct MemoryBuffer {
  uint64_t size = 0; ///< bytes, unrounded; 0 takes no memory
  /// Ascending by region, each region at most once, at least one operation
  /// each.
  std::vector<MemoryAccess> accesses;
  /// Lives across steps: gets a fixed low offset, in the order of the problem,
  /// and shares memory with nothing.
  bool persistent = false;
  /// Defined before the step starts (inputs).
  bool liveIn = false;
  /// Read after the step ends (outputs).
  bool liveOut = false;
  /// An iteration of a repeated region reads what an earlier one wrote.
  bool carried = false;
  std::string name; ///< for messages; no spaces
};

struct MemoryProblem {
  struct Solution {
    std::vector<uint64_t> offsets; ///< one a buffer
    uint64_t arenaBytes = 0;       ///< persistent buffers and the step
    uint64_t maxLiveBytes = 0;
    /// Buffers that are live together and weigh maxLiveBytes, persistent ones
    /// included.
    std::vector<uint32_t> maxLiveSet;
  };

  /// Sizes are sane, accesses exist, flags do not contradict each other.
  Status check() const;
  /// Best effort: fills all of Solution. Never fails on a problem that passes
  /// check().
  Solution solve() const;
  /// From first principles: alignment, bounds, and for each pair that shares a
  /// byte, that all accesses of one happen before all of the other; that the
  /// max live set is one and no larger than the arena.
  Status verify(const Solution &solution) const;

  /// Aligned bytes of persistent buffers.
  uint64_t persistentBytes() const;
  /// The largest sum of aligned sizes of buffers of which no two are ordered:
  /// no packing is smaller. Exact. `set`, if given, gets buffers that attain
  /// it.
  uint64_t maxLiveBytes(std::vector<uint32_t> *set = nullptr) const;

  /// True when the memory of `a` may be handed to `b`: all accesses of `a`
  /// happen before all accesses of `b`.
  bool ordered(uint32_t a, uint32_t b) const;

  std::string print(const Solution *solution = nullptr) const;

  std::vector<MemoryRegion> regions;
  std::vector<MemoryBuffer> buffers;
};

struct ParsedMemoryProblem {
  MemoryProblem problem;
  bool solved = false;
  MemoryProblem::Solution solution;
};
StatusOr<ParsedMemoryProblem> parseMemoryProblem(const std::string &text);

} // namespace gtp::planning

#endif // GTP_PLANNING_MEMORY_H
