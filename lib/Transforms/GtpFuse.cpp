//===- GtpFuse.cpp - One kernel of ops that pass a value on ---------------===//

#include "dialects/Gtp/GtpDialect.h"
#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Analysis/PlacementVerification.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gtp {
#define GEN_PASS_DEF_GTPFUSEPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

using namespace mlir;
using namespace gtp;
using namespace gtp::tfm;

/// Whether `value` can come from an op in the place of `op`: all who use it but
/// `op` itself stand behind it, in its block.
static bool canComeFrom(Value value, Operation *op) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == op ||
           (user->getBlock() == op->getBlock() && op->isBeforeInBlock(user));
  });
}

/// Whether `value` is there in the place of `op`.
static bool isThereAt(Value value, Operation *op) {
  if (value.getParentBlock() != op->getBlock())
    return true; // of a block around it
  Operation *def = value.getDefiningOp();
  return !def || def->isBeforeInBlock(op);
}

/// The op of a kind that makes `value`, before `op` in its block.
template <typename Op>
static Op makerOf(Value value, Operation *op) {
  auto maker = value.getDefiningOp<Op>();
  return maker && maker->getBlock() == op->getBlock() ? maker : Op();
}

//===----------------------------------------------------------------------===//
// One function a pair of ops; each is called on the op that is the last of the
// two and says whether it replaced them.
//===----------------------------------------------------------------------===//

/// The sum of two and its norm.
template <typename Norm, typename AddNorm>
static bool fuseAddNorm(Operation *op) {
  auto norm = dyn_cast<Norm>(op);
  auto add = norm ? makerOf<AddOp>(norm.getX(), op) : AddOp();
  if (!add || add.getInputs().size() != 2 || !canComeFrom(add.getResult(), op))
    return false;
  OpBuilder builder(op);
  // All attributes are the norm's.
  Type type = add.getResult().getType();
  auto fused = AddNorm::create(
      builder, op->getLoc(), TypeRange{type, norm.getResult().getType()},
      ValueRange{add.getInputs()[0], add.getInputs()[1], norm.getWeight()},
      op->getAttrs());
  norm.getResult().replaceAllUsesWith(fused.getResult());
  norm.erase();
  add.getResult().replaceAllUsesWith(fused.getSum());
  add.erase();
  return true;
}

/// The gradient of a norm's input and the sum of it and another.
template <typename NormGrad, typename NormGradAdd>
static bool fuseNormGradAdd(Operation *op) {
  auto add = dyn_cast<AddOp>(op);
  if (!add || add.getInputs().size() != 2)
    return false;
  for (unsigned index : {1, 0}) {
    Value residual = add.getInputs()[1 - index];
    auto norm = makerOf<NormGrad>(add.getInputs()[index], op);
    // Where the norm's gradient stands: its other result may be used before the
    // sum.
    if (!norm || norm.getDx() != add.getInputs()[index] ||
        !norm.getDx().hasOneUse() || !isThereAt(residual, norm))
      continue;
    OpBuilder builder(norm);
    auto fused = NormGradAdd::create(
        builder, norm.getLoc(), norm->getResultTypes(),
        ValueRange{norm.getDy(), norm.getX(), norm.getWeight(), residual},
        norm->getAttrs());
    add.getResult().replaceAllUsesWith(fused.getDx());
    add.erase();
    norm->replaceAllUsesWith(fused->getResults());
    norm.erase();
    return true;
  }
  return false;
}

