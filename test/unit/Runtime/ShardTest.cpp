//===- ShardTest.cpp ------------------------------------------------------===//

#include "Shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

static pb::Mesh makeMesh(uint64_t dp, uint64_t gtp, uint64_t tp) {
  pb::Mesh mesh;
  for (auto [name, degree] :
       {std::pair("dp", dp), std::pair("gtp", gtp), std::pair("tp", tp)}) {
    pb::MeshAxis *axis = mesh.add_axes();
    axis->set_name(name);
    axis->set_degree(degree);
  }
  return mesh;
}

/// The shard of `logical`; pads are zero.
static std::vector<float> cut(const Shard &shard,
                              const std::vector<float> &logical) {
  std::vector<float> piece(shard.elements(), 0.0f);
  for (const Shard::Stretch &stretch : shard.stretches())
    std::copy_n(logical.begin() + int64_t(stretch.logical), stretch.size,
                piece.begin() + int64_t(stretch.local));
  return piece;
}

/// Shards of first replicas make the logical value, and nothing else.
static void checkRoundTrip(const pb::Mesh &mesh, const pb::Layout &layout) {
  uint64_t elements = 1;
  for (const pb::LayoutDim &dim : layout.dims())
    elements *= dim.logical();
  std::vector<float> logical(elements);
  std::iota(logical.begin(), logical.end(), 1.0f);
  std::vector<float> found(elements, 0.0f);
  uint64_t placed = 0;
  for (uint64_t rank = 0; rank < rankCount(mesh); ++rank) {
    Shard shard(mesh, layout, rank);
    std::vector<float> piece = cut(shard, logical);
    EXPECT_EQ(piece.size(), shard.elements());
    if (!shard.isFirstReplica())
      continue;
    for (float value : piece)
      placed += value != 0;
    shard.place(piece, found);
  }
  EXPECT_EQ(found, logical);
  EXPECT_EQ(placed, elements);
}

TEST(Shard, EveryElementIsOnExactlyOneFirstReplica) {
  for (uint64_t gtp : {1, 2, 3, 5})
    for (uint64_t tp : {1, 2})
      for (uint64_t granule : {1, 4}) {
        pb::Mesh mesh = makeMesh(2, gtp, tp);
        pb::Layout layout;
        pb::LayoutDim *rows = layout.add_dims();
        rows->set_logical(13);
        for (uint64_t size : {7, 3, 3})
          rows->add_segments()->set_size(size);
        rows->add_compute_axes(2);
        rows->add_storage_axes(1);
        rows->set_granule(granule);
        layout.add_dims()->set_logical(5);
        checkRoundTrip(mesh, layout);
      }
}

TEST(Shard, AnyDimensionMayBeCut) {
  pb::Mesh mesh = makeMesh(1, 3, 2);
  pb::Layout layout;
  layout.add_dims()->set_logical(4);
  pb::LayoutDim *columns = layout.add_dims();
  columns->set_logical(7);
  columns->add_compute_axes(2);
  layout.add_dims()->set_logical(2);
  layout.mutable_dims(0)->add_storage_axes(1);
  checkRoundTrip(mesh, layout);
}
