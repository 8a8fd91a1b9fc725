//===- Lifetimes.cpp - When each buffer of a memory problem is live -------===//

#include "Lifetimes.h"

#include <algorithm>

namespace gtp::planning {

/// The accesses that no other access of the list precedes.
static std::vector<OpIndex> minimal(const OrderGraph &order,
                                    const std::vector<OpIndex> &ops) {
  std::vector<OpIndex> result;
  std::vector<bool> seen(order.numStreams());
  // Ascending issue order: whatever precedes an access has been looked at.
  for (OpIndex op : ops) {
    if (seen[order.stream(op)])
      continue;
    seen[order.stream(op)] = true;
    bool preceded = false;
    for (OpIndex other : result)
      preceded |= order.happensBefore(other, op);
    if (!preceded)
      result.push_back(op);
  }
  return result;
}

/// Per stream, the first position after all of `ops`.
static std::vector<uint32_t> releases(const OrderGraph &order,
                                      const std::vector<OpIndex> &ops) {
  unsigned width = order.numStreams();
  constexpr OpIndex kNone = UINT32_MAX;
  std::vector<OpIndex> last(width, kNone);
  for (OpIndex op : ops)
    last[order.stream(op)] = op;
  std::vector<uint32_t> result(width);
  for (unsigned s = 0; s < width; ++s) {
    const std::vector<OpIndex> &chain = order.onStream(s);
    auto isBefore = [&](OpIndex candidate, int) {
      for (OpIndex op : last)
        if (op != kNone && !order.happensBefore(op, candidate))
          return true;
      return false;
    };
    result[s] = std::lower_bound(chain.begin(), chain.end(), 0, isBefore) -
                chain.begin();
  }
  return result;
}

Lifetimes::Lifetimes(const MemoryProblem &problem)
    : problem(problem), lives(problem.buffers.size()) {
  uint32_t numRegions = problem.regions.size();
  for (size_t i = 0; i < lives.size(); ++i) {
    const MemoryBuffer &buffer = problem.buffers[i];
    Life &life = lives[i];
    bool whole = buffer.persistent || buffer.accesses.empty();
    bool in = buffer.liveIn || whole, out = buffer.liveOut || whole;
    life.firstRegion = in ? 0 : buffer.accesses.front().region;
    life.lastRegion =
        out ? std::max(numRegions, 1u) - 1 : buffer.accesses.back().region;
    // What a repeated region shares with anything outside one iteration lives
    // through all of its iterations.
    bool local =
        life.firstRegion == life.lastRegion && !in && !out && !buffer.carried;
    auto wholeRegion = [&](uint32_t region) {
      return region < numRegions && problem.regions[region].repeated && !local;
    };
    life.startsAtEntry = in || wholeRegion(life.firstRegion);
    life.endsAtExit = out || wholeRegion(life.lastRegion);
    if (!life.startsAtEntry)
      life.firsts = minimal(problem.regions[life.firstRegion].order,
                            buffer.accesses.front().ops);
    if (!life.endsAtExit)
      life.releasePositions = releases(problem.regions[life.lastRegion].order,
                                       buffer.accesses.back().ops);
  }
}

} // namespace gtp::planning
