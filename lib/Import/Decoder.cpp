//===- Decoder.cpp - Pre-norm decoders with rotary attention --------------===//

#include "Decoder.h"
#include "Rope.h"

#include <algorithm>

using namespace mlir;
using namespace gtp;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

// Bounds on single sizes: beyond any model, and small enough that the products
// below fit 63 bits and that building the program takes seconds at most.
static constexpr int64_t kMaxVocabulary = int64_t(1) << 24;
static constexpr int64_t kMaxFeatures = int64_t(1) << 20;
static constexpr int64_t kMaxLayers = 4096;
static constexpr int64_t kMaxHeads = int64_t(1) << 14;
static constexpr int64_t kMaxHeadDim = int64_t(1) << 13;
static constexpr int64_t kMaxPositions = int64_t(1) << 30;
static constexpr int64_t kMaxSequence = int64_t(1) << 24;
/// Bytes of one activation of all ranks.
static constexpr int64_t kMaxTensorBytes = int64_t(1) << 60;

static constexpr int64_t kDefaultSequence = 2048;

static int64_t sequenceOf(const DecoderConfig &config,
                          const ImportOptions &options) {
  return options.sequence ? options.sequence
                          : std::min(kDefaultSequence, config.maxPositions);
}

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
                              const ImportOptions &options) {
  object.refuse("quantization_config",
                "weights are trained in --dtype; give the config of the "
                "unquantized model");
  object.refuseUnless("attention_bias", false);
  if (std::optional<StringRef> activation = object.string("hidden_act"))
    if (*activation != "silu" && *activation != "swish")
      object.error("hidden_act", "'hidden_act': \"" + *activation +
                                     "\" is not supported; only \"silu\" is");
  std::optional<double> dropout = object.number("attention_dropout", -1.0);
  if (dropout && (*dropout < 0.0 || *dropout >= 1.0))
    object.error("attention_dropout",
                 "'attention_dropout' must be at least 0 and less than 1");
  else if (dropout && *dropout != 0.0 && !options.dropoutAcknowledged)
    object.warn("attention_dropout",
                "dropout is not applied; --dropout=0 says that this is meant");
}

/// The sizes of activations depend on the command line too.
static void checkSequence(const ConfigObject &object,
                          const DecoderConfig &config,
                          const ImportOptions &options) {
  int64_t sequence = sequenceOf(config, options);
  int64_t widest = std::max({config.vocabulary, config.intermediate,
                             config.hidden, config.heads * config.headDim});
  int64_t limit = kMaxTensorBytes / (widest * int64_t(sizeof(double)));
  if (sequence < 1 || sequence > kMaxSequence || options.microBatch < 1 ||
      options.dataRanks < 1 || options.microbatches < 1 ||
      options.microBatch > limit / sequence / options.dataRanks ||
      options.microbatches >
          kMaxTensorBytes / sequence / options.dataRanks / options.microBatch) {
    object.error("", "a batch of " + Twine(options.dataRanks) +
                         " data ranks with " + Twine(options.microBatch) +
                         " sequences of " + Twine(sequence) +
                         " tokens is too large");
    return;
  }
  if (sequence > config.maxPositions && !object.reader().failed())
    object.warn("max_position_embeddings",
                "a sequence of " + Twine(sequence) +
                    " tokens is longer than the " + Twine(config.maxPositions) +
                    " positions that the model was made for");
}

DecoderConfig gtp::readDecoder(const ConfigObject &object,
                               const DecoderDefaults &defaults,
                               const ImportOptions &options) {
  refuseUnsupported(object, options);
  DecoderConfig config;
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
      readRopeFrequencies(object, config.headDim, defaults.ropeTheta);
  checkSequence(object, config, options);
  return config;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Attention and its residual.
static Value buildAttention(ModelBuilder &model, const DecoderConfig &config,
                            const std::string &layer, Value x) {
  const DecoderNames &names = config.names;
  auto at = [&](StringRef name) { return layer + name.str(); };
  Value normed =
      model.rmsNorm(at(names.attentionNorm), x, config.hidden, config.normEps);
  Value q =
      model.linear(at(names.query), normed, config.heads * config.headDim);
  Value k =
      model.linear(at(names.key), normed, config.kvHeads * config.headDim);
  Value v =
      model.linear(at(names.value), normed, config.kvHeads * config.headDim);
  if (config.headNorms) {
    q = model.rmsNorm(at(names.queryNorm), q, config.headDim, config.normEps);
    k = model.rmsNorm(at(names.keyNorm), k, config.headDim, config.normEps);
  }
  q = model.rope(at("self_attn.q_rope"), q, config.headDim, config.frequencies);
  k = model.rope(at("self_attn.k_rope"), k, config.headDim, config.frequencies);
  Value mixed = model.attention(at("self_attn.attention"), q, k, v,
                                config.heads, config.kvHeads, config.headDim);
  Value out = model.linear(at(names.output), mixed, config.hidden);
  return model.add(at("self_attn.residual"), x, out);
}

/// The gated MLP and its residual.
static Value buildMlp(ModelBuilder &model, const DecoderConfig &config,
                      const std::string &layer, Value x) {
  const DecoderNames &names = config.names;
  auto at = [&](StringRef name) { return layer + name.str(); };
  Value normed =
      model.rmsNorm(at(names.mlpNorm), x, config.hidden, config.normEps);
  Value gate = model.linear(at(names.gate), normed, config.intermediate);
  Value up = model.linear(at(names.up), normed, config.intermediate);
  Value gated = model.swiglu(at("mlp.swiglu"), gate, up);
  Value down = model.linear(at(names.down), gated, config.hidden);
  return model.add(at("mlp.residual"), x, down);
}

OwningOpRef<ModuleOp> gtp::buildDecoder(const DecoderConfig &config,
                                        StringRef family, Location location,
                                        const ImportOptions &options) {
  const DecoderNames &names = config.names;
  ModelBuilder model(location, options, sequenceOf(config, options));
  Value x = model.embedding(names.embedding, config.vocabulary, config.hidden);
  for (int64_t i = 0; i < config.layers; ++i) {
    std::string layer = (names.layers + "." + Twine(i) + ".").str();
    x = buildAttention(model, config, layer, x);
    x = buildMlp(model, config, layer, x);
  }
  x = model.rmsNorm(names.norm, x, config.hidden, config.normEps);
  Value logits;
  if (config.tied) {
    model.tie(names.embedding, names.head);
    logits = model.tiedLinear(names.head, x, names.embedding);
  } else {
    logits = model.linear(names.head, x, config.vocabulary);
  }
  ModelDescription description;
  description.family = family;
  description.vocabulary = config.vocabulary;
  description.maxPositions = config.maxPositions;
  description.initializerRange = config.initializerRange;
  return model.finish(logits, description);
}
