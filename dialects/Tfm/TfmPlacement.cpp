//===- TfmPlacement.cpp - Which dimensions are one and the same -----------===//

#include "dialects/Tfm/TfmDialect.h"

using namespace mlir;
using namespace gtp::tfm;

using Factor = PlacementRule::Factor;
using Dims = SmallVector<unsigned>;

static int64_t rankOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank();
}

/// Factors of the dimensions of `value` but the last, which may be cut.
static Dims leading(PlacementRule &rule, Value value) {
  Dims dims;
  for (int64_t i = 0; i + 1 < rankOf(value); ++i)
    dims.push_back(rule.addFactor());
  return dims;
}

/// Factors of all dimensions of `value`, which may be cut.
static Dims all(PlacementRule &rule, Value value) {
  Dims dims = leading(rule, value);
  if (rankOf(value) > 0)
    dims.push_back(rule.addFactor());
  return dims;
}

static Dims with(Dims dims, unsigned last) {
  dims.push_back(last);
  return dims;
}

/// Factors of labels, in whole sequences where those are counted.
static Dims labelled(PlacementRule &rule, Value labels, bool sequences) {
  return sequences ? with(leading(rule, labels), rule.addFactor(Factor::Whole))
                   : all(rule, labels);
}

/// Operands and results of one shape, computed element by element.
static PlacementRule elementwise(Operation *op, bool linear) {
  PlacementRule rule;
  Dims dims = all(rule, op->getResult(0));
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.assign(op->getNumResults(), dims);
  rule.linearInPartial = linear;
  rule.acceptsStorageCuts = true;
  return rule;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

PlacementRule EmbeddingOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = all(rule, getIds());
  // A rank without a row of the table could not look it up.
  unsigned vocabulary = rule.addFactor(Factor::Whole);
  unsigned features = rule.addFactor();
  rule.operands = {tokens, {vocabulary, features}};
  rule.results = {with(tokens, features)};
  return rule;
}

/// A norm of x by a weight of one group of features.
static PlacementRule norm(Value x) {
  PlacementRule rule;
  Dims tokens = leading(rule, x);
  unsigned features = rule.addFactor(Factor::Whole);
  unsigned group = rule.addFactor(Factor::Whole);
  rule.operands = {with(tokens, features), {group}};
  rule.results = {with(tokens, features)};
  return rule;
}

PlacementRule RmsNormOp::getPlacementRule() { return norm(getX()); }

PlacementRule LayerNormOp::getPlacementRule() { return norm(getX()); }

PlacementRule AddBiasOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = all(rule, getX());
  rule.operands = {dims, {dims.back()}};
  rule.results = {dims};
  return rule;
}

/// Factors of `[.., T]` whose elements depend on those before them along T.
static Dims sequences(PlacementRule &rule, Value ids) {
  Dims dims = all(rule, ids);
  rule.factors[dims.back()] = Factor::Whole;
  return dims;
}

PlacementRule DocumentStartsOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = sequences(rule, getTokens());
  rule.operands = {dims};
  rule.results = {dims};
  return rule;
}

/// Adds the factors of the operand `starts`, if it is there: those of `[.., T,
/// H]` without the last. An operand of ids is linear in nothing.
static void addStarts(PlacementRule &rule, Value starts, const Dims &dims) {
  if (!starts)
    return;
  rule.operands.push_back(Dims(ArrayRef(dims).drop_back()));
  rule.linearInPartial = false;
}

/// Factors of `[.., T, H]` whose positions along T are rows of a table.
static Dims positioned(PlacementRule &rule, Value x) {
  Dims dims = all(rule, x);
  rule.factors[dims[dims.size() - 2]] = Factor::Whole;
  return dims;
}

PlacementRule AddPositionsOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = positioned(rule, getX());
  rule.operands = {dims, {rule.addFactor(Factor::Whole), dims.back()}};
  addStarts(rule, getStarts(), dims);
  rule.results = {dims};
  return rule;
}

/// A product; only without a bias may what it contracts be cut, which leaves
/// the result partial.
static PlacementRule linear(Value x, Factor contracted) {
  PlacementRule rule;
  Dims tokens = leading(rule, x);
  unsigned rows = rule.addFactor(), columns = rule.addFactor(contracted);
  rule.operands = {with(tokens, columns), {rows, columns}};
  rule.results = {with(tokens, rows)};
  return rule;
}

PlacementRule LinearOp::getPlacementRule() {
  return linear(getX(), Factor::Parallel);
}

