//===- TfmVjp.cpp - Vector-Jacobian products of forward ops ---------------===//

#include "dialects/Tfm/TfmDialect.h"

using namespace mlir;
using namespace gtp::tfm;

using Values = SmallVector<Value>;

/// The gradient's type of a weight: the option's element type.
static RankedTensorType gradientType(Value weight, const VjpOptions &options) {
  auto type = cast<RankedTensorType>(weight.getType());
  return withElementType(type, options.gradientType ? options.gradientType
                                                    : type.getElementType());
}

SmallVector<Value> EmbeddingOp::buildVjp(OpBuilder &builder,
                                         ArrayRef<Value> cotangents,
                                         ArrayRef<bool> needed,
                                         const VjpOptions &options) {
  Values result(2);
  if (needed[1])
    result[1] = EmbeddingGradOp::create(builder, gradientLoc(*this, ".wgrad"),
                                        gradientType(getTable(), options),
                                        cotangents[0], getIds());
  return result;
}

SmallVector<Value> RmsNormOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       const VjpOptions &options) {
  auto grad = RmsNormGradOp::create(
      builder, gradientLoc(*this, ".grad"), getX().getType(),
      needed[1] ? Type(gradientType(getWeight(), options)) : Type(),
      cotangents[0], getX(), getWeight(), getEpsAttr(), getUnitOffsetAttr());
  return {needed[0] ? grad.getDx() : Value(), grad.getDweight()};
}

SmallVector<Value> LayerNormOp::buildVjp(OpBuilder &builder,
                                         ArrayRef<Value> cotangents,
                                         ArrayRef<bool> needed,
                                         const VjpOptions &options) {
  auto grad = LayerNormGradOp::create(
      builder, gradientLoc(*this, ".grad"), getX().getType(),
      needed[1] ? Type(gradientType(getWeight(), options)) : Type(),
      cotangents[0], getX(), getWeight(), getEpsAttr());
  return {needed[0] ? grad.getDx() : Value(), grad.getDweight()};
}

SmallVector<Value> AddBiasOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       const VjpOptions &options) {
  Values result(2);
  if (needed[0])
    result[0] = cotangents[0];
  if (needed[1])
    result[1] =
        BiasGradOp::create(builder, gradientLoc(*this, ".wgrad"),
                           gradientType(getBias(), options), cotangents[0]);
  return result;
}

SmallVector<Value> AddPositionsOp::buildVjp(OpBuilder &builder,
                                            ArrayRef<Value> cotangents,
                                            ArrayRef<bool> needed,
                                            const VjpOptions &options) {
  Values result(getNumOperands());
  if (needed[0])
    result[0] = cotangents[0];
  if (needed[1])
    result[1] = PositionsGradOp::create(builder, gradientLoc(*this, ".wgrad"),
                                        gradientType(getTable(), options),
                                        cotangents[0], getStarts());
  return result;
}

SmallVector<Value> LinearOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      const VjpOptions &options) {
  Values result(2);
  // The chain of layers waits for dgrad and nothing waits for wgrad.
  if (needed[0])
    result[0] = LinearDgradOp::create(builder, gradientLoc(*this, ".dgrad"),
                                      getX().getType(), cotangents[0], getW());
  if (needed[1])
    result[1] = LinearWgradOp::create(builder, gradientLoc(*this, ".wgrad"),
                                      gradientType(getW(), options),
                                      cotangents[0], getX());
  return result;
}

SmallVector<Value> RopeOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    const VjpOptions &options) {
  // A rotation's transpose is its inverse.
  UnitAttr inverse = getInverse() ? UnitAttr() : builder.getUnitAttr();
  Values result(getNumOperands());
  result[0] = RopeOp::create(builder, gradientLoc(*this, ".grad"),
                             getX().getType(), cotangents[0], getStarts(),
                             getHeadDimAttr(), getFrequenciesAttr(), inverse);
  return result;
}

