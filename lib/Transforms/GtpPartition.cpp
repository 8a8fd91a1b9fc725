//===- GtpPartition.cpp - From conversions to collectives -----------------===//

#include "gtp/Analysis/PlacementConversion.h"
#include "gtp/Analysis/PlacementVerification.h"
#include "gtp/Transforms/Passes.h"

#include "dialects/Tfm/TfmDialect.h"

namespace gtp {
#define GEN_PASS_DEF_GTPPARTITIONPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

namespace {

/// Replaces the conversions that gather weights. Uses of a weight with no use
/// of another between them are one interval and share one gather, right before
/// the first.
class WeightGatherer {
public:
  void run(func::FuncOp function);

private:
  Value gather(ConvertOp convert, Operation *user);
  /// Whether a value that the block reports depends on an op.
  Plane planeOf(Operation *op);
  const DenseSet<Operation *> &reportedOps(Block *block);

  /// The interval that uses can still join.
  struct {
    Value weight, full;
    Block *block = nullptr;
  } open;
  int64_t intervals = 0;
  DenseMap<Block *, DenseSet<Operation *>> reported;
};

struct GtpPartitionPass
    : public gtp::impl::GtpPartitionPassBase<GtpPartitionPass> {
  using GtpPartitionPassBase::GtpPartitionPassBase;
  void runOnOperation() override;

private:
  LogicalResult readReduceType();
  void replace(ConvertOp convert, ArrayRef<ConversionStep> steps);
  Value apply(OpBuilder &builder, Location loc, Value value,
              const ConversionStep &step);
  Type wireOf(RankedTensorType type);

  Type reduceType; ///< null: the type of what is reduced
};

} // namespace

static ArrayAttr toAttr(OpBuilder &builder, ArrayRef<StringAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

//===----------------------------------------------------------------------===//
// Gathers of weights
//===----------------------------------------------------------------------===//

/// Whether a conversion gathers the shards of a value that the function takes,
/// which is the same at any time of the step.
static bool gathersWeight(ConvertOp convert) {
  auto argument = dyn_cast<BlockArgument>(convert.getSource());
  PlacementAttr from = placementOf(convert.getSource());
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp()) &&
         from.storageDim() &&
         placementOf(convert.getResult()) == from.withoutStorage();
}

const DenseSet<Operation *> &WeightGatherer::reportedOps(Block *block) {
  auto [entry, isNew] = reported.try_emplace(block);
  DenseSet<Operation *> &ops = entry->second;
  if (!isNew)
    return ops;
  // Scalars are what a loop reports (the loss), the rest are gradients.
  for (Value value : block->getTerminator()->getOperands())
    if (cast<RankedTensorType>(value.getType()).getRank() == 0)
      if (Operation *op = value.getDefiningOp())
        ops.insert(op);
  for (Operation &op : llvm::reverse(*block))
    if (ops.contains(&op))
      for (Value operand : op.getOperands())
        if (Operation *producer = operand.getDefiningOp())
          ops.insert(producer);
  return ops;
}

Plane WeightGatherer::planeOf(Operation *op) {
  const DenseSet<Operation *> &ops = reportedOps(op->getBlock());
  return ops.empty() || ops.contains(op) ? Plane::Forward : Plane::Backward;
}

Value WeightGatherer::gather(ConvertOp convert, Operation *user) {
  if (open.weight != convert.getSource() || open.block != user->getBlock()) {
    OpBuilder builder(user);
    open.weight = convert.getSource();
    open.block = user->getBlock();
    open.full =
        MaterializeOp::create(builder, user->getLoc(), convert.getType(),
                              open.weight, planeOf(user), intervals++);
  }
  return open.full;
}

void WeightGatherer::run(func::FuncOp function) {
  SmallVector<ConvertOp> converts;
  SmallVector<OpOperand *> uses;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto convert = dyn_cast<ConvertOp>(op))
      if (gathersWeight(convert))
        converts.push_back(convert);
    for (OpOperand &operand : op->getOpOperands())
      if (auto convert = operand.get().getDefiningOp<ConvertOp>())
        if (gathersWeight(convert))
          uses.push_back(&operand);
  });
  for (OpOperand *use : uses)
    use->set(gather(use->get().getDefiningOp<ConvertOp>(), use->getOwner()));
  for (ConvertOp convert : converts)
    convert.erase();
}

