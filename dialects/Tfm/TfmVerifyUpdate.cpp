//===- TfmVerifyUpdate.cpp - Shapes of clipping and optimizers ------------===//

#include "TfmExpect.h"

using namespace mlir;
using namespace gtp::tfm;

LogicalResult CountLabelsOp::verify() {
  if (getSequences() && typeOf(getLabels()).getRank() == 0)
    return emitOpError("counts sequences of labels without a dimension, "
                       "expected one along the sequence");
  return success();
}

LogicalResult SumSquaresOp::verify() {
  return expectElement(*this, "result", getResult(),
                       Float64Type::get(getContext()));
}

LogicalResult ClipScaleOp::verify() {
  if (getMaxNorm().isNegative() || getMaxNorm().isNaN())
    return emitOpError("has max_norm ")
           << getMaxNorm().convertToDouble() << ", expected 0 (off) or more";
  return failure(failed(expectElement(*this, "sum_squares", getSumSquares(),
                                      Float64Type::get(getContext()))) ||
                 failed(expectLike(*this, "scale", getScale(), getNorm())));
}

/// What all optimizers have: `hyper`, a gradient and a new master of the
/// master's shape.
template <typename Update>
static LogicalResult verifyMaster(Update op) {
  Value master = op.getMaster();
  return failure(
      failed(expectShape(op, "gradient", op.getGradient(), shapeOf(master))) ||
      failed(expectShape(op, "hyper", op.getHyper(), {8})) ||
      failed(expectLike(op, "new_master", op.getNewMaster(), master)));
}

/// A published copy only where its type differs.
template <typename Update>
static LogicalResult verifyUpdate(Update op) {
  Value master = op.getMaster();
  if (failed(verifyMaster(op)))
    return failure();
  if (!op.getCompute())
    return success();
  if (elementOf(op.getCompute()) == elementOf(master))
    return op.emitOpError("publishes a copy of the master's own element type ")
           << elementOf(master) << "; expected none";
  return expectShape(op, "compute", op.getCompute(), shapeOf(master));
}

template <typename Update>
static LogicalResult verifyMoments(Update op) {
  return failure(
      failed(expectShape(op, "m", op.getM(), shapeOf(op.getMaster()))) ||
      failed(expectLike(op, "v", op.getV(), op.getM())) ||
      failed(expectLike(op, "new_m", op.getNewM(), op.getM())) ||
      failed(expectLike(op, "new_v", op.getNewV(), op.getV())));
}

template <typename Update>
static LogicalResult verifyRemainder(Update op) {
  Value remainder = op.getRemainder();
  return failure(
      failed(
          expectShape(op, "remainder", remainder, shapeOf(op.getMaster()))) ||
      failed(expectLike(op, "new_remainder", op.getNewRemainder(), remainder)));
}

LogicalResult AdamwOp::verify() {
  return failure(failed(verifyUpdate(*this)) || failed(verifyMoments(*this)));
}

LogicalResult AdamwSplitOp::verify() {
  return failure(failed(verifyMaster(*this)) ||
                 failed(verifyRemainder(*this)) ||
                 failed(verifyMoments(*this)));
}

LogicalResult SgdOp::verify() { return verifyUpdate(*this); }

LogicalResult SgdSplitOp::verify() {
  return failure(failed(verifyMaster(*this)) || failed(verifyRemainder(*this)));
}

LogicalResult FullOp::verify() { return success(); }
