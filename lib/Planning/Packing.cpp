//===- Packing.cpp - Offsets for the buffers of a step --------------------===//
//
// Buffers are placed one after another, each into a gap between the placed ones
// it conflicts with. What differs is the order in which they are placed; a few
// orders are tried, the best result is repaired by placing first what stuck
// out, and all stops as soon as the bound of live bytes is met.
//
//===----------------------------------------------------------------------===//

#include "Lifetimes.h"

#include <algorithm>
#include <functional>

namespace gtp::planning {

namespace {

class Packer {
public:
  Packer(const MemoryProblem &problem, const Lifetimes &lifetimes,
         const std::vector<uint32_t> &liveSet) {
    for (uint32_t i = 0; i < problem.buffers.size(); ++i)
      if (!problem.buffers[i].persistent && problem.buffers[i].size)
        items.push_back({i, alignBytes(problem.buffers[i].size)});
    for (Item &item : items) {
      const Lifetimes::Life &life = lifetimes.life(item.buffer);
      item.start = uint64_t(life.firstRegion) << 32;
      if (!life.startsAtEntry)
        item.start += life.firsts.front() + 1;
      item.inLiveSet =
          std::binary_search(liveSet.begin(), liveSet.end(), item.buffer);
    }
    // In order of time, which settles ties of all keys.
    std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) {
      return std::pair(a.start, a.buffer) < std::pair(b.start, b.buffer);
    });
    size_t n = items.size();
    words = (n + 63) / 64;
    conflicts.resize(n * words);
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = i + 1; j < n; ++j) {
        uint32_t a = items[i].buffer, b = items[j].buffer;
        if (lifetimes.ordered(a, b) || lifetimes.ordered(b, a))
          continue;
        conflicts[i * words + j / 64] |= uint64_t(1) << (j % 64);
        conflicts[j * words + i / 64] |= uint64_t(1) << (i % 64);
        ++items[i].degree;
        ++items[j].degree;
      }
    }
  }

  /// Packs until `bound` is met or the heuristics are exhausted.
  void run(uint64_t bound) {
    using Key = std::function<bool(const Item &, const Item &)>;
    const Key keys[] = {
        // Large ones are the hardest to place.
        [](const Item &a, const Item &b) { return a.bytes > b.bytes; },
        // What lives long splits the arena for all others.
        [](const Item &a, const Item &b) { return a.degree > b.degree; },
        [](const Item &a, const Item &b) {
          return double(a.bytes) * a.degree > double(b.bytes) * b.degree;
        },
        // The set that needs all of the bound leaves no choice.
        [](const Item &a, const Item &b) {
          if (a.inLiveSet != b.inLiveSet)
            return a.inLiveSet;
          return a.bytes > b.bytes;
        },
        [](const Item &a, const Item &b) {
          if (a.inLiveSet != b.inLiveSet)
            return a.inLiveSet;
          return a.degree > b.degree;
        },
        // As a stack would.
        [](const Item &a, const Item &b) { return a.start < b.start; },
    };
    std::vector<uint32_t> bestOrder; // then the one under repair
    for (const Key &key : keys) {
      std::vector<uint32_t> order(items.size());
      for (uint32_t i = 0; i < order.size(); ++i)
        order[i] = i;
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        if (key(items[a], items[b]))
          return true;
        return !key(items[b], items[a]) && a < b;
      });
      if (place(order, best))
        bestOrder = order;
      if (best <= bound)
        return;
    }
    // What ends above the bound goes first, everything else keeps its place.
    constexpr int kRepairs = 8;
    offsets = bestOffsets;
    for (int round = 0; round < kRepairs && best > bound; ++round) {
      std::vector<uint32_t> order, rest;
      for (uint32_t i : bestOrder)
        (offsets[i] + items[i].bytes > bound ? order : rest).push_back(i);
      order.insert(order.end(), rest.begin(), rest.end());
      bestOrder = std::move(order);
      place(bestOrder, UINT64_MAX);
    }
  }

  void store(uint64_t base, MemoryProblem::Solution &solution) const {
    for (size_t i = 0; i < items.size(); ++i)
      solution.offsets[items[i].buffer] = base + bestOffsets[i];
    solution.arenaBytes = base + (items.empty() ? 0 : best);
  }

private:
  struct Item {
    uint32_t buffer;
    uint64_t bytes;
    uint64_t start = 0; ///< region and operation
    uint32_t degree = 0;
    bool inLiveSet = false;
  };

  /// Places items in `order`, each in the smallest gap that fits, until one
  /// ends at `limit` or above. True when it is the best so far.
  bool place(const std::vector<uint32_t> &order, uint64_t limit) {
    offsets.assign(items.size(), 0);
    std::vector<uint32_t> placed; // by offset
    placed.reserve(items.size());
    uint64_t top = 0;
    for (uint32_t item : order) {
      const uint64_t *row = &conflicts[item * words];
      uint64_t size = items[item].bytes, end = 0;
      uint64_t bestGap = UINT64_MAX, bestOffset = 0;
      for (uint32_t other : placed) {
        if (!(row[other / 64] >> (other % 64) & 1))
          continue;
        uint64_t offset = offsets[other];
        if (offset >= end + size && offset - end < bestGap) {
          bestGap = offset - end;
          bestOffset = end;
          if (bestGap == size)
            break;
        }
        end = std::max(end, offset + items[other].bytes);
      }
      offsets[item] = bestGap == UINT64_MAX ? end : bestOffset;
      top = std::max(top, offsets[item] + size);
      if (top >= limit)
        return false;
      placed.insert(std::upper_bound(placed.begin(), placed.end(), item,
                                     [&](uint32_t a, uint32_t b) {
                                       return offsets[a] < offsets[b];
                                     }),
                    item);
    }
    if (top >= best)
      return false;
    best = top;
    bestOffsets = offsets;
    return true;
  }

  std::vector<Item> items;
  size_t words = 0;
  std::vector<uint64_t> conflicts; // a bit row an item
  std::vector<uint64_t> offsets;
  uint64_t best = UINT64_MAX;
  std::vector<uint64_t> bestOffsets;
};

} // namespace

MemoryProblem::Solution MemoryProblem::solve() const {
  Solution solution;
  solution.maxLiveBytes = maxLiveBytes(&solution.maxLiveSet);
  solution.offsets.resize(buffers.size());
  uint64_t persistentEnd = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].persistent)
      continue;
    solution.offsets[i] = persistentEnd;
    persistentEnd += alignBytes(buffers[i].size);
  }
  Lifetimes lifetimes(*this);
  Packer packer(*this, lifetimes, solution.maxLiveSet);
  packer.run(solution.maxLiveBytes - persistentEnd);
  packer.store(persistentEnd, solution);
  return solution;
}

} // namespace gtp::planning
