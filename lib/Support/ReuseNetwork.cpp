//===- ReuseNetwork.cpp - How much memory can be used again ---------------===//

#include "gtp/Support/ReuseNetwork.h"

#include <algorithm>

using namespace gtp;

uint32_t ReuseNetwork::addNode() {
  arcs.emplace_back();
  supply.push_back(0);
  demand.push_back(0);
  return static_cast<uint32_t>(arcs.size() - 1);
}

void ReuseNetwork::addArc(uint32_t from, uint32_t to) {
  arcs[from].push_back({to, static_cast<uint32_t>(arcs[to].size()), -1});
  arcs[to].push_back({from, static_cast<uint32_t>(arcs[from].size() - 1), 0});
}

std::optional<uint64_t> ReuseNetwork::solve(uint64_t maxSteps) {
  limit = maxSteps;
  // What one operation both releases and acquires never needs an arc.
  uint64_t flow = 0;
  for (size_t node = 0; node < arcs.size(); ++node) {
    uint64_t both = std::min(supply[node], demand[node]);
    supply[node] -= both;
    demand[node] -= both;
    flow += both;
  }
  // First along the arcs as they are, which has no cycle: any path goes, and
  // what is a dead end once stays one. Then along shortest residual paths.
  flow += blockingFlow(/*residual=*/false);
  while (steps < limit && findLevels())
    flow += blockingFlow(/*residual=*/true);
  if (steps >= limit)
    return std::nullopt;
  return flow;
}

/// Distances from the nodes that have supply left; whether they reach demand.
bool ReuseNetwork::findLevels() {
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
    steps += arcs[node].size();
    for (const Arc &arc : arcs[node])
      if (arc.remaining && level[arc.to] < 0) {
        level[arc.to] = level[node] + 1;
        queue.push_back(arc.to);
      }
  }
  return found;
}

bool ReuseNetwork::usable(const Arc &arc, uint32_t node, bool residual) const {
  return residual ? arc.remaining != 0 && level[arc.to] == level[node] + 1
                  : arc.remaining < 0;
}

/// Sends along the path what its ends and arcs allow, and goes back to before
/// the first arc that is used up.
uint64_t ReuseNetwork::push(std::vector<std::pair<uint32_t, uint32_t>> &path,
                            uint32_t origin, uint32_t &node) {
  uint64_t amount = std::min(supply[origin], demand[node]);
  for (auto [from, index] : path)
    if (int64_t left = arcs[from][index].remaining; left >= 0)
      amount = std::min(amount, static_cast<uint64_t>(left));
  int64_t sent = static_cast<int64_t>(amount);
  for (auto [from, index] : path) {
    Arc &arc = arcs[from][index];
    Arc &back = arcs[arc.to][arc.reverse];
    if (arc.remaining >= 0)
      arc.remaining -= sent;
    if (back.remaining >= 0)
      back.remaining += sent;
  }
  supply[origin] -= amount;
  demand[node] -= amount;
  steps += path.size();
  for (size_t i = 0; i < path.size(); ++i)
    if (arcs[path[i].first][path[i].second].remaining == 0) {
      node = path[i].first;
      path.resize(i);
      break;
    }
  return amount;
}

uint64_t ReuseNetwork::blockingFlow(bool residual) {
  // Arcs that led nowhere are not looked at again; a dead end has them all.
  std::vector<size_t> next(arcs.size());
  std::vector<std::pair<uint32_t, uint32_t>> path; // node, arc taken
  uint64_t total = 0;
  for (uint32_t origin = 0; origin < arcs.size(); ++origin) {
    if (residual && level[origin] != 0)
      continue;
    path.clear();
    uint32_t node = origin;
    while (supply[origin] && steps < limit) {
      if (demand[node]) {
        total += push(path, origin, node);
        continue;
      }
      bool advanced = false;
      for (size_t &index = next[node]; index < arcs[node].size(); ++index) {
        const Arc &arc = arcs[node][index];
        ++steps;
        if (!usable(arc, node, residual) || next[arc.to] > arcs[arc.to].size())
          continue;
        path.push_back({node, static_cast<uint32_t>(index)});
        node = arc.to;
        advanced = true;
        break;
      }
      if (advanced)
        continue;
      next[node] = arcs[node].size() + 1;
      if (path.empty())
        break;
      node = path.back().first;
      path.pop_back();
      ++next[node];
    }
  }
  return total;
}
