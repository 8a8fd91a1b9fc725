//===- ModelBuilder.cpp - Writes a tfm forward program --------------------===//

#include "ModelBuilder.h"

#include "dialects/Tfm/TfmDialect.h"

#include <cmath>

using namespace mlir;
using namespace gtp;

/// A parameter's symbol is its name in checkpoints.
static std::string weightName(StringRef module) {
  return (module + ".weight").str();
}

static Type elementType(MLIRContext *context, Element element) {
  return element == Element::F32 ? Type(Float32Type::get(context))
                                 : Type(BFloat16Type::get(context));
}

ModelBuilder::ModelBuilder(Location moduleLoc, const ImportOptions &options,
                           int64_t sequence)
    : builder(moduleLoc.getContext()), options(options),
      batch(options.microBatch * options.dataRanks), sequence(sequence),
      element(elementType(moduleLoc.getContext(), options.element)),
      module(ModuleOp::create(moduleLoc)), symbols(*module) {
  auto ids = RankedTensorType::get({batch, sequence}, builder.getI32Type());
  auto count = RankedTensorType::get({}, builder.getI64Type());
  auto loss = RankedTensorType::get({}, builder.getF32Type());
  builder.setInsertionPointToEnd(module->getBody());
  forward =
      func::FuncOp::create(builder, moduleLoc, tfm::kForwardFunction,
                           builder.getFunctionType({ids, ids, count}, {loss}));
  builder.setInsertionPointToStart(forward.addEntryBlock());
}

Location ModelBuilder::at(StringRef name) {
  return NameLoc::get(builder.getStringAttr(name));
}

RankedTensorType ModelBuilder::activation(int64_t features) {
  return RankedTensorType::get({batch, sequence, features}, element);
}

Value ModelBuilder::weight(StringRef name, ArrayRef<int64_t> shape,
                           StringRef init) {
  std::string symbol = weightName(name);
  parameters += ShapedType::getNumElements(shape);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(forward);
    auto parameter = tfm::ParameterOp::create(
        builder, at(name), symbol, RankedTensorType::get(shape, element), init,
        builder.getStrArrayAttr({symbol}), ArrayRef<int64_t>(shape.front()),
        builder.getStrArrayAttr({}));
    symbols.insert(parameter);
  }
  return read(name);
}

Value ModelBuilder::read(StringRef name) {
  std::string symbol = weightName(name);
  auto parameter = symbols.lookup<tfm::ParameterOp>(symbol);
  return tfm::GetOp::create(builder, at(name), parameter.getType(), symbol);
}

void ModelBuilder::tie(StringRef name, StringRef alias) {
  auto parameter = symbols.lookup<tfm::ParameterOp>(weightName(name));
  parameter.setTiedAttr(builder.getStrArrayAttr({weightName(alias)}));
}

Value ModelBuilder::embedding(StringRef name, int64_t vocabulary,
                              int64_t features) {
  Value table = weight(name, {vocabulary, features}, "normal");
  return tfm::EmbeddingOp::create(builder, at(name), activation(features),
                                  forward.getArgument(0), table);
}

Value ModelBuilder::rmsNorm(StringRef name, Value x, int64_t group,
                            double eps) {
  Value scale = weight(name, {group}, "ones");
  return tfm::RmsNormOp::create(builder, at(name), x.getType(), x, scale,
                                builder.getF64FloatAttr(eps));
}

Value ModelBuilder::linear(StringRef name, Value x, int64_t rows) {
  int64_t columns = cast<RankedTensorType>(x.getType()).getShape().back();
  Value w = weight(name, {rows, columns}, "normal");
  productsPerToken += static_cast<double>(rows) * columns;
  return tfm::LinearOp::create(builder, at(name), activation(rows), x, w);
}

Value ModelBuilder::tiedLinear(StringRef name, Value x, StringRef weightOf) {
  Value w = read(weightOf);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(w.getType()).getShape();
  productsPerToken += static_cast<double>(shape[0]) * shape[1];
  return tfm::LinearOp::create(builder, at(name), activation(shape[0]), x, w);
}

Value ModelBuilder::rope(StringRef name, Value x, int64_t headDim,
                         ArrayRef<double> frequencies) {
  return tfm::RopeOp::create(builder, at(name), x.getType(), x,
                             builder.getI64IntegerAttr(headDim),
                             builder.getDenseF64ArrayAttr(frequencies),
                             /*inverse=*/UnitAttr());
}

Value ModelBuilder::attention(StringRef name, Value q, Value k, Value v,
                              int64_t heads, int64_t kvHeads, int64_t headDim) {
  // Scores and their product with v; causality halves both.
  productsPerToken += static_cast<double>(sequence + 1) * heads * headDim;
  auto op = tfm::AttentionOp::create(
      builder, at(name),
      TypeRange{q.getType(), RankedTensorType::get({batch, heads, sequence},
                                                   builder.getF32Type())},
      q, k, v, builder.getI64IntegerAttr(heads),
      builder.getI64IntegerAttr(kvHeads),
      builder.getF64FloatAttr(1.0 / std::sqrt(static_cast<double>(headDim))),
      builder.getBoolAttr(true));
  return op.getResult();
}

Value ModelBuilder::swiglu(StringRef name, Value gate, Value up) {
  return tfm::SwigluOp::create(builder, at(name), gate.getType(), gate, up);
}

Value ModelBuilder::add(StringRef name, Value a, Value b) {
  return tfm::AddOp::create(builder, at(name), a.getType(), ValueRange{a, b});
}

OwningOpRef<ModuleOp>
ModelBuilder::finish(Value logits, const ModelDescription &description) {
  Type lossType = forward.getFunctionType().getResult(0);
  Value loss = tfm::CrossEntropyOp::create(builder, at("loss"), lossType,
                                           logits, forward.getArgument(1),
                                           forward.getArgument(2));
  func::ReturnOp::create(builder, forward.getLoc(), loss);

  // Model flops: 2 a multiply-add, and twice the forward's again for the
  // backward. Lookups of the embedding, norms and elementwise work are not
  // counted.
  double tokens = static_cast<double>(batch) * options.microbatches * sequence;
  auto integer = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  auto number = [&](StringRef name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  };
  (*module)->setDiscardableAttr(
      tfm::kModelAttr,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("family",
                                builder.getStringAttr(description.family)),
           integer("vocabulary", description.vocabulary),
           integer("sequence", sequence),
           integer("micro_batch", options.microBatch),
           integer("global_batch", batch * options.microbatches),
           integer("microbatches", options.microbatches),
           integer("max_positions", description.maxPositions),
           number("initializer_range", description.initializerRange),
           integer("parameters", parameters),
           number("flops_per_step", 6.0 * productsPerToken * tokens)}));
  return std::move(module);
}