//===----------------------------------------------------------------------===//
// Other conversions
//===----------------------------------------------------------------------===//

Type GtpPartitionPass::wireOf(RankedTensorType type) {
  // Scalars (loss, counts, norms) travel as they are: their bytes are nothing.
  Type element = type.getElementType();
  return reduceType && type.getRank() > 0 && isa<FloatType>(element)
             ? reduceType
             : element;
}

Value GtpPartitionPass::apply(OpBuilder &builder, Location loc, Value value,
                              const ConversionStep &step) {
  RankedTensorType type =
      localType(getElementTypeOrSelf(value.getType()), step.result);
  ArrayAttr axes = toAttr(builder, step.axes);
  switch (step.kind) {
  case ConversionStep::Kind::AllGather:
    return AllGatherOp::create(builder, loc, type, value, step.dim, axes);
  case ConversionStep::Kind::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, value, step.dim, axes,
                                   TypeAttr::get(wireOf(type)));
  case ConversionStep::Kind::AllReduce:
    return AllReduceOp::create(builder, loc, type, value, axes,
                               TypeAttr::get(wireOf(type)));
  case ConversionStep::Kind::Slice:
    return SliceOp::create(builder, loc, type, value, step.dim, axes);
  case ConversionStep::Kind::KeepFirst:
    return KeepFirstOp::create(builder, loc, type, value, axes);
  }
  llvm_unreachable("all kinds are handled");
}

void GtpPartitionPass::replace(ConvertOp convert,
                               ArrayRef<ConversionStep> steps) {
  OpBuilder builder(convert);
  Value value = convert.getSource();
  for (const ConversionStep &step : steps)
    value = apply(builder, convert.getLoc(), value, step);
  convert.getResult().replaceAllUsesWith(value);
  convert.erase();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static void setLocalTypes(func::FuncOp function) {
  auto localize = [](Value value) {
    if (PlacementAttr placement = placementOf(value))
      value.setType(
          localType(getElementTypeOrSelf(value.getType()), placement));
  };
  function.walk([&](Operation *op) {
    for (Value result : op->getResults())
      localize(result);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        localize(argument);
  });
  Block &entry = function.getBody().front();
  function.setFunctionType(
      FunctionType::get(function.getContext(), entry.getArgumentTypes(),
                        entry.getTerminator()->getOperandTypes()));
}

LogicalResult GtpPartitionPass::readReduceType() {
  MLIRContext *context = &getContext();
  reduceType = {};
  if (reduceDtype.empty())
    return success();
  if (reduceDtype == "f32")
    reduceType = Float32Type::get(context);
  else if (reduceDtype == "bf16")
    reduceType = BFloat16Type::get(context);
  else
    return getOperation().emitError()
           << "gtp-partition: reduce-dtype is \"" << reduceDtype
           << "\", expected f32 or bf16";
  return success();
}

void GtpPartitionPass::runOnOperation() {
  func::FuncOp function = getOperation();
  if (function.isDeclaration())
    return;
  if (failed(readReduceType()))
    return signalPassFailure();
  if (function->hasAttr(GtpDialect::kPartitionedAttr)) {
    function.emitError() << "gtp-partition: is partitioned already";
    return signalPassFailure();
  }
  if (failed(verifyPlacements(function)))
    return signalPassFailure();

  // All is planned before anything changes.
  SmallVector<std::pair<ConvertOp, SmallVector<ConversionStep>>> conversions;
  WalkResult walked = function.walk([&](ConvertOp convert) -> WalkResult {
    if (gathersWeight(convert))
      return success();
    FailureOr<SmallVector<ConversionStep>> steps = planConversion(
        placementOf(convert.getSource()), placementOf(convert.getResult()),
        [&] { return convert.emitOpError("has "); });
    if (failed(steps))
      return failure();
    conversions.emplace_back(convert, std::move(*steps));
    return success();
  });
  if (walked.wasInterrupted())
    return signalPassFailure();

  setLocalTypes(function);
  for (auto &[convert, steps] : conversions)
    replace(convert, steps);
  WeightGatherer().run(function);
  function->setAttr(GtpDialect::kPartitionedAttr, UnitAttr::get(&getContext()));
  if (failed(verifyPlacements(function)))
    signalPassFailure();
}
