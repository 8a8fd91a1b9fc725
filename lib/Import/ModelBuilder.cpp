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
  if (options.documentSeparator)
    documentStarts = tfm::DocumentStartsOp::create(
        builder, at("document_starts"), ids, forward.getArgument(0),
        *options.documentSeparator);
}

Location ModelBuilder::at(StringRef name) {
  return NameLoc::get(builder.getStringAttr(name));
}

RankedTensorType ModelBuilder::activation(int64_t features) {
  return RankedTensorType::get({batch, sequence, features}, element);
}

Value ModelBuilder::declare(StringRef name, StringRef symbol,
                            ArrayRef<int64_t> shape, StringRef init,
                            const TensorLayout &layout) {
  parameters += ShapedType::getNumElements(shape);
  DenseI64ArrayAttr layouts;
  if (layout.transposed)
    layouts = builder.getDenseI64ArrayAttr({tfm::ParameterOp::kTransposed, 0});
  else if (layout.groups)
    layouts = builder.getDenseI64ArrayAttr({layout.groups, layout.parts});
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(forward);
    SmallVector<StringRef, 1> otherNames;
    StringRef rest = symbol;
    if (!optionalPrefix.empty() && rest.consume_front(optionalPrefix))
      otherNames.push_back(rest);
    auto parameter = tfm::ParameterOp::create(
        builder, at(name), symbol, RankedTensorType::get(shape, element), init,
        builder.getStrArrayAttr({symbol}), ArrayRef<int64_t>(shape.front()),
        builder.getStrArrayAttr(otherNames), layouts,
        /*frozen=*/false, /*replicated=*/false, /*prefetch=*/StringAttr());
    symbols.insert(parameter);
  }
  return read(name, symbol);
}

Value ModelBuilder::weight(StringRef name, ArrayRef<int64_t> shape,
                           StringRef init, const TensorLayout &layout) {
  return declare(name, weightName(name), shape, init, layout);
}

Value ModelBuilder::addBias(StringRef name, Value x,
                            const TensorLayout &layout) {
  int64_t features = cast<RankedTensorType>(x.getType()).getShape().back();
  Value bias =
      declare(name, (name + ".bias").str(), {features}, "zeros", layout);
  return tfm::AddBiasOp::create(builder, at(name), x.getType(), x, bias);
}

Value ModelBuilder::read(StringRef name, StringRef symbol) {
  auto parameter = symbols.lookup<tfm::ParameterOp>(symbol);
  return tfm::GetOp::create(builder, at(name), parameter.getType(), symbol);
}

void ModelBuilder::tie(StringRef name, StringRef alias) {
  auto parameter = symbols.lookup<tfm::ParameterOp>(weightName(name));
  SmallVector<Attribute> names(parameter.getTied().getValue());
  names.push_back(builder.getStringAttr(weightName(alias)));
  parameter.setTiedAttr(builder.getArrayAttr(names));
}

Value ModelBuilder::embedding(StringRef name, int64_t vocabulary,
                              int64_t features) {
  Value table = weight(name, {vocabulary, features}, "normal");
  return tfm::EmbeddingOp::create(builder, at(name), activation(features),
                                  forward.getArgument(0), table);
}

Value ModelBuilder::addPositions(StringRef name, Value x, int64_t positions) {
  int64_t features = cast<RankedTensorType>(x.getType()).getShape().back();
  Value table = weight(name, {positions, features}, "normal");
  return tfm::AddPositionsOp::create(builder, at(name), x.getType(), x, table,
                                     documentStarts);
}

Value ModelBuilder::rmsNorm(StringRef name, Value x, int64_t group, double eps,
                            bool unitOffset) {
  Value scale = weight(name, {group}, unitOffset ? "zeros" : "ones");
  return tfm::RmsNormOp::create(
      builder, at(name), x.getType(), x, scale, builder.getF64FloatAttr(eps),
      unitOffset ? builder.getUnitAttr() : UnitAttr());
}

Value ModelBuilder::layerNorm(StringRef name, Value x, double eps) {
  int64_t features = cast<RankedTensorType>(x.getType()).getShape().back();
  Value scale = weight(name, {features}, "ones");
  Value normed = tfm::LayerNormOp::create(builder, at(name), x.getType(), x,
                                          scale, builder.getF64FloatAttr(eps));
  return addBias(name, normed);
}

Value ModelBuilder::linear(StringRef name, Value x, int64_t rows,
                           const LinearSpec &spec) {
  int64_t columns = cast<RankedTensorType>(x.getType()).getShape().back();
  Value w = weight(name, {rows, columns}, "normal", spec.layout);
  productsPerToken += static_cast<double>(rows) * columns;
  Value y = tfm::LinearOp::create(builder, at(name), activation(rows), x, w);
  if (!spec.bias)
    return y;
  // A vector has nothing to transpose.
  TensorLayout layout = spec.layout;
  layout.transposed = false;
  return addBias(name, y, layout);
}

