//===- TfmVerify.cpp - Shapes of a model and its gradients ----------------===//

#include "TfmExpect.h"

using namespace mlir;
using namespace gtp::tfm;

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  if (failed(expectRank(*this, "table", getTable(), 2)))
    return failure();
  int64_t features = typeOf(getTable()).getDimSize(1);
  return failure(failed(expectShape(*this, "result", getResult(),
                                    withAppended(getIds(), features))) ||
                 failed(expectElement(*this, "result", getResult(),
                                      elementOf(getTable()))));
}

/// A weight of D elements whose D divides the features of x.
static LogicalResult verifyNormWeight(Operation *op, Value x, Value weight) {
  if (failed(expectRankAtLeast(op, "x", x, 1)) ||
      failed(expectRank(op, "weight", weight, 1)) ||
      failed(expectElement(op, "weight", weight, elementOf(x))))
    return failure();
  int64_t size = typeOf(weight).getDimSize(0);
  int64_t features = typeOf(x).getShape().back();
  if (size == 0 || features % size != 0)
    return op->emitOpError("has a weight of ")
           << size << " elements, expected a divisor of x's " << features
           << " features";
  return success();
}

LogicalResult RmsNormOp::verify() {
  return failure(failed(verifyNormWeight(*this, getX(), getWeight())) ||
                 failed(expectLike(*this, "result", getResult(), getX())));
}

LogicalResult LayerNormOp::verify() {
  return failure(failed(verifyNormWeight(*this, getX(), getWeight())) ||
                 failed(expectLike(*this, "result", getResult(), getX())));
}

LogicalResult AddBiasOp::verify() {
  if (failed(expectRankAtLeast(*this, "x", getX(), 1)))
    return failure();
  return failure(
      failed(expectShape(*this, "bias", getBias(), {shapeOf(getX()).back()})) ||
      failed(expectElement(*this, "bias", getBias(), elementOf(getX()))) ||
      failed(expectLike(*this, "result", getResult(), getX())));
}

LogicalResult DocumentStartsOp::verify() {
  if (getSeparator() > static_cast<uint64_t>(INT32_MAX))
    return emitOpError("has separator ")
           << getSeparator() << ", expected an id: 0 to " << INT32_MAX;
  return failure(
      failed(expectRankAtLeast(*this, "tokens", getTokens(), 1)) ||
      failed(expectShape(*this, "starts", getStarts(), shapeOf(getTokens()))));
}

/// Where documents start, if it is there: an index for each token of `x`, which
/// is `[.., T, H]`.
static LogicalResult verifyStarts(Operation *op, Value starts, Value x) {
  if (!starts)
    return success();
  return expectShape(op, "starts", starts,
                     Shape(typeOf(x).getShape().drop_back()));
}

/// x `[.., T, H]` and a table `[P, H]` with a row for each of T positions.
static LogicalResult verifyPositions(Operation *op, Value x, Value table,
                                     Value starts) {
  if (failed(expectRankAtLeast(op, "x", x, 2)) ||
      failed(expectRank(op, "the table", table, 2)) ||
      failed(verifyStarts(op, starts, x)))
    return failure();
  ArrayRef<int64_t> shape = typeOf(x).getShape();
  int64_t rows = typeOf(table).getDimSize(0),
          sequence = shape[shape.size() - 2];
  if (rows < sequence)
    return op->emitOpError("has a table of ")
           << rows << " positions, expected at least the sequence's "
           << sequence;
  return expectShape(op, "the table", table, {rows, shape.back()});
}

LogicalResult AddPositionsOp::verify() {
  return failure(
      failed(verifyPositions(*this, getX(), getTable(), getStarts())) ||
      failed(expectElement(*this, "table", getTable(), elementOf(getX()))) ||
      failed(expectLike(*this, "result", getResult(), getX())));
}

static LogicalResult verifyProduct(Operation *op, Value x, Value w,
                                   Value result) {
  if (failed(expectRankAtLeast(op, "x", x, 1)) ||
      failed(expectRank(op, "w", w, 2)) ||
      failed(expectElement(op, "w", w, elementOf(x))))
    return failure();
  Shape weight = shapeOf(w);
  return failure(
      failed(expectShape(op, "x", x, withLast(x, weight[1]))) ||
      failed(expectShape(op, "result", result, withLast(x, weight[0]))) ||
      failed(expectElement(op, "result", result, elementOf(x))));
}

