//===- GtpPlace.cpp - Placements of every value of the training step ------===//

#include "gtp/Analysis/PlacementInference.h"
#include "gtp/Analysis/PlacementVerification.h"
#include "gtp/Transforms/Passes.h"
#include "gtp/Transforms/PlacementPolicy.h"

#include "llvm/ADT/TypeSwitch.h"

namespace gtp {
#define GEN_PASS_DEF_GTPPLACEPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

namespace {

/// Builds the placed copy of a function.
class Placer {
public:
  Placer(MeshAttr mesh, func::FuncOp function)
      : mesh(mesh), function(function), policy(mesh, function),
        builder(function) {}

  /// The new function, next to the old one.
  FailureOr<func::FuncOp> run();

private:
  LogicalResult placeArguments();
  LogicalResult placeBlock(Block &block);
  LogicalResult placeOp(tfm::PlacementOpInterface op);
  LogicalResult placeMicrobatches(tfm::MicrobatchesOp op);
  LogicalResult placeYield(tfm::YieldOp op);
  LogicalResult placeReturn(func::ReturnOp op);

  /// `value` under a placement for a use at `loc`, at the builder or, when all
  /// uses may share it, behind its definition.
  Value convert(Value value, PlacementAttr target, Location loc);
  /// The placement of the parameter that an optimizer updates with `value`, of
  /// the old function; null when none does.
  PlacementAttr findUpdated(Value value);
  /// Appends a copy of `op` without regions.
  Operation *append(Operation *op, ValueRange operands);
  void mapResults(Operation *op, Operation *placed);

