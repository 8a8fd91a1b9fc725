//===- Decoder.cpp - RMS-norm decoders with rotary attention --------------===//

#include "Decoder.h"
#include "Sizes.h"

#include <algorithm>

using namespace mlir;
using namespace gtp;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static void readHeads(const ConfigObject &object,
                      const DecoderDefaults &defaults, DecoderConfig &config) {
  config.heads =
      object.integerOr("num_attention_heads", defaults.heads, 1, kMaxHeads);
  // As transformers: null means as many as heads, absence the family's default.
  int64_t kvDefault =
      defaults.kvHeads && !object.contains("num_key_value_heads")
          ? defaults.kvHeads
          : config.heads;
  config.kvHeads =
      object.integerOr("num_key_value_heads", kvDefault, 1, kMaxHeads);
  if (config.heads % config.kvHeads != 0)
    object.error("num_key_value_heads",
                 "'num_attention_heads' " + Twine(config.heads) +
                     " is not a multiple of 'num_key_value_heads' " +
                     Twine(config.kvHeads));

  if (defaults.headDim) {
    config.headDim =
        object.integerOr("head_dim", defaults.headDim, 1, kMaxHeadDim);
  } else if (std::optional<int64_t> given =
                 object.integer("head_dim", 1, kMaxHeadDim)) {
    config.headDim = *given;
  } else {
    if (config.hidden % config.heads != 0)
      object.error("num_attention_heads",
                   "'hidden_size' " + Twine(config.hidden) +
                       " is not a multiple of 'num_attention_heads' " +
                       Twine(config.heads) + " and 'head_dim' is absent");
    config.headDim = config.hidden / config.heads;
  }
  if (config.headDim % 2 != 0)
    object.error("head_dim", "head dimension " + Twine(config.headDim) +
                                 " is odd; rotary embedding needs pairs");
  if (config.headDim > kMaxHeadDim ||
      config.heads * config.headDim > kMaxFeatures)
    object.error("num_attention_heads",
                 Twine(config.heads) + " heads of " + Twine(config.headDim) +
                     " features are more than " + Twine(kMaxFeatures));
}

/// Values that are other models, or training that is not done here.
static void refuseUnsupported(const ConfigObject &object,
                              const DecoderDefaults &defaults,
                              const ImportOptions &options) {
  refuseQuantization(object);
  object.refuseUnless("attention_bias", false);
  StringRef key = defaults.activationKey;
  if (std::optional<StringRef> activation = object.string(key)) {
    bool known =
        defaults.tanhGelu
            ? *activation == "gelu_pytorch_tanh" || *activation == "gelu_new"
            : *activation == "silu" || *activation == "swish";
    if (!known)
      object.error(key, "'" + Twine(key) + "': \"" + *activation +
                            "\" is not supported; only \"" +
                            (defaults.tanhGelu ? "gelu_pytorch_tanh" : "silu") +
                            "\" is");
  }
  readDropout(object, "attention_dropout", options);
}

int64_t gtp::readWindow(const ConfigObject &config, int64_t fallback) {
  if (fallback && !config.contains("sliding_window"))
    return config.integerOr("sliding_window", fallback, 1, kMaxPositions);
  return config.integer("sliding_window", 1, kMaxPositions).value_or(0);
}

void gtp::refuseWindows(const ConfigObject &object) {
  if (object.boolean("use_sliding_window").value_or(false))
    object.error("use_sliding_window",
                 "'use_sliding_window': true is not supported: layers from "
                 "'max_window_layers' on would see 'sliding_window' tokens "
                 "only; with false all layers see all of them");
  std::optional<SmallVector<StringRef>> types = object.strings("layer_types");
  if (!types)
    return;
  for (StringRef type : *types)
    if (type != "full_attention") {
      object.error("layer_types", "'layer_types': \"" + type +
                                      "\" is not supported; only "
                                      "\"full_attention\" is");
      return;
    }
}

DecoderConfig gtp::readDecoder(const ConfigObject &object,
                               const DecoderDefaults &defaults,
                               const ImportOptions &options) {
  refuseUnsupported(object, defaults, options);
  DecoderConfig config;
  config.tanhGelu = defaults.tanhGelu;
  config.vocabulary =
      object.integerOr("vocab_size", defaults.vocabulary, 1, kMaxVocabulary);
  config.hidden =
      object.integerOr("hidden_size", defaults.hidden, 1, kMaxFeatures);
  config.intermediate = object.integerOr(
      "intermediate_size", defaults.intermediate, 1, kMaxFeatures);
  config.layers =
      object.integerOr("num_hidden_layers", defaults.layers, 1, kMaxLayers);
  readHeads(object, defaults, config);
  config.maxPositions = object.integerOr(
      "max_position_embeddings", defaults.maxPositions, 1, kMaxPositions);
  config.normEps = object.numberOr("rms_norm_eps", defaults.normEps, 0.0);
  config.initializerRange =
      object.numberOr("initializer_range", defaults.initializerRange, 0.0);
  config.tied = object.booleanOr("tie_word_embeddings", defaults.tied);
  if (object.reader().failed())
    return config;
  config.frequencies =
      readRopeFrequencies(object, config.headDim, defaults.rope);
  checkSequence(
      object, "max_position_embeddings", config.maxPositions,
      std::max({config.vocabulary, 2 * config.intermediate, config.hidden,
                (config.heads + 2 * config.kvHeads) * config.headDim}),
      /*learned=*/false, options);
  return config;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
/// Builds the layers.
struct Layer {
  Layer(ModelBuilder &model, const DecoderConfig &config, int64_t index)
      : model(model), config(config),
        prefix((config.names.layers + "." + Twine(index) + ".").str()),
        window(config.windows.empty() ? 0 : config.windows[index]) {}

  std::string at(StringRef name) const { return prefix + name.str(); }
  Value norm(StringRef name, Value x) {
    return model.rmsNorm(at(name), x, config.hidden, config.normEps,
                         config.unitOffset);
  }
  SmallVector<Value> queryKeyValue(Value x);
  Value attention(Value x);
  Value mlp(Value x);

  ModelBuilder &model;
  const DecoderConfig &config;
  std::string prefix;
  int64_t window;
};
} // namespace

