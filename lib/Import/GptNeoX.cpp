//===- GptNeoX.cpp - GPT-NeoX and Pythia ----------------------------------===//
//
// Layer norms and biases everywhere, rotary embedding of a part of each head,
// attention and MLP of one input beside each other, and q, k and v of each head
// one behind the other in one weight.
//
//===----------------------------------------------------------------------===//

#include "Family.h"
#include "ModelBuilder.h"
#include "Rope.h"
#include "Sizes.h"

#include <algorithm>

using namespace mlir;
using namespace gtp;

namespace {
struct NeoXConfig {
  int64_t vocabulary, hidden, intermediate, layers, heads, headDim, positions;
  double normEps, initializerRange;
  bool tied, tanhGelu, parallel, attentionBias;
  llvm::SmallVector<double> frequencies;
};
} // namespace

/// Absent keys mean the defaults of transformers' GPTNeoXConfig.
static NeoXConfig readConfig(const ConfigObject &object,
                             const ImportOptions &options) {
  refuseQuantization(object);
  for (StringRef key : {"attention_dropout", "hidden_dropout"})
    readDropout(object, key, options);
  object.has("classifier_dropout");
  NeoXConfig config;
  config.vocabulary = object.integerOr("vocab_size", 50432, 1, kMaxVocabulary);
  config.hidden = object.integerOr("hidden_size", 6144, 1, kMaxFeatures);
  config.intermediate =
      object.integerOr("intermediate_size", 24576, 1, kMaxFeatures);
  config.layers = object.integerOr("num_hidden_layers", 44, 1, kMaxLayers);
  config.heads = object.integerOr("num_attention_heads", 64, 1, kMaxHeads);
  config.headDim = headDimOf(object, "hidden_size", config.hidden,
                             "num_attention_heads", config.heads);
  config.positions =
      object.integerOr("max_position_embeddings", 2048, 1, kMaxPositions);
  config.normEps = object.numberOr("layer_norm_eps", 1e-5, 0.0);
  config.initializerRange = object.numberOr("initializer_range", 0.02, 0.0);
  config.tied = object.booleanOr("tie_word_embeddings", false);
  config.parallel = object.booleanOr("use_parallel_residual", true);
  // Came late, and older configs mean true.
  config.attentionBias = object.boolean("attention_bias").value_or(true);
  config.tanhGelu = isTanhGelu(object, "hidden_act", "gelu");
  if (object.reader().failed())
    return config;
  RopeKeys keys;
  keys.thetaKey = "rotary_emb_base";
  keys.partKey = "rotary_pct";
  keys.part = 0.25;
  config.frequencies = readRopeFrequencies(object, config.headDim, keys);
  checkSequence(
      object, "max_position_embeddings", config.positions,
      std::max({config.vocabulary, config.intermediate, 3 * config.hidden}),
      /*learned=*/false, options);
  return config;
}

static Value buildAttention(ModelBuilder &model, const NeoXConfig &config,
                            const std::string &layer, Value x) {
  auto at = [&](StringRef name) { return layer + name.str(); };
  LinearSpec fused, dense;
  fused.bias = dense.bias = config.attentionBias;
  fused.layout.groups = config.heads;
  fused.layout.parts = 3;
  Value y = model.linear(at("attention.query_key_value"), x, 3 * config.hidden,
                         fused);
  SmallVector<Value> qkv =
      model.split(at("attention.query_key_value"), y,
                  {config.hidden, config.hidden, config.hidden});
  Value q = model.rope(at("attention.q_rope"), qkv[0], config.headDim,
                       config.frequencies);
  Value k = model.rope(at("attention.k_rope"), qkv[1], config.headDim,
                       config.frequencies);
  AttentionSpec spec;
  spec.heads = spec.kvHeads = config.heads;
  spec.headDim = config.headDim;
  Value mixed = model.attention(at("attention.attention"), q, k, qkv[2], spec);
  return model.linear(at("attention.dense"), mixed, config.hidden, dense);
}

static Value buildLayer(ModelBuilder &model, const NeoXConfig &config,
                        const std::string &layer, Value x) {
  auto at = [&](StringRef name) { return layer + name.str(); };
  Value normed = model.layerNorm(at("input_layernorm"), x, config.normEps);
  Value attention = buildAttention(model, config, layer, normed);
  Value middle = model.add(at("attention.residual"), x, attention);

  LinearSpec spec;
  spec.bias = true;
  Value input = model.layerNorm(at("post_attention_layernorm"),
                                config.parallel ? x : middle, config.normEps);
  Value inner =
      model.linear(at("mlp.dense_h_to_4h"), input, config.intermediate, spec);
  inner = model.gelu(at("mlp.act"), inner, config.tanhGelu);
  Value out = model.linear(at("mlp.dense_4h_to_h"), inner, config.hidden, spec);
  return model.add(at("mlp.residual"), middle, out);
}

OwningOpRef<ModuleOp> gtp::importGptNeoX(const ConfigObject &object,
                                         const ImportOptions &options) {
  NeoXConfig config = readConfig(object, options);
  if (object.reader().failed())
    return nullptr;
  ModelBuilder model(object.reader().location(""), options,
                     sequenceOf(config.positions, options));
  Value x =
      model.embedding("gpt_neox.embed_in", config.vocabulary, config.hidden);
  for (int64_t i = 0; i < config.layers; ++i)
    x = buildLayer(model, config, ("gpt_neox.layers." + Twine(i) + ".").str(),
                   x);
  x = model.layerNorm("gpt_neox.final_layer_norm", x, config.normEps);
  Value logits;
  if (config.tied) {
    model.tie("gpt_neox.embed_in", "embed_out");
    logits = model.tiedLinear("embed_out", x, "gpt_neox.embed_in");
  } else {
    logits = model.linear("embed_out", x, config.vocabulary);
    // What transformers calls it since version 5.
    model.tie("embed_out", "lm_head");
  }
  ModelDescription description;
  description.family = "gpt_neox";
  description.vocabulary = config.vocabulary;
  description.maxPositions = config.positions;
  description.initializerRange = config.initializerRange;
  return model.finish(logits, description);
}
