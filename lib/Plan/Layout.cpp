//===- Layout.cpp - Which rank holds what of a logical value --------------===//

#include "gtp/Plan/Layout.h"

#include "gtp/Plan/Operand.h"

#include <algorithm>
#include <set>
#include <string_view>

using namespace gtp;
using namespace gtp::plan;

static uint64_t ceilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static uint64_t degree(const pb::Mesh &mesh, uint32_t axis) {
  return mesh.axes(static_cast<int>(axis)).degree();
}

static uint64_t granule(const pb::LayoutDim &dim) {
  return std::max<uint64_t>(dim.granule(), 1);
}

/// Size of the piece that cutting `size` by `axes` in turn gives every rank.
static uint64_t cut(const pb::Mesh &mesh,
                    const google::protobuf::RepeatedField<uint32_t> &axes,
                    uint64_t size) {
  for (uint32_t axis : axes)
    size = ceilDiv(size, degree(mesh, axis));
  return size;
}

/// The part [begin, end) of [0, size) that the rank at `coordinates` gets of
/// that cut; empty where pieces before it took everything.
static std::pair<uint64_t, uint64_t>
cutRange(const pb::Mesh &mesh,
         const google::protobuf::RepeatedField<uint32_t> &axes,
         const Coordinates &coordinates, uint64_t size) {
  uint64_t begin = 0, end = size, piece = size;
  for (uint32_t axis : axes) {
    piece = ceilDiv(piece, degree(mesh, axis));
    begin += coordinates[axis] * piece;
    end = std::min(end, begin + piece);
  }
  return {std::min(begin, end), end};
}

static std::vector<uint64_t> segmentSizes(const pb::LayoutDim &dim) {
  std::vector<uint64_t> sizes;
  for (const pb::Segment &segment : dim.segments())
    sizes.push_back(segment.size());
  if (sizes.empty())
    sizes.push_back(dim.logical());
  return sizes;
}

Status gtp::plan::verifyMesh(const pb::Mesh &mesh) {
  std::set<std::string> names;
  uint64_t ranks = 1;
  for (const pb::MeshAxis &axis : mesh.axes()) {
    if (!names.insert(axis.name()).second)
      return Status::error("mesh names axis '" + axis.name() + "' twice");
    if (axis.degree() == 0)
      return Status::error("mesh axis '" + axis.name() +
                           "' has degree 0, expected at least 1");
    ranks = checkedMul(ranks, axis.degree()).value_or(kMaxRanks + 1);
    if (ranks > kMaxRanks)
      return Status::error("mesh has more than " + std::to_string(kMaxRanks) +
                           " ranks");
  }
  return Status::ok();
}

Status gtp::plan::verifyLayout(const pb::Mesh &mesh, const pb::Layout &layout) {
  std::set<uint32_t> used;
  auto verifyAxes =
      [&](const google::protobuf::RepeatedField<uint32_t> &axes) -> Status {
    for (uint32_t axis : axes) {
      if (axis >= static_cast<uint64_t>(mesh.axes_size()))
        return Status::error("layout names axis " + std::to_string(axis) +
                             " of a mesh with " +
                             std::to_string(mesh.axes_size()));
      if (!used.insert(axis).second)
        return Status::error("layout uses axis '" +
                             mesh.axes(static_cast<int>(axis)).name() +
                             "' twice");
    }
    return Status::ok();
  };
  std::optional<uint64_t> elements = 1;
  for (const pb::LayoutDim &dim : layout.dims()) {
    GTP_RETURN_IF_ERROR(verifyAxes(dim.compute_axes()));
    GTP_RETURN_IF_ERROR(verifyAxes(dim.storage_axes()));
    std::optional<uint64_t> sum = 0;
    for (uint64_t size : segmentSizes(dim))
      if (sum)
        sum = checkedAdd(*sum, size);
    if (!sum || *sum != dim.logical() || dim.logical() == 0)
      return Status::error("layout dimension of " +
                           std::to_string(dim.logical()) +
                           " elements has segments that do not add up to it");
    // What every shard is rounded up to, on all ranks together, must still fit.
    std::optional<uint64_t> padded =
        dim.logical() + static_cast<uint64_t>(dim.segments_size());
    if (!dim.storage_axes().empty()) {
      padded = checkedMul(granule(dim), kMaxRanks);
      if (padded)
        padded = checkedAdd(*padded, dim.logical());
    }
    if (elements)
      elements = padded ? checkedMul(*elements, *padded) : std::nullopt;
    if (!elements)
      return Status::error("layout is too large");
  }
  GTP_RETURN_IF_ERROR(verifyAxes(layout.partial_axes()));
  if ((layout.partial() == pb::Layout::NONE) != layout.partial_axes().empty())
    return Status::error(
        "layout must have partial axes exactly when it is partial");
  return Status::ok();
}

uint64_t gtp::plan::rankCount(const pb::Mesh &mesh) {
  uint64_t count = 1;
  for (const pb::MeshAxis &axis : mesh.axes())
    count *= axis.degree();
  return count;
}

Coordinates gtp::plan::coordinatesOf(const pb::Mesh &mesh, uint64_t rank) {
  Coordinates coordinates(static_cast<size_t>(mesh.axes_size()));
  for (int i = mesh.axes_size() - 1; i >= 0; --i) {
    coordinates[static_cast<size_t>(i)] = rank % mesh.axes(i).degree();
    rank /= mesh.axes(i).degree();
  }
  return coordinates;
}

uint64_t gtp::plan::rankOf(const pb::Mesh &mesh,
                           const Coordinates &coordinates) {
  uint64_t rank = 0;
  for (int i = 0; i < mesh.axes_size(); ++i)
    rank = rank * mesh.axes(i).degree() + coordinates[static_cast<size_t>(i)];
  return rank;
}

