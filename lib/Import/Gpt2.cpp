//===- Gpt2.cpp - GPT-2 ---------------------------------------------------===//
//
// Learned positions, layer norms before attention and MLP, biases everywhere,
// and linears that checkpoints hold transposed (transformers' Conv1D).
//
//===----------------------------------------------------------------------===//

#include "Family.h"
#include "ModelBuilder.h"
#include "Sizes.h"

#include <algorithm>

using namespace mlir;
using namespace gtp;

namespace {
struct Gpt2Config {
  int64_t vocabulary, hidden, intermediate, layers, heads, headDim, positions;
  double normEps, initializerRange;
  bool tied, tanhGelu, scaleScores;
};
} // namespace

static void refuseUnsupported(const ConfigObject &object,
                              const ImportOptions &options) {
  refuseQuantization(object);
  object.refuseUnless("scale_attn_by_inverse_layer_idx", false);
  object.refuseUnless("reorder_and_upcast_attn", false);
  object.refuseUnless("add_cross_attention", false);
  for (StringRef key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
    readDropout(object, key, options, 0.1);
  // Of a classifier, and an old name of n_positions.
  for (StringRef key :
       {"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
        "summary_type", "summary_use_proj", "n_ctx"})
    object.has(key);
}

/// Absent keys mean the defaults of transformers' GPT2Config.
static Gpt2Config readConfig(const ConfigObject &object,
                             const ImportOptions &options) {
  refuseUnsupported(object, options);
  Gpt2Config config;
  config.vocabulary = object.integerOr("vocab_size", 50257, 1, kMaxVocabulary);
  config.hidden = object.integerOr("n_embd", 768, 1, kMaxFeatures);
  config.intermediate =
      object.integer("n_inner", 1, kMaxFeatures).value_or(4 * config.hidden);
  config.layers = object.integerOr("n_layer", 12, 1, kMaxLayers);
  config.heads = object.integerOr("n_head", 12, 1, kMaxHeads);
  config.headDim =
      headDimOf(object, "n_embd", config.hidden, "n_head", config.heads);
  config.positions = object.integerOr("n_positions", 1024, 1, kMaxSequence);
  config.normEps = object.numberOr("layer_norm_epsilon", 1e-5, 0.0);
  config.initializerRange = object.numberOr("initializer_range", 0.02, 0.0);
  config.tanhGelu = isTanhGelu(object, "activation_function", "gelu_new");
  // These two are in no config that has not changed them.
  config.tied = object.boolean("tie_word_embeddings").value_or(true);
  config.scaleScores = object.boolean("scale_attn_weights").value_or(true);
  if (!object.reader().failed())
    checkSequence(
        object, "n_positions", config.positions,
        std::max({config.vocabulary, config.intermediate, 3 * config.hidden}),
        /*learned=*/true, options);
  return config;
}

static Value buildLayer(ModelBuilder &model, const Gpt2Config &config,
                        const std::string &layer, Value x) {
  auto at = [&](StringRef name) { return layer + name.str(); };
  LinearSpec conv1d;
  conv1d.bias = true;
  conv1d.layout.transposed = true;
  Value normed = model.layerNorm(at("ln_1"), x, config.normEps);
  Value fused =
      model.linear(at("attn.c_attn"), normed, 3 * config.hidden, conv1d);
  SmallVector<Value> qkv = model.split(
      at("attn.c_attn"), fused, {config.hidden, config.hidden, config.hidden});
  AttentionSpec spec;
  spec.heads = spec.kvHeads = config.heads;
  spec.headDim = config.headDim;
  spec.scale = config.scaleScores ? 0.0 : 1.0;
  Value mixed =
      model.attention(at("attn.attention"), qkv[0], qkv[1], qkv[2], spec);
  Value out = model.linear(at("attn.c_proj"), mixed, config.hidden, conv1d);
  x = model.add(at("attn.residual"), x, out);

  normed = model.layerNorm(at("ln_2"), x, config.normEps);
  Value inner =
      model.linear(at("mlp.c_fc"), normed, config.intermediate, conv1d);
  inner = model.gelu(at("mlp.act"), inner, config.tanhGelu);
  out = model.linear(at("mlp.c_proj"), inner, config.hidden, conv1d);
  return model.add(at("mlp.residual"), x, out);
}

OwningOpRef<ModuleOp> gtp::importGpt2(const ConfigObject &object,
                                      const ImportOptions &options) {
  Gpt2Config config = readConfig(object, options);
  if (object.reader().failed())
    return nullptr;
  ModelBuilder model(object.reader().location(""), options,
                     sequenceOf(config.positions, options));
  model.makeOptional("transformer.");
  Value x =
      model.embedding("transformer.wte", config.vocabulary, config.hidden);
  x = model.addPositions("transformer.wpe", x, config.positions);
  for (int64_t i = 0; i < config.layers; ++i)
    x = buildLayer(model, config, ("transformer.h." + Twine(i) + ".").str(), x);
  x = model.layerNorm("transformer.ln_f", x, config.normEps);
  Value logits;
  if (config.tied) {
    model.tie("transformer.wte", "lm_head");
    logits = model.tiedLinear("lm_head", x, "transformer.wte");
  } else {
    logits = model.linear("lm_head", x, config.vocabulary);
  }
  ModelDescription description;
  description.family = "gpt2";
  description.vocabulary = config.vocabulary;
  description.maxPositions = config.positions;
  description.initializerRange = config.initializerRange;
  return model.finish(logits, description);
}