PlacementRule RopeOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = leading(rule, getX());
  // The angle depends on the position along the whole sequence.
  rule.factors[dims.back()] = Factor::Whole;
  int64_t heads =
      getX().getType().getShape().back() / static_cast<int64_t>(getHeadDim());
  dims.push_back(rule.addFactor(Factor::Parallel, heads));
  rule.operands = {dims};
  rule.results = {dims};
  rule.linearInPartial = true;
  addStarts(rule, getStarts(), dims);
  return rule;
}

namespace {
/// Factors of attention and its gradient. A query head goes where its key and
/// value head goes, so the units of heads are those.
struct AttentionFactors {
  AttentionFactors(PlacementRule &rule, int64_t kvHeads) {
    unsigned batch = rule.addFactor();
    unsigned sequence = rule.addFactor(Factor::Whole);
    unsigned heads = rule.addFactor(Factor::Parallel, kvHeads);
    features = {batch, sequence, heads};
    statistics = {batch, heads, sequence};
  }
  Dims features, statistics;
};
} // namespace

PlacementRule AttentionOp::getPlacementRule() {
  PlacementRule rule;
  AttentionFactors factors(rule, getKvHeads());
  rule.operands.assign(3, factors.features);
  addStarts(rule, getStarts(), factors.features);
  rule.results = {factors.features, factors.statistics};
  return rule;
}

PlacementRule SwigluOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule GeluOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule SoftcapOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule ScaleOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/true);
}

PlacementRule MulOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule AddOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/true);
}

PlacementRule CastOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/true);
}

/// Pieces of the last dimension: leading dimensions are common. A cut of a
/// piece is not a cut of the whole, so the last ones stay whole.
static PlacementRule pieces(Operation *op, Value whole) {
  PlacementRule rule;
  Dims tokens = leading(rule, whole);
  auto factorsOf = [&](ValueRange values) {
    SmallVector<Dims> dims;
    for (unsigned i = 0; i < values.size(); ++i)
      dims.push_back(with(tokens, rule.addFactor(Factor::Whole)));
    return dims;
  };
  rule.operands = factorsOf(op->getOperands());
  rule.results = factorsOf(op->getResults());
  rule.linearInPartial = true;
  return rule;
}

PlacementRule SplitOp::getPlacementRule() { return pieces(*this, getX()); }

PlacementRule ConcatOp::getPlacementRule() {
  return pieces(*this, getResult());
}

PlacementRule CrossEntropyOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = labelled(rule, getLabels(), getSequenceMean());
  unsigned vocabulary = rule.addFactor(Factor::Whole);
  rule.operands = {with(tokens, vocabulary), tokens, {}};
  rule.results = {{}};
  return rule;
}

//===----------------------------------------------------------------------===//
// Training step
//===----------------------------------------------------------------------===//

PlacementRule EmbeddingGradOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = all(rule, getIds());
  unsigned vocabulary = rule.addFactor(Factor::Whole);
  unsigned features = rule.addFactor();
  rule.operands = {with(tokens, features), tokens};
  rule.results = {{vocabulary, features}};
  return rule;
}

template <typename NormGrad>
static PlacementRule normGrad(NormGrad op) {
  PlacementRule rule;
  Dims tokens = leading(rule, op.getX());
  unsigned features = rule.addFactor(Factor::Whole);
  unsigned group = rule.addFactor(Factor::Whole);
  Dims x = with(tokens, features);
  rule.operands = {x, x, {group}};
  rule.results = {x};
  if (op.getDweight())
    rule.results.push_back({group});
  return rule;
}

PlacementRule RmsNormGradOp::getPlacementRule() { return normGrad(*this); }

PlacementRule LayerNormGradOp::getPlacementRule() { return normGrad(*this); }

PlacementRule BiasGradOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = all(rule, getDy());
  rule.operands = {dims};
  rule.results = {{dims.back()}};
  return rule;
}

PlacementRule PositionsGradOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = positioned(rule, getDy());
  rule.operands = {dims};
  addStarts(rule, getStarts(), dims);
  rule.results = {{rule.addFactor(Factor::Whole), dims.back()}};
  return rule;
}

PlacementRule GeluGradOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule SoftcapGradOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule LinearDgradOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = leading(rule, getDy());
  unsigned rows = rule.addFactor(), columns = rule.addFactor();
  rule.operands = {with(tokens, rows), {rows, columns}};
  rule.results = {with(tokens, columns)};
  return rule;
}

