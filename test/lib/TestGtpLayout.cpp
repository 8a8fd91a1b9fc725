//===- TestGtpLayout.cpp - The compiler and the plan cut alike ------------===//
//
// Placements and `pb::Layout` have each their arithmetic, the plan's for
// programs without MLIR. This pass compares them over small dimensions of all
// shapes.
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"

#include "dialects/Gtp/GtpDialect.h"
#include "gtp/Plan/Layout.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace gtp::dist;

namespace {
struct TestGtpLayoutPass
    : public PassWrapper<TestGtpLayoutPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestGtpLayoutPass)

  StringRef getArgument() const override { return "test-gtp-layout"; }
  StringRef getDescription() const override {
    return "Compares placements with the plan's layouts";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<GtpDialect>();
  }
  void runOnOperation() override;

private:
  LogicalResult compare(MeshAttr mesh, DimAttr dim);
  int64_t compared = 0;
};
} // namespace

static gtp::plan::pb::Mesh toPlan(MeshAttr mesh) {
  gtp::plan::pb::Mesh result;
  for (auto [name, degree] :
       llvm::zip_equal(mesh.getNames(), mesh.getDegrees())) {
    gtp::plan::pb::MeshAxis *axis = result.add_axes();
    axis->set_name(name.str());
    axis->set_degree(degree);
  }
  return result;
}

static gtp::plan::pb::LayoutDim toPlan(MeshAttr mesh, DimAttr dim) {
  gtp::plan::pb::LayoutDim result;
  result.set_logical(dim.getSize());
  for (int64_t size : dim.getSegmentSizes())
    result.add_segments()->set_size(size);
  for (StringAttr axis : dim.getComputeAxes())
    result.add_compute_axes(mesh.position(axis));
  for (StringAttr axis : dim.getStorageAxes())
    result.add_storage_axes(mesh.position(axis));
  result.set_granule(dim.getGranule());
  return result;
}

LogicalResult TestGtpLayoutPass::compare(MeshAttr mesh, DimAttr dim) {
  gtp::plan::pb::Mesh planMesh = toPlan(mesh);
  gtp::plan::pb::LayoutDim planDim = toPlan(mesh, dim);
  ++compared;
  auto check = [&](const char *what, int64_t ours, uint64_t plans) {
    if (static_cast<uint64_t>(ours) == plans)
      return success();
    return LogicalResult(getOperation().emitError()
                         << what << " of " << dim << " on " << mesh << " is "
                         << ours << " here and " << plans << " in the plan");
  };
  return failure(failed(check("size of a use", dim.computeSize(mesh),
                              gtp::plan::useSize(planMesh, planDim))) ||
                 failed(check("size of a shard", dim.localSize(mesh),
                              gtp::plan::shardSize(planMesh, planDim))) ||
                 failed(check("size of all shards", dim.paddedSize(mesh),
                              gtp::plan::gatheredSize(planMesh, planDim))));
}

void TestGtpLayoutPass::runOnOperation() {
  MLIRContext *context = &getContext();
  auto names = llvm::map_to_vector(
      std::initializer_list<StringRef>{"a", "b", "c", "d"},
      [&](StringRef name) { return StringAttr::get(context, name); });
  ArrayRef<StringAttr> axes(names);
  MeshAttr mesh = MeshAttr::get(context, names, {2, 3, 5, 2});
  SmallVector<StringAttr> segments = {StringAttr::get(context, "q"),
                                      StringAttr::get(context, "k")};
  for (int64_t size = 1; size < 70; ++size)
    for (int64_t granule : {1, 2, 3, 4, 16})
      for (size_t compute = 0; compute <= 2; ++compute)
        for (size_t storage = 0; storage <= 2; ++storage)
          for (int64_t first = 0; first < std::min<int64_t>(size, 9);
               first += 4) {
            SmallVector<int64_t> sizes;
            if (first > 0)
              sizes = {first, size - first};
            DimAttr dim =
                DimAttr::get(context, size,
                             sizes.empty() ? ArrayRef<StringAttr>()
                                           : ArrayRef<StringAttr>(segments),
                             sizes, axes.take_front(compute),
                             axes.slice(2, storage), storage ? granule : 1);
            if (failed(compare(mesh, dim)))
              return signalPassFailure();
          }
  getOperation().emitRemark() << compared << " dimensions are alike";
}

void gtp::test::registerTestGtpLayout() {
  PassRegistration<TestGtpLayoutPass>();
}
