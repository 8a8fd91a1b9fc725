//===- Gradients.cpp - Sets of gradient contributions ---------------------===//

#include "Gradients.h"

using namespace gtp::plan::check;

uint32_t PartTable::intern(const std::vector<Part> &list) {
  auto [it, fresh] = indices.emplace(list, static_cast<uint32_t>(lists.size()));
  if (fresh)
    lists.push_back(list);
  return it->second;
}

std::optional<uint32_t> PartTable::unite(uint32_t aIndex, uint32_t bIndex) {
  const std::vector<Part> &a = lists[aIndex], &b = lists[bIndex];
  std::vector<Part> sum;
  auto x = a.begin(), y = b.begin();
  while (x != a.end() || y != b.end()) {
    if (y == b.end() || (x != a.end() && x->operation < y->operation)) {
      sum.push_back(*x++);
      continue;
    }
    if (x == a.end() || y->operation < x->operation) {
      sum.push_back(*y++);
      continue;
    }
    bool disjoint =
        (x->coverage == Coverage::Previous &&
         y->coverage == Coverage::Current) ||
        (x->coverage == Coverage::Current && y->coverage == Coverage::Previous);
    if (!disjoint)
      return std::nullopt;
    sum.push_back({x->operation, Coverage::All});
    ++x, ++y;
  }
  return intern(sum);
}

uint32_t PartTable::nextIteration(uint32_t list, bool first) {
  std::vector<Part> next = lists[list];
  for (Part &part : next) {
    if (part.coverage == Coverage::Step)
      continue;
    bool all = part.coverage == Coverage::All ||
               (first && part.coverage == Coverage::Current);
    part.coverage = all ? Coverage::Previous : Coverage::Incomplete;
  }
  return intern(next);
}

uint32_t PartTable::afterBody(uint32_t list, bool only) {
  std::vector<Part> whole = lists[list];
  for (Part &part : whole) {
    if (part.coverage == Coverage::Step)
      continue;
    bool all = part.coverage == Coverage::All ||
               (only && part.coverage == Coverage::Current);
    part.coverage = all ? Coverage::Step : Coverage::Incomplete;
  }
  return intern(whole);
}
