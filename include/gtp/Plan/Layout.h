//===- Layout.h - Which rank holds what of a logical value ----------------===//
//
// The arithmetic of `pb::Layout` on `pb::Mesh`, for whoever moves bytes between
// logical tensors and shards. Per dimension: compute axes cut each segment,
// major to minor, into equal pieces of ceil(size / degree); the pieces of all
// segments that a rank then has, one behind the other, are what a use of the
// weight sees (`useSize`); storage axes cut that in the same way, in whole
// granules. Pieces at the end may be short or empty; every rank's shard has the
// padded size.
//
// All functions but the verifiers expect a mesh and layout that passed them.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_LAYOUT_H
#define GTP_PLAN_LAYOUT_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace gtp::plan {

/// Coordinate of a rank on each axis of the mesh.
using Coordinates = std::vector<uint64_t>;

/// More ranks than this are an error, not a plan.
constexpr uint64_t kMaxRanks = uint64_t(1) << 24;

/// Degrees are positive, names are distinct, ranks at most `kMaxRanks`.
Status verifyMesh(const pb::Mesh &mesh);
/// Axes exist and cut one dimension at most, segments add up, sizes fit.
Status verifyLayout(const pb::Mesh &mesh, const pb::Layout &layout);

/// Ranks of a mesh, the product of its degrees.
uint64_t rankCount(const pb::Mesh &mesh);
/// Axes in mesh order, the last varies fastest.
Coordinates coordinatesOf(const pb::Mesh &mesh, uint64_t rank);
/// The reverse of `coordinatesOf`.
uint64_t rankOf(const pb::Mesh &mesh, const Coordinates &coordinates);

/// Whether ranks along an axis read different sequences: dp and gtp.
bool isDataAxis(const pb::MeshAxis &axis);
/// Ranks that read different sequences; the others repeat them.
uint64_t dataRankCount(const pb::Mesh &mesh);
/// Which part of a microbatch a rank reads: dp major, whatever the mesh's
/// order.
uint64_t dataRankOf(const pb::Mesh &mesh, uint64_t rank);

/// Elements of the dimension that a rank computes with: cut by compute axes
/// only.
uint64_t useSize(const pb::Mesh &mesh, const pb::LayoutDim &dim);
/// Elements of the dimension that a rank stores, pads included.
uint64_t shardSize(const pb::Mesh &mesh, const pb::LayoutDim &dim);
/// Elements behind gathering all storage axes: `shardSize` times their degrees,
/// at least `useSize`.
uint64_t gatheredSize(const pb::Mesh &mesh, const pb::LayoutDim &dim);
/// The same of every dimension.
std::vector<uint64_t> useShape(const pb::Mesh &mesh, const pb::Layout &layout);
std::vector<uint64_t> shardShape(const pb::Mesh &mesh,
                                 const pb::Layout &layout);

/// Elements [local, local + size) of a shard are elements [logical, ...) of the
/// logical dimension.
struct ShardRun {
  uint64_t local = 0;
  uint64_t logical = 0;
  uint64_t size = 0;
};

/// What of the shard of the rank at `coordinates` is not pad, in local order;
/// at most one run a segment.
std::vector<ShardRun> shardRuns(const pb::Mesh &mesh, const pb::LayoutDim &dim,
                                const Coordinates &coordinates);

/// Logical index of element `local` of the shard; none for a pad.
std::optional<uint64_t> logicalIndex(const pb::Mesh &mesh,
                                     const pb::LayoutDim &dim,
                                     const Coordinates &coordinates,
                                     uint64_t local);

/// Ranks of a communicator over `axes`.
uint64_t groupSize(const pb::Mesh &mesh, const pb::Communicator &communicator);
/// The ranks that differ from `rank` in its axes only, in rank order.
std::vector<uint64_t> groupOf(const pb::Mesh &mesh,
                              const pb::Communicator &communicator,
                              uint64_t rank);
/// Position of `rank` in its group.
uint64_t indexInGroup(const pb::Mesh &mesh,
                      const pb::Communicator &communicator, uint64_t rank);

} // namespace gtp::plan

#endif // GTP_PLAN_LAYOUT_H