/// Axes that cut the sequences of a microbatch, major first.
static constexpr std::string_view kDataAxes[] = {"dp", "gtp"};

bool gtp::plan::isDataAxis(const pb::MeshAxis &axis) {
  return std::find(std::begin(kDataAxes), std::end(kDataAxes), axis.name()) !=
         std::end(kDataAxes);
}

uint64_t gtp::plan::dataRankCount(const pb::Mesh &mesh) {
  uint64_t ranks = 1;
  for (const pb::MeshAxis &axis : mesh.axes())
    if (isDataAxis(axis))
      ranks *= axis.degree();
  return ranks;
}

uint64_t gtp::plan::dataRankOf(const pb::Mesh &mesh, uint64_t rank) {
  Coordinates coordinates = coordinatesOf(mesh, rank);
  uint64_t result = 0;
  for (std::string_view name : kDataAxes)
    for (int i = 0; i < mesh.axes_size(); ++i)
      if (mesh.axes(i).name() == name)
        result = result * mesh.axes(i).degree() +
                 coordinates[static_cast<size_t>(i)];
  return result;
}

uint64_t gtp::plan::useSize(const pb::Mesh &mesh, const pb::LayoutDim &dim) {
  uint64_t size = 0;
  for (uint64_t segment : segmentSizes(dim))
    size += cut(mesh, dim.compute_axes(), segment);
  return size;
}

uint64_t gtp::plan::shardSize(const pb::Mesh &mesh, const pb::LayoutDim &dim) {
  uint64_t size = useSize(mesh, dim);
  // Without a cut there is nothing to align and nothing to pad.
  if (std::all_of(dim.storage_axes().begin(), dim.storage_axes().end(),
                  [&](uint32_t axis) { return degree(mesh, axis) == 1; }))
    return size;
  return cut(mesh, dim.storage_axes(), ceilDiv(size, granule(dim))) *
         granule(dim);
}

uint64_t gtp::plan::gatheredSize(const pb::Mesh &mesh,
                                 const pb::LayoutDim &dim) {
  uint64_t size = shardSize(mesh, dim);
  for (uint32_t axis : dim.storage_axes())
    size *= degree(mesh, axis);
  return size;
}

std::vector<uint64_t> gtp::plan::useShape(const pb::Mesh &mesh,
                                          const pb::Layout &layout) {
  std::vector<uint64_t> shape;
  for (const pb::LayoutDim &dim : layout.dims())
    shape.push_back(useSize(mesh, dim));
  return shape;
}

std::vector<uint64_t> gtp::plan::shardShape(const pb::Mesh &mesh,
                                            const pb::Layout &layout) {
  std::vector<uint64_t> shape;
  for (const pb::LayoutDim &dim : layout.dims())
    shape.push_back(shardSize(mesh, dim));
  return shape;
}

std::vector<ShardRun> gtp::plan::shardRuns(const pb::Mesh &mesh,
                                           const pb::LayoutDim &dim,
                                           const Coordinates &coordinates) {
  // The shard is [begin, end) of what the rank computes with.
  uint64_t use = useSize(mesh, dim);
  uint64_t begin = 0, end = use;
  if (shardSize(mesh, dim) != use || gatheredSize(mesh, dim) != use) {
    auto [first, last] = cutRange(mesh, dim.storage_axes(), coordinates,
                                  ceilDiv(use, granule(dim)));
    begin = std::min(first * granule(dim), use);
    end = std::min(last * granule(dim), use);
  }
  std::vector<ShardRun> runs;
  uint64_t position = 0, logical = 0;
  for (uint64_t size : segmentSizes(dim)) {
    auto [first, last] = cutRange(mesh, dim.compute_axes(), coordinates, size);
    // Elements [first, last) of the segment lie at `position`.
    uint64_t from = std::max(begin, position);
    uint64_t to = std::min(end, position + (last - first));
    if (from < to)
      runs.push_back(
          {from - begin, logical + first + (from - position), to - from});
    position += cut(mesh, dim.compute_axes(), size);
    logical += size;
  }
  return runs;
}

std::optional<uint64_t> gtp::plan::logicalIndex(const pb::Mesh &mesh,
                                                const pb::LayoutDim &dim,
                                                const Coordinates &coordinates,
                                                uint64_t local) {
  for (const ShardRun &run : shardRuns(mesh, dim, coordinates))
    if (local >= run.local && local - run.local < run.size)
      return run.logical + (local - run.local);
  return std::nullopt;
}

uint64_t gtp::plan::groupSize(const pb::Mesh &mesh,
                              const pb::Communicator &communicator) {
  uint64_t size = 1;
  for (uint32_t axis : communicator.axes())
    size *= degree(mesh, axis);
  return size;
}

std::vector<uint64_t> gtp::plan::groupOf(const pb::Mesh &mesh,
                                         const pb::Communicator &communicator,
                                         uint64_t rank) {
  Coordinates coordinates = coordinatesOf(mesh, rank);
  std::vector<uint64_t> ranks;
  uint64_t size = groupSize(mesh, communicator);
  for (uint64_t i = 0; i < size; ++i) {
    uint64_t rest = i;
    for (int k = communicator.axes_size() - 1; k >= 0; --k) {
      uint32_t axis = communicator.axes(k);
      coordinates[axis] = rest % degree(mesh, axis);
      rest /= degree(mesh, axis);
    }
    ranks.push_back(rankOf(mesh, coordinates));
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

uint64_t gtp::plan::indexInGroup(const pb::Mesh &mesh,
                                 const pb::Communicator &communicator,
                                 uint64_t rank) {
  std::vector<uint64_t> ranks = groupOf(mesh, communicator, rank);
  return static_cast<uint64_t>(
      std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}
