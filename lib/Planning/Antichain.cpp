//===- Antichain.cpp - The most bytes that are live at once, exactly ------===//
//
// Within a region the heaviest set of buffers of which no two are ordered is
// the heaviest cut of the operations into "has started" and "has not",
// consistent with happens-before: a buffer counts when it was acquired and not
// yet released. That is a maximum closure, so total weight minus a maximum flow
// in which every acquisition takes memory that was released before it. The
// operations are nearly a chain, so a greedy pass backward along them finds
// nearly all of the flow.
//
//===----------------------------------------------------------------------===//

#include "Lifetimes.h"

#include <algorithm>

namespace gtp::planning {

namespace {

/// Maximum flow from node supplies to node demands along arcs of no limit.
class ReuseNetwork {
public:
  uint32_t addNode() {
    arcs.emplace_back();
    supply.push_back(0);
    demand.push_back(0);
    return arcs.size() - 1;
  }
  void addArc(uint32_t from, uint32_t to) {
    arcs[from].push_back({to, uint32_t(arcs[to].size()), -1});
    arcs[to].push_back({from, uint32_t(arcs[from].size() - 1), 0});
  }

  int64_t solve() {
    // What one operation both releases and acquires never needs an arc.
    int64_t flow = 0;
    for (size_t node = 0; node < arcs.size(); ++node) {
      int64_t both = std::min(supply[node], demand[node]);
      supply[node] -= both;
      demand[node] -= both;
      flow += both;
    }
    // First along the arcs as they are, which has no cycle: any path goes, and
    // what is a dead end once stays one. Then along shortest residual paths.
    flow += blockingFlow(/*residual=*/false);
    while (findLevels())
      flow += blockingFlow(/*residual=*/true);
    return flow;
  }

  /// After solve(): nodes that unspent supply reaches.
  bool reached(uint32_t node) const { return level[node] >= 0; }

  std::vector<int64_t> supply, demand;

private:
  struct Arc {
    uint32_t to;
    uint32_t reverse;  ///< index of the opposite arc at `to`
    int64_t remaining; ///< -1: no limit
  };

  bool findLevels() {
    level.assign(arcs.size(), -1);
    std::vector<uint32_t> queue;
    for (uint32_t node = 0; node < arcs.size(); ++node)
      if (supply[node]) {
        level[node] = 0;
        queue.push_back(node);
      }
    bool found = false;
    for (size_t head = 0; head < queue.size(); ++head) {
      uint32_t node = queue[head];
      found |= demand[node] > 0;
      for (const Arc &arc : arcs[node])
        if (arc.remaining && level[arc.to] < 0) {
          level[arc.to] = level[node] + 1;
          queue.push_back(arc.to);
        }
    }
    return found;
  }

  int64_t blockingFlow(bool residual) {
    std::vector<uint32_t> next(arcs.size());
    std::vector<std::pair<uint32_t, uint32_t>> path; // node, arc taken
    int64_t total = 0;
    for (uint32_t origin = 0; origin < arcs.size(); ++origin) {
      if (residual && level[origin] != 0)
        continue;
      path.clear();
      uint32_t node = origin;
      while (supply[origin]) {
        if (demand[node]) {
          int64_t amount = std::min(supply[origin], demand[node]);
          for (auto [from, index] : path)
            if (int64_t limit = arcs[from][index].remaining; limit >= 0)
              amount = std::min(amount, limit);
          for (auto [from, index] : path) {
            Arc &arc = arcs[from][index];
            Arc &back = arcs[arc.to][arc.reverse];
            if (arc.remaining >= 0)
              arc.remaining -= amount;
            if (back.remaining >= 0)
              back.remaining += amount;
          }
          supply[origin] -= amount;
          demand[node] -= amount;
          total += amount;
          // Go on from the first arc that is used up, or from here.
          for (size_t i = 0; i < path.size(); ++i) {
            if (arcs[path[i].first][path[i].second].remaining == 0) {
              node = path[i].first;
              path.resize(i);
              break;
            }
          }
          continue;
        }
        bool advanced = false;
        for (uint32_t &index = next[node]; index < arcs[node].size(); ++index) {
          const Arc &arc = arcs[node][index];
          bool usable =
              residual ? arc.remaining != 0 && level[arc.to] == level[node] + 1
                       : arc.remaining < 0;
          if (!usable || next[arc.to] >= arcs[arc.to].size() + 1)
            continue;
          path.push_back({node, index});
          node = arc.to;
          advanced = true;
          break;
        }
        if (advanced)
          continue;
        next[node] = arcs[node].size() + 1; // a dead end
        if (path.empty())
          break;
        node = path.back().first;
        path.pop_back();
        ++next[node];
      }
    }
    return total;
  }

  std::vector<std::vector<Arc>> arcs;
  std::vector<int32_t> level;
};

} // namespace

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
      network.supply[item.acquired] += weight;
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
        network.demand[item.released] += weight;
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

  uint64_t live = total - network.solve();
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