  MeshAttr mesh;
  func::FuncOp function, placed;
  PlacementPolicy policy;
  OpBuilder builder;
  DenseMap<Value, Value> placedValues;
  DenseMap<std::pair<Value, Attribute>, Value> conversions;
};

struct GtpPlacePass : public gtp::impl::GtpPlacePassBase<GtpPlacePass> {
  using GtpPlacePassBase::GtpPlacePassBase;
  void runOnOperation() override;
};

} // namespace

static void setPlacement(Value value, PlacementAttr placement) {
  value.setType(logicalType(getElementTypeOrSelf(value.getType()), placement));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value Placer::convert(Value value, PlacementAttr target, Location loc) {
  PlacementAttr from = placementOf(value);
  if (from == target)
    return value;
  Type type = logicalType(getElementTypeOrSelf(value.getType()), target);
  // What a use has gathered it drops again: the next use gathers anew.
  if (from.isStorageCut() && !target.isStorageCut())
    return ConvertOp::create(builder, loc, type, value);
  Value &converted = conversions[{value, target}];
  if (!converted) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(value);
    converted = ConvertOp::create(builder, value.getLoc(), type, value);
  }
  return converted;
}

PlacementAttr Placer::findUpdated(Value value) {
  for (OpOperand &use : value.getUses()) {
    auto op = dyn_cast<tfm::PlacementOpInterface>(use.getOwner());
    if (!op)
      continue;
    tfm::PlacementRule rule = op.getPlacementRule();
    if (!rule.acceptsStorageCuts)
      continue;
    const auto &factors = rule.operands[use.getOperandNumber()];
    for (auto [other, operand] : llvm::enumerate(op->getOperands())) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (argument && argument.getOwner() == &function.getBody().front() &&
          rule.operands[other] == factors &&
          policy.isParameter(argument.getArgNumber()))
        return placementOf(placedValues.lookup(argument));
    }
    for (auto [index, result] : llvm::enumerate(op->getResults()))
      if (rule.results[index] == factors)
        if (PlacementAttr placement = findUpdated(result))
          return placement;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Operation *Placer::append(Operation *op, ValueRange operands) {
  Operation *copy = builder.insert(op->cloneWithoutRegions());
  copy->setOperands(operands);
  return copy;
}

void Placer::mapResults(Operation *op, Operation *copy) {
  for (auto [old, result] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    placedValues[old] = result;
}

LogicalResult Placer::placeOp(tfm::PlacementOpInterface op) {
  SmallVector<Value> operands;
  SmallVector<PlacementAttr> placements;
  SmallVector<Type> elements;
  SmallVector<RankedTensorType> results;
  for (Value operand : op->getOperands()) {
    operands.push_back(placedValues.lookup(operand));
    placements.push_back(placementOf(operands.back()));
    elements.push_back(getElementTypeOrSelf(operand.getType()));
  }
  for (Type type : op->getResultTypes())
    results.push_back(cast<RankedTensorType>(type));
  InferredPlacements inferred = inferPlacements(op.getPlacementRule(), mesh,
                                                placements, elements, results);
  for (auto [operand, placement] : llvm::zip_equal(operands, inferred.operands))
    operand = convert(operand, placement, op.getLoc());
  Operation *copy = append(op, operands);
  for (auto [result, placement] :
       llvm::zip_equal(copy->getResults(), inferred.results))
    setPlacement(result, placement);
  mapResults(op, copy);
  return success();
}

LogicalResult Placer::placeMicrobatches(tfm::MicrobatchesOp op) {
  SmallVector<Value> inputs;
  for (Value input : op.getInputs()) {
    Value value = placedValues.lookup(input);
    PlacementAttr placement = placementOf(value).withoutPartial();
    DimAttr first = placement.getDims().front();
    if (first.isCut())
      placement = placement.withDim(
          0, DimAttr::get(mesh.getContext(), first.getSize()));
    inputs.push_back(convert(value, placement, op.getLoc()));
  }
  Operation *copy = append(op, inputs);
  Block &body = copy->getRegion(0).emplaceBlock();
  for (auto [argument, input] :
       llvm::zip_equal(op.getBody().getArguments(), inputs)) {
    PlacementAttr all = placementOf(input);
    BlockArgument one = body.addArgument(argument.getType(), argument.getLoc());
    setPlacement(one, all.withDims(all.getDims().drop_front()));
    placedValues[argument] = one;
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    if (failed(placeBlock(op.getBody().front())))
      return failure();
  }
  for (auto [result, yielded] :
       llvm::zip_equal(copy->getResults(), body.getTerminator()->getOperands()))
    setPlacement(result, placementOf(yielded));
  mapResults(op, copy);
  return success();
}

LogicalResult Placer::placeYield(tfm::YieldOp op) {
  SmallVector<Value> values;
  for (auto [result, yielded] :
       llvm::zip_equal(op->getParentOp()->getResults(), op.getValues())) {
    Value value = placedValues.lookup(yielded);
    // A gradient accumulates where its parameter rests; other partial sums
    // stay partial until they are needed.
    PlacementAttr placement = findUpdated(result);
    if (!placement)
      placement = placementOf(value);
    if (placement.getPartialKind() == PartialKind::Max)
      placement = placement.withoutPartial();
    values.push_back(convert(value, placement, op.getLoc()));
  }
  append(op, values);
  return success();
}

LogicalResult Placer::placeReturn(func::ReturnOp op) {
  SmallVector<Value> values;
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    Value value = placedValues.lookup(operand);
    PlacementAttr placement =
        PlacementAttr::replicated(mesh, placementOf(value).logicalShape());
    if (auto tied =
            function.getResultAttrOfType<IntegerAttr>(index, tfm::kTiedToAttr))
      placement = placementOf(placed.getArgument(tied.getInt()));
    values.push_back(convert(value, placement, op.getLoc()));
  }
  append(op, values);
  return success();
}

LogicalResult Placer::placeBlock(Block &block) {
  for (Operation &op : block) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](tfm::PlacementOpInterface op) { return placeOp(op); })
            .Case([&](tfm::MicrobatchesOp op) { return placeMicrobatches(op); })
            .Case([&](tfm::YieldOp op) { return placeYield(op); })
            .Case([&](func::ReturnOp op) { return placeReturn(op); })
            .Default([&](Operation *op) {
              return op->emitOpError(
                  "has no placement rule; gtp-place takes the training step "
                  "that tfm-differentiate makes");
            });
    if (failed(result))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult Placer::placeArguments() {
  Block &entry = placed.getBody().emplaceBlock();
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<PlacementAttr> placement =
        policy.placeArgument(argument.getArgNumber());
    if (failed(placement))
      return failure();
    BlockArgument copy =
        entry.addArgument(argument.getType(), argument.getLoc());
    setPlacement(copy, *placement);
    placedValues[argument] = copy;
  }
  return success();
}

FailureOr<func::FuncOp> Placer::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "expected a function of one block";
  placed = cast<func::FuncOp>(builder.insert(function->cloneWithoutRegions()));
  placed->setAttr(GtpDialect::kMeshAttr, mesh);
  if (failed(placeArguments()))
    return failure();
  Block &entry = placed.getBody().front();
  builder.setInsertionPointToEnd(&entry);
  if (failed(placeBlock(function.getBody().front())))
    return failure();
  placed.setFunctionType(builder.getFunctionType(
      entry.getArgumentTypes(), entry.getTerminator()->getOperandTypes()));
  return placed;
}

void GtpPlacePass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<MeshAttr> parsed = parseMesh(
      &getContext(), mesh, [&] { return module.emitError() << "gtp-place: "; });
  if (failed(parsed))
    return signalPassFailure();
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (function.isDeclaration())
      continue;
    FailureOr<func::FuncOp> placed = Placer(*parsed, function).run();
    if (failed(placed))
      return signalPassFailure();
    function.erase();
    if (failed(verifyPlacements(*placed)))
      return signalPassFailure();
  }
}
