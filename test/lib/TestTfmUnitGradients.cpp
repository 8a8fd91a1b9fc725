//===- TestTfmUnitGradients.cpp - Every gradient is 1 ---------------------===//
//
// `test-tfm-unit-gradients`: after tfm-differentiate, makes every element of
// every parameter's gradient exactly 1, so that the global norm must be the
// square root of the number of parameters: a pad that counts, a replica that
// counts twice or a shard that gets lost shows. The cotangent of the loss
// becomes 0, so that all contributions are made, and are 0, and each of k
// microbatches adds 1/k to the gradient before it is reduced. A k whose k-fold
// sum of 1/k is not 1 in the gradient's type is refused.
//
// The plan checker rejects such a plan, rightly: the constant is no
// contribution.
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"

#include "dialects/Tfm/TfmDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace gtp;

namespace {
struct TestTfmUnitGradientsPass
    : public PassWrapper<TestTfmUnitGradientsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestTfmUnitGradientsPass)

  StringRef getArgument() const final { return "test-tfm-unit-gradients"; }
  StringRef getDescription() const final {
    return "make every gradient of the training step 1";
  }
  void runOnOperation() override;
};
} // namespace

/// 1/k rounded to the type, if k of it make exactly 1.
static std::optional<double> unitShare(FloatType type, int64_t microbatches) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  bool inexact;
  llvm::APFloat share(1.0 / static_cast<double>(microbatches));
  share.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  llvm::APFloat sum = llvm::APFloat::getZero(semantics);
  for (int64_t j = 0; j < microbatches; ++j)
    sum.add(share, llvm::APFloat::rmNearestTiesToEven);
  if (!sum.isExactlyValue(1.0))
    return std::nullopt;
  return share.convertToDouble();
}

void TestTfmUnitGradientsPass::runOnOperation() {
  auto step =
      getOperation().lookupSymbol<func::FuncOp>(tfm::kTrainStepFunction);
  tfm::MicrobatchesOp microbatches;
  if (step)
    step.walk([&](tfm::MicrobatchesOp op) { microbatches = op; });
  if (!microbatches) {
    getOperation().emitError("expects a training step; run tfm-differentiate");
    return signalPassFailure();
  }
  int64_t count = microbatches.getMicrobatchCount();
  Block &body = microbatches.getBody().front();
  Operation *yield = body.getTerminator();
  OpBuilder builder(yield);
  for (auto cotangent : body.getOps<tfm::FullOp>())
    if (cast<RankedTensorType>(cotangent.getType()).getRank() == 0)
      cotangent.setValueAttr(builder.getF64FloatAttr(0));
  // All that is yielded but the loss.
  for (OpOperand &operand : yield->getOpOperands().drop_back()) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    std::optional<double> share =
        unitShare(cast<FloatType>(type.getElementType()), count);
    if (!share) {
      microbatches.emitError()
          << "sums of 1/" << count << " over " << count
          << " microbatches are not exactly 1 in " << type.getElementType();
      return signalPassFailure();
    }
    Location loc = operand.get().getLoc();
    Value unit = tfm::FullOp::create(builder, loc, type,
                                     builder.getF64FloatAttr(*share));
    operand.set(tfm::AddOp::create(builder, loc, type,
                                   ValueRange{operand.get(), unit}));
  }
}

void gtp::test::registerTestTfmUnitGradients() {
  PassRegistration<TestTfmUnitGradientsPass>();
}