LogicalResult LinearOp::verify() {
  return verifyProduct(*this, getX(), getW(), getResult());
}

LogicalResult RopeOp::verify() {
  if (failed(expectRankAtLeast(*this, "x", getX(), 2)) ||
      failed(verifyStarts(*this, getStarts(), getX())))
    return failure();
  int64_t headDim = getHeadDim();
  int64_t features = typeOf(getX()).getShape().back();
  if (headDim % 2 != 0)
    return emitOpError("has head_dim ") << headDim << ", expected an even one";
  if (features % headDim != 0)
    return emitOpError("has ")
           << features << " features, expected a multiple of head_dim "
           << headDim;
  int64_t pairs = getFrequencies().size();
  if (pairs < 1 || pairs > headDim / 2)
    return emitOpError("has ") << pairs << " frequencies, expected 1 to "
                               << headDim / 2 << ", one a pair of features";
  return expectLike(*this, "result", getResult(), getX());
}

/// q `[B, T, heads * d]`, k and v `[B, T, kv_heads * d]`, lse `[B, heads, T]`.
template <typename Attention>
static LogicalResult verifyAttention(Attention op) {
  if (failed(expectRank(op, "q", op.getQ(), 3)))
    return failure();
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads();
  Shape query = shapeOf(op.getQ());
  if (heads % kvHeads != 0)
    return op.emitOpError("has ")
           << heads << " heads, expected a multiple of the " << kvHeads
           << " key and value heads";
  if (query[2] % heads != 0)
    return op.emitOpError("has q of ")
           << query[2] << " features, expected a multiple of the " << heads
           << " heads";
  if (op.getWindow() < 0 || (op.getWindow() > 0 && !op.getCausal()))
    return op.emitOpError("has window ")
           << op.getWindow()
           << ", expected 0 (none), or more where attention is causal";
  if (op.getStarts() && !op.getCausal())
    return op.emitOpError("has starts of documents but is not causal; nothing "
                          "says where documents end");
  if (!op.getSoftcap().isFinite() ||
      (op.getSoftcap().isNegative() && !op.getSoftcap().isZero()))
    return op.emitOpError("has softcap ") << op.getSoftcap().convertToDouble()
                                          << ", expected 0 (none) or more";
  Shape keys = {query[0], query[1], query[2] / heads * kvHeads};
  return failure(
      failed(verifyStarts(op, op.getStarts(), op.getQ())) ||
      failed(expectShape(op, "k", op.getK(), keys)) ||
      failed(expectElement(op, "k", op.getK(), elementOf(op.getQ()))) ||
      failed(expectLike(op, "v", op.getV(), op.getK())) ||
      failed(
          expectShape(op, "lse", op.getLse(), {query[0], heads, query[1]})) ||
      failed(expectElement(op, "lse", op.getLse(), statisticsType(op.getQ()))));
}

LogicalResult AttentionOp::verify() {
  return failure(failed(verifyAttention(*this)) ||
                 failed(expectLike(*this, "result", getResult(), getQ())));
}

LogicalResult SwigluOp::verify() {
  return failure(failed(expectLike(*this, "up", getUp(), getGate())) ||
                 failed(expectLike(*this, "result", getResult(), getGate())));
}

LogicalResult GeluOp::verify() {
  return expectLike(*this, "result", getResult(), getX());
}

/// A cap that is no number above 0 caps nothing.
static LogicalResult verifyCap(Operation *op, const APFloat &cap) {
  if (cap.isFinite() && !cap.isNegative() && !cap.isZero())
    return success();
  return op->emitOpError("has cap ")
         << cap.convertToDouble() << ", expected a number above 0";
}

LogicalResult SoftcapOp::verify() {
  return failure(failed(verifyCap(*this, getCap())) ||
                 failed(expectLike(*this, "result", getResult(), getX())));
}

LogicalResult ScaleOp::verify() {
  return expectLike(*this, "result", getResult(), getX());
}

LogicalResult MulOp::verify() {
  return failure(failed(expectLike(*this, "b", getB(), getA())) ||
                 failed(expectLike(*this, "result", getResult(), getA())));
}

LogicalResult AddOp::verify() {
  if (getInputs().empty())
    return emitOpError("has no input");
  for (Value input : getInputs())
    if (failed(expectLike(*this, "an input", input, getResult())))
      return failure();
  return success();
}

