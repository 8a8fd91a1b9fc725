//===- PlacementVerification.cpp - Every op is placed by its rule ---------===//

#include "gtp/Analysis/PlacementVerification.h"
#include "gtp/Analysis/PlacementInference.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

namespace {
class Verifier {
public:
  explicit Verifier(func::FuncOp function)
      : function(function),
        mesh(function->getAttrOfType<MeshAttr>(GtpDialect::kMeshAttr)),
        partitioned(function->hasAttr(GtpDialect::kPartitionedAttr)) {}

  LogicalResult run();

private:
  LogicalResult verifyType(Value value, Operation *op);
  LogicalResult verifyTypes(Operation *op);
  LogicalResult verifyRule(tfm::PlacementOpInterface op);
  LogicalResult verifyMicrobatches(tfm::MicrobatchesOp op);
  LogicalResult verifyReturn(func::ReturnOp op);

  func::FuncOp function;
  MeshAttr mesh;
  bool partitioned;
};
} // namespace

LogicalResult Verifier::verifyType(Value value, Operation *op) {
  Type type = value.getType();
  if (!isa<RankedTensorType>(type))
    return success();
  PlacementAttr placement = placementOf(type);
  if (!placement)
    return op->emitOpError()
           << "has a tensor without a placement, of type " << type;
  if (placement.getMesh() != mesh)
    return op->emitOpError() << "has a tensor placed on " << placement.getMesh()
                             << " in a function of " << mesh;
  if (partitioned ? hasLocalShape(type) : hasLogicalShape(type))
    return success();
  Type element = cast<RankedTensorType>(type).getElementType();
  return op->emitOpError() << "has a tensor of type " << type
                           << " in a function that is "
                           << (partitioned ? "" : "not ")
                           << "partitioned, expected "
                           << (partitioned ? localType(element, placement)
                                           : logicalType(element, placement));
}

LogicalResult Verifier::verifyTypes(Operation *op) {
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (failed(verifyType(argument, op)))
        return failure();
  for (Value result : op->getResults())
    if (failed(verifyType(result, op)))
      return failure();
  return success();
}

LogicalResult Verifier::verifyRule(tfm::PlacementOpInterface op) {
  SmallVector<PlacementAttr> operands, results;
  SmallVector<Type> elements;
  SmallVector<RankedTensorType> logical;
  for (Value operand : op->getOperands()) {
    operands.push_back(placementOf(operand));
    elements.push_back(getElementTypeOrSelf(operand.getType()));
  }
  for (Value result : op->getResults()) {
    results.push_back(placementOf(result));
    logical.push_back(
        logicalType(getElementTypeOrSelf(result.getType()), results.back()));
  }
  InferredPlacements inferred =
      inferPlacements(op.getPlacementRule(), mesh, operands, elements, logical);
  auto compare = [&](const char *what, ArrayRef<PlacementAttr> found,
                     ArrayRef<PlacementAttr> expected) -> LogicalResult {
    for (unsigned i = 0; i < found.size(); ++i)
      if (found[i] != expected[i])
        return op->emitOpError() << what << " #" << i << " has placement "
                                 << found[i] << ", expected " << expected[i];
    return success();
  };
  return failure(failed(compare("operand", operands, inferred.operands)) ||
                 failed(compare("result", results, inferred.results)));
}

LogicalResult Verifier::verifyMicrobatches(tfm::MicrobatchesOp op) {
  for (auto [input, argument] :
       llvm::zip_equal(op.getInputs(), op.getBody().getArguments())) {
    PlacementAttr outside = placementOf(input);
    PlacementAttr inside = placementOf(argument);
    if (outside.isPartial() || outside.getDims().front().isCut())
      return op.emitOpError() << "expected inputs that are neither partial nor "
                                 "cut along dimension 0, found "
                              << outside;
    if (outside.withDims(outside.getDims().drop_front()) != inside)
      return op.emitOpError() << "input has placement " << outside
                              << " but one microbatch of it " << inside;
  }
  for (Value result : op.getResults())
    if (placementOf(result).getPartialKind() == PartialKind::Max)
      return op.emitOpError() << "sums partial maxima, " << placementOf(result);
  return success();
}

LogicalResult Verifier::verifyReturn(func::ReturnOp op) {
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    PlacementAttr placement = placementOf(value);
    auto tied =
        function.getResultAttrOfType<IntegerAttr>(index, tfm::kTiedToAttr);
    PlacementAttr expected =
        tied ? placementOf(function.getArgument(tied.getInt()))
             : PlacementAttr::replicated(mesh, placement.logicalShape());
    if (placement != expected)
      return op.emitOpError() << "returns " << placement << " as result #"
                              << index << ", expected " << expected;
  }
  return success();
}

LogicalResult Verifier::run() {
  if (!mesh)
    return function.emitOpError()
           << "expected attribute " << GtpDialect::kMeshAttr
           << ": its values have no placement";
  // Types first: the rules of ops look at operands of other blocks.
  WalkResult walked = function.walk([&](Operation *op) {
    return failed(verifyTypes(op)) ? WalkResult::interrupt()
                                   : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return success(
      !function
           .walk([&](Operation *op) -> WalkResult {
             if (auto placed = dyn_cast<tfm::PlacementOpInterface>(op))
               return verifyRule(placed);
             if (auto loop = dyn_cast<tfm::MicrobatchesOp>(op))
               return verifyMicrobatches(loop);
             if (auto exit = dyn_cast<func::ReturnOp>(op))
               return verifyReturn(exit);
             if (partitioned && isa<ConvertOp>(op))
               return op->emitOpError() << "is left in a partitioned function";
             return success();
           })
           .wasInterrupted());
}

LogicalResult gtp::verifyPlacements(func::FuncOp function) {
  return Verifier(function).run();
}
