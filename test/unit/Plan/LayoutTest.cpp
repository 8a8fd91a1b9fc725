//===- LayoutTest.cpp -----------------------------------------------------===//

#include "gtp/Plan/Layout.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::plan;

namespace {

pb::Mesh makeMesh(const std::vector<std::pair<std::string, uint64_t>> &axes) {
  pb::Mesh mesh;
  for (const auto &[name, degree] : axes) {
    pb::MeshAxis *axis = mesh.add_axes();
    axis->set_name(name);
    axis->set_degree(degree);
  }
  return mesh;
}

pb::LayoutDim makeDim(const std::vector<uint64_t> &segments,
                      std::vector<uint32_t> compute,
                      std::vector<uint32_t> storage, uint64_t granule) {
  pb::LayoutDim dim;
  uint64_t sum = 0;
  for (uint64_t size : segments) {
    dim.add_segments()->set_size(size);
    sum += size;
  }
  dim.set_logical(sum);
  dim.mutable_compute_axes()->Add(compute.begin(), compute.end());
  dim.mutable_storage_axes()->Add(storage.begin(), storage.end());
  dim.set_granule(granule);
  return dim;
}

/// Every logical element is in the shards of all ranks together exactly once
/// for each combination of the coordinates that do not cut the dimension.
void expectTiling(const pb::Mesh &mesh, const pb::LayoutDim &dim) {
  pb::Layout layout;
  *layout.add_dims() = dim;
  ASSERT_TRUE(verifyLayout(mesh, layout).isOk())
      << verifyLayout(mesh, layout).message();
  uint64_t cuts = 1;
  for (uint32_t axis : dim.compute_axes())
    cuts *= mesh.axes(static_cast<int>(axis)).degree();
  for (uint32_t axis : dim.storage_axes())
    cuts *= mesh.axes(static_cast<int>(axis)).degree();
  std::vector<uint64_t> seen(dim.logical());
  uint64_t ranks = rankCount(mesh);
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    Coordinates coordinates = coordinatesOf(mesh, rank);
    ASSERT_EQ(rankOf(mesh, coordinates), rank);
    uint64_t size = shardSize(mesh, dim), valid = 0, end = 0;
    for (const ShardRun &run : shardRuns(mesh, dim, coordinates)) {
      EXPECT_GE(run.local, end) << "runs are in local order";
      end = run.local + run.size;
      valid += run.size;
      ASSERT_LE(end, size);
      ASSERT_LE(run.logical + run.size, dim.logical());
    }
    for (uint64_t local = 0; local < size; ++local)
      if (std::optional<uint64_t> logical =
              logicalIndex(mesh, dim, coordinates, local)) {
        ++seen[*logical];
        --valid;
      }
    EXPECT_EQ(valid, 0u);
  }
  for (uint64_t i = 0; i < dim.logical(); ++i)
    ASSERT_EQ(seen[i], ranks / cuts) << "element " << i;
  EXPECT_GE(gatheredSize(mesh, dim), useSize(mesh, dim));
}

} // namespace

TEST(Layout, ShardsTileTheLogicalDimension) {
  for (uint64_t gtp : {1, 2, 3, 4, 5, 8, 64})
    for (uint64_t rows : {1, 16, 77, 113, 257})
      for (uint64_t granule : {0, 1, 4, 8})
        expectTiling(makeMesh({{"dp", 2}, {"gtp", gtp}}),
                     makeDim({rows}, {}, {1}, granule));
}

TEST(Layout, NestedCutsTileSegments) {
  for (uint64_t tp : {1, 2, 3})
    for (uint64_t gtp : {1, 2, 5})
      for (uint64_t granule : {1, 4}) {
        pb::Mesh mesh = makeMesh({{"dp", 1}, {"gtp", gtp}, {"tp", tp}});
        expectTiling(mesh, makeDim({28, 4, 4}, {2}, {1}, granule));
        expectTiling(mesh, makeDim({7, 1, 1}, {2}, {1}, granule));
        expectTiling(mesh, makeDim({113, 113}, {2}, {1}, granule));
      }
  pb::Mesh mesh = makeMesh({{"a", 3}, {"b", 2}, {"c", 2}});
  expectTiling(mesh, makeDim({13, 5}, {0, 2}, {1}, 2));
  expectTiling(mesh, makeDim({13, 5}, {1}, {2, 0}, 2));
}