/// `parts` are `whole` in pieces along the last dimension.
static LogicalResult verifyPieces(Operation *op, Value whole, ValueRange parts,
                                  StringRef name) {
  if (failed(expectRankAtLeast(op, "the whole", whole, 1)))
    return failure();
  if (parts.empty())
    return op->emitOpError("has no ") << name;
  int64_t total = 0;
  for (Value part : parts) {
    if (failed(expectRank(op, name, part, typeOf(whole).getRank())) ||
        failed(expectElement(op, name, part, elementOf(whole))) ||
        failed(expectShape(op, name, part,
                           withLast(whole, typeOf(part).getShape().back()))))
      return failure();
    total += typeOf(part).getShape().back();
  }
  if (total != typeOf(whole).getShape().back())
    return op->emitOpError("has pieces of ")
           << total << " features in all, expected "
           << typeOf(whole).getShape().back();
  return success();
}

LogicalResult SplitOp::verify() {
  return verifyPieces(*this, getX(), getResults(), "result");
}

LogicalResult ConcatOp::verify() {
  return verifyPieces(*this, getResult(), getInputs(), "input");
}

LogicalResult CastOp::verify() {
  return expectShape(*this, "result", getResult(), shapeOf(getX()));
}

/// Logits have one dimension more than labels.
static LogicalResult verifyLogits(Operation *op, Value logits, Value labels) {
  if (failed(expectRank(op, "logits", logits, typeOf(labels).getRank() + 1)))
    return failure();
  return expectShape(op, "labels", labels,
                     Shape(typeOf(logits).getShape().drop_back()));
}

LogicalResult CrossEntropyOp::verify() {
  return verifyLogits(*this, getLogits(), getLabels());
}

//===----------------------------------------------------------------------===//
// Training step
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::verify() {
  if (failed(expectRank(*this, "dtable", getDtable(), 2)))
    return failure();
  int64_t features = typeOf(getDtable()).getDimSize(1);
  return expectShape(*this, "dy", getDy(), withAppended(getIds(), features));
}

/// A weight that is not trained has no gradient.
static LogicalResult verifyNormGradient(Operation *op, Value weight,
                                        Value gradient) {
  return gradient ? expectShape(op, "dweight", gradient, shapeOf(weight))
                  : success();
}

LogicalResult RmsNormGradOp::verify() {
  return failure(failed(verifyNormWeight(*this, getX(), getWeight())) ||
                 failed(expectLike(*this, "dy", getDy(), getX())) ||
                 failed(expectLike(*this, "dx", getDx(), getX())) ||
                 failed(verifyNormGradient(*this, getWeight(), getDweight())));
}

LogicalResult LayerNormGradOp::verify() {
  return failure(failed(verifyNormWeight(*this, getX(), getWeight())) ||
                 failed(expectLike(*this, "dy", getDy(), getX())) ||
                 failed(expectLike(*this, "dx", getDx(), getX())) ||
                 failed(verifyNormGradient(*this, getWeight(), getDweight())));
}

LogicalResult BiasGradOp::verify() {
  if (failed(expectRankAtLeast(*this, "dy", getDy(), 1)))
    return failure();
  return expectShape(*this, "dbias", getDbias(), {shapeOf(getDy()).back()});
}

LogicalResult PositionsGradOp::verify() {
  return verifyPositions(*this, getDy(), getDtable(), getStarts());
}

LogicalResult GeluGradOp::verify() {
  return failure(failed(expectLike(*this, "x", getX(), getDy())) ||
                 failed(expectLike(*this, "dx", getDx(), getDy())));
}

LogicalResult SoftcapGradOp::verify() {
  return failure(failed(verifyCap(*this, getCap())) ||
                 failed(expectLike(*this, "x", getX(), getDy())) ||
                 failed(expectLike(*this, "dx", getDx(), getDy())));
}

LogicalResult LinearDgradOp::verify() {
  if (failed(expectRankAtLeast(*this, "dy", getDy(), 1)) ||
      failed(expectRank(*this, "w", getW(), 2)) ||
      failed(expectElement(*this, "w", getW(), elementOf(getDy()))))
    return failure();
  Shape weight = shapeOf(getW());
  return failure(
      failed(expectShape(*this, "dy", getDy(), withLast(getDy(), weight[0]))) ||
      failed(expectShape(*this, "dx", getDx(), withLast(getDy(), weight[1]))) ||
      failed(expectElement(*this, "dx", getDx(), elementOf(getDy()))));
}