/// The loss and the gradient of logits that nothing else reads.
static bool fuseCrossEntropy(Operation *op) {
  auto grad = dyn_cast<CrossEntropyGradOp>(op);
  if (!grad)
    return false;
  CrossEntropyOp loss;
  for (Operation *user : grad.getLogits().getUsers()) {
    if (user == op)
      continue;
    auto other = dyn_cast<CrossEntropyOp>(user);
    if (loss || !other)
      return false;
    loss = other;
  }
  if (!loss || loss->getBlock() != op->getBlock() ||
      llvm::is_contained(op->getOperands(), loss.getLoss()) ||
      !loss->isBeforeInBlock(op) || !canComeFrom(loss.getLoss(), op) ||
      !llvm::equal(loss->getOperands(), op->getOperands().take_front(3)) ||
      loss->getAttrDictionary() != op->getAttrDictionary())
    return false;
  OpBuilder builder(op);
  auto fused = CrossEntropyInPlaceOp::create(
      builder, loss.getLoc(),
      TypeRange{grad.getDlogits().getType(), loss.getLoss().getType()},
      op->getOperands(), op->getAttrs());
  grad.getDlogits().replaceAllUsesWith(fused.getDlogits());
  grad.erase();
  loss.getLoss().replaceAllUsesWith(fused.getLoss());
  loss.erase();
  return true;
}

/// A product and the bias that is added to nothing else of it. Behind a
/// reduction the bias is not the product's: each rank would add it.
static bool fuseLinearBias(Operation *op) {
  auto bias = dyn_cast<AddBiasOp>(op);
  auto linear = bias ? makerOf<LinearOp>(bias.getX(), op) : LinearOp();
  if (!linear || !linear.getResult().hasOneUse())
    return false;
  OpBuilder builder(op);
  auto fused = LinearBiasOp::create(
      builder, linear.getLoc(), bias.getResult().getType(),
      ValueRange{linear.getX(), linear.getW(), bias.getBias()}, op->getAttrs());
  bias.getResult().replaceAllUsesWith(fused.getResult());
  bias.erase();
  linear.erase();
  return true;
}

/// A bias and the activation behind it, where no product takes the bias. That
/// is the better of the two: the product adds it to what it has in registers,
/// and the activation reads one value and writes one. Here the product is
/// written without it first, and read again.
static bool fuseBiasGelu(Operation *op) {
  auto gelu = dyn_cast<GeluOp>(op);
  auto bias = gelu ? makerOf<AddBiasOp>(gelu.getX(), op) : AddBiasOp();
  if (!bias || !canComeFrom(bias.getResult(), op))
    return false;
  OpBuilder builder(op);
  auto fused = BiasGeluOp::create(
      builder, op->getLoc(),
      TypeRange{bias.getResult().getType(), gelu.getResult().getType()},
      bias->getOperands(), op->getAttrs());
  gelu.getResult().replaceAllUsesWith(fused.getResult());
  gelu.erase();
  bias.getResult().replaceAllUsesWith(fused.getSum());
  bias.erase();
  return true;
}

static constexpr bool (*kFusions[])(Operation *) = {
    fuseAddNorm<RmsNormOp, AddRmsNormOp>,
    fuseAddNorm<LayerNormOp, AddLayerNormOp>,
    fuseNormGradAdd<RmsNormGradOp, RmsNormGradAddOp>,
    fuseNormGradAdd<LayerNormGradOp, LayerNormGradAddOp>,
    fuseCrossEntropy,
    fuseLinearBias,
    fuseBiasGelu,
};

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct GtpFusePass : public gtp::impl::GtpFusePassBase<GtpFusePass> {
  using GtpFusePassBase::GtpFusePassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isDeclaration() || off)
      return;
    if (!function->hasAttr(dist::GtpDialect::kPartitionedAttr)) {
      function.emitError() << "gtp-fuse: is not partitioned; run "
                              "gtp-partition first";
      return signalPassFailure();
    }
    function.walk([](Block *block) {
      // What a fusion erases is its op and others before it. The bias of a
      // product stands before an activation, so the product has it first.
      for (Operation &op : llvm::make_early_inc_range(*block))
        llvm::any_of(kFusions, [&](auto fuse) { return fuse(&op); });
    });
    if (failed(verifyPlacements(function)))
      signalPassFailure();
  }
};
} // namespace
