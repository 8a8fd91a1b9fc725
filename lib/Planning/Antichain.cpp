//===- Antichain.cpp - The most bytes that are live at once, exactly ------===//
//
// Within a region the heaviest set of buffers of which no two are ordered is
// the heaviest cut of the operations into "has started" and "has not",
// consistent with happens-before: a buffer counts when it was acquired and not
// yet released. ReuseNetwork finds it.
//
//===----------------------------------------------------------------------===//

#include "Lifetimes.h"

#include "gtp/Support/ReuseNetwork.h"

#include <algorithm>

namespace gtp::planning {

/// Earliest operations after which memory that comes back at `positions` of the
/// streams is free; operations that another of them precedes are left out.
static std::vector<OpIndex> releaseOps(const OrderGraph &order,
                                       const std::vector<uint32_t> &positions) {
  std::vector<OpIndex> ops, result;
  for (unsigned s = 0; s < order.numStreams(); ++s)
    if (positions[s] < order.onStream(s).size())
      ops.push_back(order.onStream(s)[positions[s]]);
  for (OpIndex op : ops) {
    bool implied = false;
    for (OpIndex other : ops)
      implied |= order.happensBefore(other, op);
    if (!implied)
      result.push_back(op);
  }
  return result;
}

/// Per stream the last operation that precedes or is each of `ops`, as far as
/// there is one.
static std::vector<OpIndex> commonPast(const OrderGraph &order,
                                       const std::vector<OpIndex> &ops) {
  std::vector<OpIndex> result;
  for (unsigned s = 0; s < order.numStreams(); ++s) {
    uint32_t count = UINT32_MAX;
    for (OpIndex op : ops)
      count = std::min(count, order.clock(op, s));
    if (count)
      result.push_back(order.onStream(s)[count - 1]);
  }
  return result;
}

/// Heaviest set within `region`.
static uint64_t maxLiveInRegion(const MemoryProblem &problem,
                                const Lifetimes &lifetimes, uint32_t region,
                                std::vector<uint32_t> &set) {
  const OrderGraph &order = problem.regions[region].order;
  ReuseNetwork network;
  for (OpIndex op = 0; op < order.size(); ++op)
    network.addNode();
  EventProblem::Solution waits = EventProblem(order).solve();
  for (OpIndex op = 0; op < order.size(); ++op) {
    for (OpIndex wait : waits.waits[op])
      network.addArc(op, wait);
    if (order.previous(op) != op)
      network.addArc(op, order.previous(op));
  }

  // Where each buffer is acquired and released; kNever: not in this region.
  constexpr uint32_t kNever = UINT32_MAX;
  struct Item {
    uint32_t buffer;
    uint32_t acquired = kNever, released = kNever;
  };
  std::vector<Item> items;
  std::vector<size_t> manyFirsts;
  uint64_t total = 0;
  for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
    uint64_t weight = alignBytes(problem.buffers[i].size);
    const Lifetimes::Life &life = lifetimes.life(i);
    if (!weight || region < life.firstRegion || region > life.lastRegion)
      continue;
    Item item{i};
    total += weight;
    if (region == life.firstRegion && !life.startsAtEntry) {
      if (life.firsts.size() == 1) {
        item.acquired = life.firsts[0];
      } else {
        item.acquired = network.addNode();
        for (OpIndex op : commonPast(order, life.firsts))
          network.addArc(item.acquired, op);
        manyFirsts.push_back(items.size());
      }
      network.acquire(item.acquired, weight);
    }
    if (region == life.lastRegion && !life.endsAtExit) {
      std::vector<OpIndex> ops = releaseOps(order, life.releasePositions);
      if (ops.size() == 1) {
        item.released = ops[0];
      } else if (!ops.empty()) {
        item.released = network.addNode();
        for (OpIndex op : ops)
          network.addArc(op, item.released);
      }
      if (item.released != kNever)
        network.release(item.released, weight);
    }
    items.push_back(item);
  }
  // A buffer with several first accesses may come after another without any
  // operation in between that says so.
  for (size_t index : manyFirsts) {
    uint32_t buffer = items[index].buffer;
    std::vector<OpIndex> past =
        commonPast(order, lifetimes.life(buffer).firsts);
    for (const Item &other : items) {
      if (other.released == kNever || !lifetimes.ordered(other.buffer, buffer))
        continue;
      const Lifetimes::Life &life = lifetimes.life(other.buffer);
      bool implied = false;
      for (OpIndex op : past)
        implied |=
            order.position(op) >= life.releasePositions[order.stream(op)];
      // Releases that merge into an operation's node are implied, or the
      // operation would not be in the past of all first accesses.
      if (!implied)
        network.addArc(items[index].acquired, other.released);
    }
  }

  uint64_t live = total - *network.solve();
  for (const Item &item : items) {
    bool acquired = item.acquired == kNever || network.reached(item.acquired);
    bool released = item.released != kNever && network.reached(item.released);
    if (acquired && !released)
      set.push_back(item.buffer);
  }
  return live;
}

uint64_t MemoryProblem::maxLiveBytes(std::vector<uint32_t> *set) const {
  Lifetimes lifetimes(*this);
  uint64_t best = 0;
  std::vector<uint32_t> bestSet;
  // The regions' joins order all that no common region sees, so some region
  // sees the whole of the heaviest set.
  for (uint32_t region = 0; region < regions.size(); ++region) {
    std::vector<uint32_t> live;
    uint64_t bytes = maxLiveInRegion(*this, lifetimes, region, live);
    if (bytes > best) {
      best = bytes;
      bestSet = std::move(live);
    }
  }
  if (regions.empty()) {
    best = persistentBytes();
    for (uint32_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].persistent)
        bestSet.push_back(i);
  }
  if (set)
    *set = std::move(bestSet);
  return best;
}

} // namespace gtp::planning
