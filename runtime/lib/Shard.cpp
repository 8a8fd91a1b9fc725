//===- Shard.cpp - A rank's piece of a logical tensor ---------------------===//

#include "Shard.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

Shard::Shard(const pb::Mesh &mesh, const pb::Layout &layout, uint64_t rank) {
  Coordinates coordinates = coordinatesOf(mesh, rank);
  Coordinates replicated = coordinates;
  for (const pb::LayoutDim &dim : layout.dims()) {
    dims.push_back({plan::shardSize(mesh, dim), dim.logical(),
                    shardRuns(mesh, dim, coordinates)});
    for (uint32_t axis : dim.compute_axes())
      replicated[axis] = 0;
    for (uint32_t axis : dim.storage_axes())
      replicated[axis] = 0;
  }
  firstReplica =
      std::all_of(replicated.begin(), replicated.end(),
                  [](uint64_t coordinate) { return coordinate == 0; });
}

uint64_t Shard::elements() const {
  uint64_t elements = 1;
  for (const Dim &dim : dims)
    elements *= dim.shardSize;
  return elements;
}

template <typename Visit>
void Shard::forEach(size_t dim, uint64_t local, uint64_t logical,
                    const Visit &visit) const {
  if (dim == dims.size())
    return visit(local, logical, uint64_t(1));
  // Offsets count elements of the dimensions so far.
  for (const ShardRun &run : dims[dim].runs) {
    uint64_t localRow = local * dims[dim].shardSize + run.local;
    uint64_t logicalRow = logical * dims[dim].logicalSize + run.logical;
    if (dim + 1 == dims.size()) {
      visit(localRow, logicalRow, run.size);
      continue;
    }
    for (uint64_t i = 0; i < run.size; ++i)
      forEach(dim + 1, localRow + i, logicalRow + i, visit);
  }
}

std::vector<Shard::Stretch> Shard::stretches() const {
  std::vector<Stretch> found;
  forEach(0, 0, 0, [&](uint64_t local, uint64_t at, uint64_t size) {
    if (!found.empty() && found.back().local + found.back().size == local &&
        found.back().logical + found.back().size == at)
      found.back().size += size;
    else
      found.push_back({local, at, size});
  });
  return found;
}

void Shard::place(const std::vector<float> &shard,
                  std::vector<float> &logical) const {
  forEach(0, 0, 0, [&](uint64_t local, uint64_t at, uint64_t size) {
    std::copy_n(shard.begin() + int64_t(local), size,
                logical.begin() + int64_t(at));
  });
}
