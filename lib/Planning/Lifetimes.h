//===- Lifetimes.h - When each buffer of a memory problem is live ---------===//

#ifndef GTP_LIB_PLANNING_LIFETIMES_H
#define GTP_LIB_PLANNING_LIFETIMES_H

#include "gtp/Planning/Memory.h"

namespace gtp::planning {

/// Buffers as the solvers see them: where memory is taken and where it is back,
/// so that "all accesses of a happen before all of b" is one comparison.
class Lifetimes {
public:
  explicit Lifetimes(const MemoryProblem &problem);

  struct Life {
    uint32_t firstRegion = 0, lastRegion = 0;
    bool startsAtEntry = false; ///< of its first region
    bool endsAtExit = false;    ///< of its last region
    /// The accesses of the first region that no other of them precedes. Usually
    /// one: the writer.
    std::vector<OpIndex> firsts;
    /// Per stream of the last region the first position that comes after all
    /// accesses: whatever starts there may have the memory.
    std::vector<uint32_t> releasePositions;
  };

  const Life &life(uint32_t buffer) const { return lives[buffer]; }

  /// All accesses of `a` happen before all of `b`.
  bool ordered(uint32_t a, uint32_t b) const {
    const Life &first = lives[a], &second = lives[b];
    if (first.lastRegion != second.firstRegion)
      return first.lastRegion < second.firstRegion;
    if (first.endsAtExit || second.startsAtEntry)
      return false;
    const OrderGraph &order = problem.regions[first.lastRegion].order;
    for (OpIndex op : second.firsts)
      if (order.position(op) < first.releasePositions[order.stream(op)])
        return false;
    return true;
  }

private:
  const MemoryProblem &problem;
  std::vector<Life> lives;
};

} // namespace gtp::planning

#endif // GTP_LIB_PLANNING_LIFETIMES_H