SmallVector<Value> Layer::queryKeyValue(Value x) {
  const DecoderNames &names = config.names;
  int64_t queries = config.heads * config.headDim;
  int64_t keys = config.kvHeads * config.headDim;
  LinearSpec spec;
  spec.bias = config.queryKeyValueBias;
  if (config.fusedWeights)
    return model.split(
        at(names.queryKeyValue),
        model.linear(at(names.queryKeyValue), x, queries + 2 * keys, spec),
        {queries, keys, keys});
  Value q = model.linear(at(names.query), x, queries, spec);
  Value k = model.linear(at(names.key), x, keys, spec);
  Value v = model.linear(at(names.value), x, keys, spec);
  return {q, k, v};
}

/// Attention and its residual.
Value Layer::attention(Value x) {
  using Norm = DecoderConfig::QueryKeyNorm;
  const DecoderNames &names = config.names;
  Value normed = config.inputNorms ? norm(names.attentionNorm, x) : x;
  SmallVector<Value> qkv = queryKeyValue(normed);
  Value q = qkv[0], k = qkv[1], v = qkv[2];
  if (config.queryKeyNorm != Norm::None) {
    bool head = config.queryKeyNorm == Norm::Head;
    q = model.rmsNorm(at(names.queryNorm), q,
                      head ? config.headDim : config.heads * config.headDim,
                      config.normEps);
    k = model.rmsNorm(at(names.keyNorm), k,
                      head ? config.headDim : config.kvHeads * config.headDim,
                      config.normEps);
  }
  q = model.rope(at("self_attn.q_rope"), q, config.headDim, config.frequencies);
  k = model.rope(at("self_attn.k_rope"), k, config.headDim, config.frequencies);
  AttentionSpec spec;
  spec.heads = config.heads;
  spec.kvHeads = config.kvHeads;
  spec.headDim = config.headDim;
  spec.scale = config.attentionScale;
  spec.window = window;
  spec.softcap = config.scoreCap;
  Value mixed = model.attention(at("self_attn.attention"), q, k, v, spec);
  Value out = model.linear(at(names.output), mixed, config.hidden);
  if (config.outputNorms)
    out = norm(names.attentionPostNorm, out);
  return model.add(at("self_attn.residual"), x, out);
}

/// The gated MLP and its residual.
Value Layer::mlp(Value x) {
  const DecoderNames &names = config.names;
  Value normed = config.inputNorms ? norm(names.mlpNorm, x) : x;
  Value gate, up;
  if (config.fusedWeights) {
    SmallVector<Value> both = model.split(
        at(names.gateUp),
        model.linear(at(names.gateUp), normed, 2 * config.intermediate),
        {config.intermediate, config.intermediate});
    gate = both[0];
    up = both[1];
  } else {
    gate = model.linear(at(names.gate), normed, config.intermediate);
    up = model.linear(at(names.up), normed, config.intermediate);
  }
  Value gated;
  if (config.tanhGelu)
    gated =
        model.mul(at("mlp.mul"),
                  model.gelu(at("mlp.gelu"), gate, /*approximate=*/true), up);
  else
    gated = model.swiglu(at("mlp.swiglu"), gate, up);
  Value down = model.linear(at(names.down), gated, config.hidden);
  if (config.outputNorms)
    down = norm(names.mlpPostNorm, down);
  return model.add(at("mlp.residual"), x, down);
}

OwningOpRef<ModuleOp> gtp::buildDecoder(const DecoderConfig &config,
                                        StringRef family, Location location,
                                        const ImportOptions &options) {
  const DecoderNames &names = config.names;
  ModelBuilder model(location, options,
                     sequenceOf(config.maxPositions, options));
  Value x = model.embedding(names.embedding, config.vocabulary, config.hidden);
  if (config.embeddingScale)
    x = model.scale("model.embed_scale", x, config.embeddingScale);
  for (int64_t i = 0; i < config.layers; ++i) {
    Layer layer(model, config, i);
    x = layer.mlp(layer.attention(x));
  }
  x = model.rmsNorm(names.norm, x, config.hidden, config.normEps,
                    config.unitOffset);
  Value logits;
  if (config.tied) {
    model.tie(names.embedding, names.head);
    logits = model.tiedLinear(names.head, x, names.embedding);
  } else {
    logits = model.linear(names.head, x, config.vocabulary);
  }
  if (config.logitCap)
    logits = model.softcap("lm_head.softcap", logits, config.logitCap);
  ModelDescription description;
  description.family = family;
  description.vocabulary = config.vocabulary;
  description.maxPositions = config.maxPositions;
  description.initializerRange = config.initializerRange;
  return model.finish(logits, description);
}
