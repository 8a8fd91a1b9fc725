//===- TfmCost.cpp - Work of ops that a matrix unit does ------------------===//
//
// Every other op moves its operands and results once: the interface's default.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tfm/TfmDialect.h"

using namespace mlir;
using namespace gtp::tfm;

static OpCost matrixCost(Operation *op, int64_t flops) {
  OpCost cost;
  cost.resource = OpCost::Resource::Matrix;
  cost.flops = flops;
  cost.bytes =
      tensorBytes(op->getOperandTypes()) + tensorBytes(op->getResultTypes());
  return cost;
}

/// 2 m n k of a product whose operand `[..., k]` meets a weight `[n, k]`.
static int64_t productFlops(RankedTensorType activation,
                            RankedTensorType weight, unsigned contracted) {
  return 2 *
         (activation.getNumElements() /
          std::max<int64_t>(1, weight.getDimSize(contracted))) *
         weight.getNumElements();
}

OpCost LinearOp::getCost() {
  return matrixCost(*this, productFlops(getX().getType(), getW().getType(), 1));
}

OpCost LinearBiasOp::getCost() {
  return matrixCost(*this, productFlops(getX().getType(), getW().getType(), 1));
}

OpCost LinearDgradOp::getCost() {
  return matrixCost(*this,
                    productFlops(getDy().getType(), getW().getType(), 0));
}

OpCost LinearWgradOp::getCost() {
  return matrixCost(*this,
                    productFlops(getDy().getType(), getDw().getType(), 0));
}

/// `products` of [T, head_dim] x [head_dim, T] a head; half of them when
/// causal, and no more than a window of them. Documents may make it less, by as
/// much as only the data says.
template <typename Attention>
static int64_t attentionFlops(Attention op, int64_t products) {
  RankedTensorType query = op.getQ().getType();
  int64_t sequence = query.getDimSize(query.getRank() - 2);
  // Halves of the number of keys that a query sees on average.
  int64_t keys = op.getCausal() ? sequence : 2 * sequence;
  if (int64_t window = op.getWindow())
    keys = std::min(keys, 2 * window);
  return products * query.getNumElements() * keys;
}

OpCost AttentionOp::getCost() {
  return matrixCost(*this, attentionFlops(*this, 2));
}

OpCost AttentionGradOp::getCost() {
  // q kᵀ again, then dout vᵀ, dv, dq and dk.
  return matrixCost(*this, attentionFlops(*this, 5));
}