SmallVector<Value> AttentionOp::buildVjp(OpBuilder &builder,
                                         ArrayRef<Value> cotangents,
                                         ArrayRef<bool> needed,
                                         const VjpOptions &options) {
  if (cotangents[1]) {
    emitOpError("has no product for a cotangent of lse, which only its own "
                "gradient may use");
    return {};
  }
  auto grad = AttentionGradOp::create(
      builder, gradientLoc(*this, ".grad"),
      TypeRange{getQ().getType(), getK().getType(), getV().getType()},
      cotangents[0], getQ(), getK(), getV(), getResult(), getLse(), getStarts(),
      getHeadsAttr(), getKvHeadsAttr(), getScaleAttr(), getCausalAttr(),
      getWindowAttr(), getSoftcapAttr(),
      options.fastAttention ? builder.getUnitAttr() : UnitAttr());
  Values result(getNumOperands());
  for (auto [index, gradient] : llvm::enumerate(grad.getResults()))
    if (needed[index])
      result[index] = gradient;
  return result;
}

SmallVector<Value> SwigluOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      const VjpOptions &options) {
  auto grad = SwigluGradOp::create(builder, gradientLoc(*this, ".grad"),
                                   getGate().getType(), getUp().getType(),
                                   cotangents[0], getGate(), getUp());
  return {needed[0] ? grad.getDgate() : Value(),
          needed[1] ? grad.getDup() : Value()};
}

SmallVector<Value> GeluOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    const VjpOptions &options) {
  return {GeluGradOp::create(builder, gradientLoc(*this, ".grad"),
                             getX().getType(), cotangents[0], getX(),
                             getApproximateAttr())};
}

SmallVector<Value> SoftcapOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       const VjpOptions &options) {
  return {SoftcapGradOp::create(builder, gradientLoc(*this, ".grad"),
                                getX().getType(), cotangents[0], getX(),
                                getCapAttr())};
}

SmallVector<Value> ScaleOp::buildVjp(OpBuilder &builder,
                                     ArrayRef<Value> cotangents,
                                     ArrayRef<bool> needed,
                                     const VjpOptions &options) {
  return {ScaleOp::create(builder, gradientLoc(*this, ".grad"),
                          getX().getType(), cotangents[0], getFactorAttr())};
}

SmallVector<Value> MulOp::buildVjp(OpBuilder &builder,
                                   ArrayRef<Value> cotangents,
                                   ArrayRef<bool> needed,
                                   const VjpOptions &options) {
  Location loc = gradientLoc(*this, ".grad");
  Values result(2);
  if (needed[0])
    result[0] =
        MulOp::create(builder, loc, getA().getType(), cotangents[0], getB());
  if (needed[1])
    result[1] =
        MulOp::create(builder, loc, getB().getType(), cotangents[0], getA());
  return result;
}

SmallVector<Value> AddOp::buildVjp(OpBuilder &builder,
                                   ArrayRef<Value> cotangents,
                                   ArrayRef<bool> needed,
                                   const VjpOptions &options) {
  Values result;
  for (bool need : needed)
    result.push_back(need ? cotangents[0] : Value());
  return result;
}

SmallVector<Value> SplitOp::buildVjp(OpBuilder &builder,
                                     ArrayRef<Value> cotangents,
                                     ArrayRef<bool> needed,
                                     const VjpOptions &options) {
  Location loc = gradientLoc(*this, ".grad");
  Values pieces;
  for (auto [cotangent, piece] : llvm::zip_equal(cotangents, getResults()))
    pieces.push_back(cotangent
                         ? cotangent
                         : Value(FullOp::create(builder, loc, piece.getType(),
                                                builder.getF64FloatAttr(0))));
  return {ConcatOp::create(builder, loc, getX().getType(), pieces)};
}

SmallVector<Value> ConcatOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      const VjpOptions &options) {
  auto split = SplitOp::create(builder, gradientLoc(*this, ".grad"),
                               getInputs().getTypes(), cotangents[0]);
  Values result;
  for (auto [piece, need] : llvm::zip_equal(split.getResults(), needed))
    result.push_back(need ? Value(piece) : Value());
  return result;
}

SmallVector<Value> CastOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    const VjpOptions &options) {
  return {CastOp::create(builder, gradientLoc(*this, ".grad"), getX().getType(),
                         cotangents[0])};
}

SmallVector<Value> CrossEntropyOp::buildVjp(OpBuilder &builder,
                                            ArrayRef<Value> cotangents,
                                            ArrayRef<bool> needed,
                                            const VjpOptions &options) {
  Values result(3);
  result[0] = CrossEntropyGradOp::create(
      builder, gradientLoc(*this, ".grad"), getLogits().getType(), getLogits(),
      getLabels(), getCount(), cotangents[0], getSequenceMean());
  return result;
}