LogicalResult LinearWgradOp::verify() {
  if (failed(expectRankAtLeast(*this, "dy", getDy(), 1)) ||
      failed(expectRankAtLeast(*this, "x", getX(), 1)) ||
      failed(expectElement(*this, "x", getX(), elementOf(getDy()))))
    return failure();
  int64_t rows = shapeOf(getDy()).back(), columns = shapeOf(getX()).back();
  return failure(
      failed(expectShape(*this, "x", getX(), withLast(getDy(), columns))) ||
      failed(expectShape(*this, "dw", getDw(), {rows, columns})));
}

LogicalResult AttentionGradOp::verify() {
  return failure(failed(verifyAttention(*this)) ||
                 failed(expectLike(*this, "dout", getDout(), getQ())) ||
                 failed(expectLike(*this, "out", getOut(), getQ())) ||
                 failed(expectLike(*this, "dq", getDq(), getQ())) ||
                 failed(expectLike(*this, "dk", getDk(), getK())) ||
                 failed(expectLike(*this, "dv", getDv(), getV())));
}

LogicalResult SwigluGradOp::verify() {
  return failure(failed(expectLike(*this, "gate", getGate(), getDy())) ||
                 failed(expectLike(*this, "up", getUp(), getDy())) ||
                 failed(expectLike(*this, "dgate", getDgate(), getDy())) ||
                 failed(expectLike(*this, "dup", getDup(), getDy())));
}

LogicalResult CrossEntropyGradOp::verify() {
  return failure(
      failed(verifyLogits(*this, getLogits(), getLabels())) ||
      failed(expectLike(*this, "dlogits", getDlogits(), getLogits())));
}

//===----------------------------------------------------------------------===//
// Fused
//===----------------------------------------------------------------------===//

template <typename AddNorm>
static LogicalResult verifyAddNorm(AddNorm op) {
  return failure(failed(verifyNormWeight(op, op.getA(), op.getWeight())) ||
                 failed(expectLike(op, "b", op.getB(), op.getA())) ||
                 failed(expectLike(op, "sum", op.getSum(), op.getA())) ||
                 failed(expectLike(op, "result", op.getResult(), op.getA())));
}

LogicalResult AddRmsNormOp::verify() { return verifyAddNorm(*this); }

LogicalResult AddLayerNormOp::verify() { return verifyAddNorm(*this); }

template <typename NormGradAdd>
static LogicalResult verifyNormGradAdd(NormGradAdd op) {
  Value x = op.getX(), weight = op.getWeight();
  return failure(failed(verifyNormWeight(op, x, weight)) ||
                 failed(expectLike(op, "dy", op.getDy(), x)) ||
                 failed(expectLike(op, "residual", op.getResidual(), x)) ||
                 failed(expectLike(op, "dx", op.getDx(), x)) ||
                 failed(verifyNormGradient(op, weight, op.getDweight())));
}

LogicalResult RmsNormGradAddOp::verify() { return verifyNormGradAdd(*this); }

LogicalResult LayerNormGradAddOp::verify() { return verifyNormGradAdd(*this); }

LogicalResult BiasGeluOp::verify() {
  if (failed(expectRankAtLeast(*this, "x", getX(), 1)))
    return failure();
  return failure(
      failed(expectShape(*this, "bias", getBias(), {shapeOf(getX()).back()})) ||
      failed(expectElement(*this, "bias", getBias(), elementOf(getX()))) ||
      failed(expectLike(*this, "sum", getSum(), getX())) ||
      failed(expectLike(*this, "result", getResult(), getX())));
}

LogicalResult LinearBiasOp::verify() {
  return failure(
      failed(verifyProduct(*this, getX(), getW(), getResult())) ||
      failed(expectShape(*this, "bias", getBias(), {shapeOf(getW())[0]})) ||
      failed(expectElement(*this, "bias", getBias(), elementOf(getX()))));
}

LogicalResult CrossEntropyInPlaceOp::verify() {
  return failure(
      failed(verifyLogits(*this, getLogits(), getLabels())) ||
      failed(expectLike(*this, "dlogits", getDlogits(), getLogits())));
}
