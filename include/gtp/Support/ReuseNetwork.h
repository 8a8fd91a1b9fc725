//===- ReuseNetwork.h - How much memory can be used again -------*- C++ -*-===//
//
// Nodes are points of a program, arcs lead to what must have happened before
// them. Buffers acquire memory at one node and release it at another. The most
// bytes that are live at once, over all executions that the arcs allow, are all
// bytes acquired minus the maximum flow in which every acquisition takes memory
// that was released before it: the heaviest antichain, as a maximum closure.
// Operations of a program are nearly a chain, so a greedy pass backward along
// them finds nearly all of the flow.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_SUPPORT_REUSENETWORK_H
#define GTP_SUPPORT_REUSENETWORK_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gtp {

/// Built once, solved once.
class ReuseNetwork {
public:
  /// The new node's number: they count from 0.
  uint32_t addNode();
  /// `to` happens before `from`; arcs that close a cycle are not allowed.
  void addArc(uint32_t from, uint32_t to);
  /// What starts at the node needs the memory.
  void acquire(uint32_t node, uint64_t bytes) { supply[node] += bytes; }
  /// The memory is free at the node: what starts there may have it.
  void release(uint32_t node, uint64_t bytes) { demand[node] += bytes; }

  /// Bytes that can be used again. None when it takes more than `maxSteps`
  /// looks at an arc, which no training step needs and a hostile plan might.
  std::optional<uint64_t> solve(uint64_t maxSteps = UINT64_MAX);

  /// After solve(): whether the node has happened at a moment when the most
  /// bytes are live.
  bool reached(uint32_t node) const { return level[node] >= 0; }

private:
  struct Arc {
    uint32_t to;
    uint32_t reverse;  ///< index of the opposite arc at `to`
    int64_t remaining; ///< -1: no limit
  };

  bool findLevels();
  uint64_t blockingFlow(bool residual);
  bool usable(const Arc &arc, uint32_t node, bool residual) const;
  uint64_t push(std::vector<std::pair<uint32_t, uint32_t>> &path,
                uint32_t origin, uint32_t &node);

  std::vector<std::vector<Arc>> arcs;
  std::vector<uint64_t> supply, demand;
  std::vector<int32_t> level;
  uint64_t steps = 0, limit = UINT64_MAX;
};

} // namespace gtp

#endif // GTP_SUPPORT_REUSENETWORK_H