Value ModelBuilder::tiedLinear(StringRef name, Value x, StringRef weightOf) {
  Value w = read(weightOf, weightName(weightOf));
  ArrayRef<int64_t> shape = cast<RankedTensorType>(w.getType()).getShape();
  productsPerToken += static_cast<double>(shape[0]) * shape[1];
  return tfm::LinearOp::create(builder, at(name), activation(shape[0]), x, w);
}

Value ModelBuilder::rope(StringRef name, Value x, int64_t headDim,
                         ArrayRef<double> frequencies) {
  return tfm::RopeOp::create(builder, at(name), x.getType(), x, documentStarts,
                             builder.getI64IntegerAttr(headDim),
                             builder.getDenseF64ArrayAttr(frequencies),
                             /*inverse=*/UnitAttr());
}

Value ModelBuilder::attention(StringRef name, Value q, Value k, Value v,
                              const AttentionSpec &spec) {
  // A window of the whole sequence hides nothing.
  int64_t window = spec.window < sequence ? spec.window : 0;
  // Keys that all queries of a sequence see, in scores and in products with v.
  double length = static_cast<double>(sequence);
  double keys = length * (length + 1) / 2;
  if (window) {
    double hidden = length - static_cast<double>(window);
    keys -= hidden * (hidden + 1) / 2;
  }
  productsPerToken += 2 * keys / length * spec.heads * spec.headDim;
  double scale = spec.scale
                     ? spec.scale
                     : 1.0 / std::sqrt(static_cast<double>(spec.headDim));
  auto op = tfm::AttentionOp::create(
      builder, at(name),
      TypeRange{q.getType(),
                RankedTensorType::get({batch, spec.heads, sequence},
                                      builder.getF32Type())},
      q, k, v, documentStarts, builder.getI64IntegerAttr(spec.heads),
      builder.getI64IntegerAttr(spec.kvHeads), builder.getF64FloatAttr(scale),
      builder.getBoolAttr(true), builder.getI64IntegerAttr(window),
      builder.getF64FloatAttr(spec.softcap));
  return op.getResult();
}

SmallVector<Value> ModelBuilder::split(StringRef name, Value x,
                                       ArrayRef<int64_t> sizes) {
  SmallVector<Type> types;
  for (int64_t size : sizes)
    types.push_back(activation(size));
  auto op = tfm::SplitOp::create(builder, at(name), types, x);
  return SmallVector<Value>(op.getResults());
}

Value ModelBuilder::gelu(StringRef name, Value x, bool approximate) {
  return tfm::GeluOp::create(builder, at(name), x.getType(), x,
                             approximate ? builder.getUnitAttr() : UnitAttr());
}

Value ModelBuilder::scale(StringRef name, Value x, double factor) {
  APFloat rounded(factor);
  bool losesInfo;
  rounded.convert(cast<FloatType>(element).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &losesInfo);
  return tfm::ScaleOp::create(
      builder, at(name), x.getType(), x,
      builder.getF64FloatAttr(rounded.convertToDouble()));
}

Value ModelBuilder::softcap(StringRef name, Value x, double cap) {
  return tfm::SoftcapOp::create(builder, at(name), x.getType(), x,
                                builder.getF64FloatAttr(cap));
}

Value ModelBuilder::mul(StringRef name, Value a, Value b) {
  return tfm::MulOp::create(builder, at(name), a.getType(), a, b);
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
  Value loss = tfm::CrossEntropyOp::create(
      builder, at("loss"), lossType, logits, forward.getArgument(1),
      forward.getArgument(2), options.sequenceMean);
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
  SmallVector<NamedAttribute> fields = {
      builder.getNamedAttr("family", builder.getStringAttr(description.family)),
      integer("vocabulary", description.vocabulary),
      integer("sequence", sequence),
      integer("micro_batch", options.microBatch),
      integer("global_batch", batch * options.microbatches),
      integer("microbatches", options.microbatches),
      integer("max_positions", description.maxPositions),
      number("initializer_range", description.initializerRange),
      integer("parameters", parameters),
      number("flops_per_step", 6.0 * productsPerToken * tokens)};
  if (options.documentSeparator)
    fields.push_back(integer("document_separator", *options.documentSeparator));
  (*module)->setDiscardableAttr(tfm::kModelAttr,
                                builder.getDictionaryAttr(fields));
  return std::move(module);
}