PlacementRule LinearWgradOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = leading(rule, getDy());
  unsigned rows = rule.addFactor(), columns = rule.addFactor();
  rule.operands = {with(tokens, rows), with(tokens, columns)};
  rule.results = {{rows, columns}};
  return rule;
}

PlacementRule AttentionGradOp::getPlacementRule() {
  PlacementRule rule;
  AttentionFactors factors(rule, getKvHeads());
  rule.operands.assign(5, factors.features);
  rule.operands.push_back(factors.statistics);
  addStarts(rule, getStarts(), factors.features);
  rule.results.assign(3, factors.features);
  return rule;
}

PlacementRule SwigluGradOp::getPlacementRule() {
  return elementwise(*this, /*linear=*/false);
}

PlacementRule CrossEntropyGradOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = labelled(rule, getLabels(), getSequenceMean());
  unsigned vocabulary = rule.addFactor(Factor::Whole);
  rule.operands = {with(tokens, vocabulary), tokens, {}, {}};
  rule.results = {with(tokens, vocabulary)};
  return rule;
}

PlacementRule CountLabelsOp::getPlacementRule() {
  PlacementRule rule;
  rule.operands = {labelled(rule, getLabels(), getSequences())};
  rule.results = {{}};
  return rule;
}

PlacementRule SumSquaresOp::getPlacementRule() {
  PlacementRule rule;
  rule.operands = {all(rule, getX())};
  rule.results = {{}};
  rule.acceptsStorageCuts = true;
  return rule;
}

PlacementRule ClipScaleOp::getPlacementRule() {
  PlacementRule rule;
  rule.operands = {{}};
  rule.results = {{}, {}};
  return rule;
}

/// Tensors of the parameter's shape, then `hyper` and `scale`.
static PlacementRule update(Operation *op, Value master) {
  PlacementRule rule;
  Dims dims = all(rule, master);
  rule.operands.assign(op->getNumOperands() - 2, dims);
  rule.operands.push_back({rule.addFactor(Factor::Whole)});
  rule.operands.push_back({});
  rule.results.assign(op->getNumResults(), dims);
  rule.acceptsStorageCuts = true;
  return rule;
}

PlacementRule AdamwOp::getPlacementRule() { return update(*this, getMaster()); }

PlacementRule AdamwSplitOp::getPlacementRule() {
  return update(*this, getMaster());
}

PlacementRule SgdOp::getPlacementRule() { return update(*this, getMaster()); }

PlacementRule SgdSplitOp::getPlacementRule() {
  return update(*this, getMaster());
}

//===----------------------------------------------------------------------===//
// Fused
//===----------------------------------------------------------------------===//

/// A norm of the sum of two.
static PlacementRule addNorm(Value a) {
  PlacementRule rule = norm(a);
  rule.operands.insert(rule.operands.begin(), rule.operands.front());
  rule.results.push_back(rule.results.front());
  return rule;
}

PlacementRule AddRmsNormOp::getPlacementRule() { return addNorm(getA()); }

PlacementRule AddLayerNormOp::getPlacementRule() { return addNorm(getA()); }

template <typename NormGradAdd>
static PlacementRule normGradAdd(NormGradAdd op) {
  PlacementRule rule = normGrad(op);
  rule.operands.push_back(rule.operands.front());
  return rule;
}

PlacementRule RmsNormGradAddOp::getPlacementRule() {
  return normGradAdd(*this);
}

PlacementRule LayerNormGradAddOp::getPlacementRule() {
  return normGradAdd(*this);
}

PlacementRule BiasGeluOp::getPlacementRule() {
  PlacementRule rule;
  Dims dims = all(rule, getX());
  rule.operands = {dims, {dims.back()}};
  rule.results = {dims, dims};
  return rule;
}

PlacementRule LinearBiasOp::getPlacementRule() {
  PlacementRule rule = linear(getX(), Factor::Whole);
  rule.operands.push_back({rule.results.front().back()});
  return rule;
}

PlacementRule CrossEntropyInPlaceOp::getPlacementRule() {
  PlacementRule rule;
  Dims tokens = labelled(rule, getLabels(), getSequenceMean());
  Dims logits = with(tokens, rule.addFactor(Factor::Whole));
  rule.operands = {logits, tokens, {}, {}};
  rule.results = {logits, {}};
  return rule;
}

PlacementRule FullOp::getPlacementRule() {
  PlacementRule rule;
  rule.results = {all(rule, getResult())};
  rule.acceptsStorageCuts = true;
  return rule;
}