TEST(Layout, KnownSizes) {
  pb::Mesh mesh = makeMesh({{"gtp", 3}});
  pb::LayoutDim dim = makeDim({257}, {}, {0}, 4);
  // 65 granules of 4 rows, 22 a rank.
  EXPECT_EQ(shardSize(mesh, dim), 88u);
  EXPECT_EQ(gatheredSize(mesh, dim), 264u);
  EXPECT_EQ(useSize(mesh, dim), 257u);
  std::vector<ShardRun> runs = shardRuns(mesh, dim, {2});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].logical, 176u);
  EXPECT_EQ(runs[0].size, 81u);
  EXPECT_EQ(logicalIndex(mesh, dim, {2}, 80), 256u);
  EXPECT_EQ(logicalIndex(mesh, dim, {2}, 81), std::nullopt);

  // More ranks than granules: the last ranks hold pads only.
  pb::Mesh wide = makeMesh({{"gtp", 64}});
  pb::LayoutDim small = makeDim({16}, {}, {0}, 1);
  EXPECT_EQ(shardSize(wide, small), 1u);
  EXPECT_TRUE(shardRuns(wide, small, {16}).empty());
  EXPECT_EQ(logicalIndex(wide, small, {15}, 0), 15u);

  // Degree one pads nothing, whatever the granule.
  EXPECT_EQ(shardSize(makeMesh({{"gtp", 1}}), dim), 257u);
}

TEST(Layout, ComputeCutComesFirst) {
  // q|k|v = 8|2|2 rows, tp=2 takes half of each, gtp=2 cuts what is left.
  pb::Mesh mesh = makeMesh({{"gtp", 2}, {"tp", 2}});
  pb::LayoutDim dim = makeDim({8, 2, 2}, {1}, {0}, 1);
  EXPECT_EQ(useSize(mesh, dim), 6u);
  EXPECT_EQ(shardSize(mesh, dim), 3u);
  std::vector<ShardRun> runs = shardRuns(mesh, dim, {1, 1});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].logical, 7u); // last q row of the second half
  EXPECT_EQ(runs[1].logical, 9u); // second k row
  EXPECT_EQ(runs[2].logical, 11u);
}

TEST(Layout, CommunicatorGroups) {
  pb::Mesh mesh = makeMesh({{"dp", 2}, {"gtp", 3}, {"tp", 2}});
  pb::Communicator gather;
  gather.add_axes(1);
  EXPECT_EQ(groupSize(mesh, gather), 3u);
  EXPECT_EQ(groupOf(mesh, gather, 7), (std::vector<uint64_t>{7, 9, 11}));
  EXPECT_EQ(indexInGroup(mesh, gather, 9), 1u);
  pb::Communicator both;
  both.add_axes(0);
  both.add_axes(2);
  EXPECT_EQ(groupOf(mesh, both, 3), (std::vector<uint64_t>{2, 3, 8, 9}));
  pb::Communicator alone;
  EXPECT_EQ(groupOf(mesh, alone, 5), (std::vector<uint64_t>{5}));
}

TEST(Layout, RefusesWhatIsNoMeshOrLayout) {
  EXPECT_FALSE(verifyMesh(makeMesh({{"dp", 2}, {"dp", 2}})).isOk());
  EXPECT_FALSE(verifyMesh(makeMesh({{"dp", 0}})).isOk());
  EXPECT_FALSE(
      verifyMesh(makeMesh({{"dp", UINT64_MAX}, {"gtp", UINT64_MAX}})).isOk());
  pb::Mesh mesh = makeMesh({{"dp", 2}, {"gtp", 2}});
  auto refuse = [&](const pb::LayoutDim &dim) {
    pb::Layout layout;
    *layout.add_dims() = dim;
    EXPECT_FALSE(verifyLayout(mesh, layout).isOk());
  };
  refuse(makeDim({4}, {2}, {}, 1));
  refuse(makeDim({4}, {1}, {1}, 1));
  refuse(makeDim({0}, {}, {}, 1));
  refuse(makeDim({4}, {}, {1}, UINT64_MAX));
  refuse(makeDim({UINT64_MAX / 2, UINT64_MAX / 2}, {}, {}, 1));
  pb::LayoutDim wrongSum = makeDim({4, 4}, {}, {}, 1);
  wrongSum.set_logical(9);
  refuse(wrongSum);
}
