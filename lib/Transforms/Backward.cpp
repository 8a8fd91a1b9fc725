//===- Backward.cpp - Reverse-mode differentiation of a block -------------===//

#include "Backward.h"

#include "EvalStep.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::tfm;

Value Backward::sum(ArrayRef<Value> parts, Type element, Location loc) {
  SmallVector<Value> values;
  for (Value part : parts) {
    auto type = cast<RankedTensorType>(part.getType());
    if (type.getElementType() != element)
      part = CastOp::create(builder, loc, withElementType(type, element), part);
    values.push_back(part);
  }
  if (values.size() == 1)
    return values.front();
  return AddOp::create(builder, loc, values.front().getType(), values);
}

LogicalResult Backward::run(ArrayRef<Operation *> ops, Value loss) {
  for (Operation *op : ops)
    if (llvm::any_of(op->getOperands(),
                     [&](Value operand) { return active.contains(operand); }))
      active.insert(op->result_begin(), op->result_end());
  if (!active.contains(loss))
    return emitError(loss.getLoc(), "the loss depends on no parameter");

  contributions[loss].push_back(
      FullOp::create(builder, nameLoc(loss.getContext(), "loss.grad"),
                     loss.getType(), builder.getF64FloatAttr(1.0)));
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<bool> needed;
    for (Value operand : op->getOperands())
      needed.push_back(active.contains(operand));
    if (!llvm::is_contained(needed, true))
      continue;
    SmallVector<Value> cotangents;
    bool used = false;
    for (Value result : op->getResults()) {
      auto found = contributions.find(result);
      cotangents.push_back(Value());
      if (found == contributions.end())
        continue;
      used = true;
      cotangents.back() =
          sum(found->second,
              cast<RankedTensorType>(result.getType()).getElementType(),
              gradientLoc(op, ".grad"));
      contributions.erase(found);
    }
    if (!used)
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError(
          "has no derivative, but the loss depends on parameters through it");
    SmallVector<Value> products =
        differentiable.buildVjp(builder, cotangents, needed, options);
    if (products.empty())
      return failure();
    for (auto [operand, product] : llvm::zip_equal(op->getOperands(), products))
      if (product)
        contributions[operand].push_back(product);
  }
  return success();
}

Value Backward::takeGradient(Value input, Type element, Location loc) {
  SmallVector<Value, 1> parts = std::move(contributions[input]);
  Operation *last = parts.front().getDefiningOp();
  for (Value part : parts)
    if (last->isBeforeInBlock(part.getDefiningOp()))
      last = part.getDefiningOp();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(last);
  return sum(parts, element, loc);
}
