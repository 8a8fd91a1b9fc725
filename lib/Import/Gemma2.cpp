//===- Gemma2.cpp - Gemma 2 -----------------------------------------------===//

#include "Decoder.h"
#include "Family.h"

#include <cmath>

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' Gemma2Config.
static DecoderDefaults gemma2Defaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 256000;
  defaults.hidden = 2304;
  defaults.intermediate = 9216;
  defaults.layers = 26;
  defaults.heads = 8;
  defaults.kvHeads = 4;
  defaults.headDim = 256;
  defaults.maxPositions = 8192;
  defaults.normEps = 1e-6;
  defaults.tied = true;
  defaults.activationKey = "hidden_activation";
  defaults.tanhGelu = true;
  return defaults;
}

/// null means no cap.
static double readCap(const ConfigObject &object, StringRef key,
                      double fallback) {
  if (!object.contains(key))
    return object.numberOr(key, fallback, 0.0);
  return object.number(key, 0.0).value_or(0.0);
}

/// Every second layer, from the first on, sees a window only, unless
/// `layer_types` says which.
static void readLayerWindows(const ConfigObject &object,
                             DecoderConfig &config) {
  int64_t window = readWindow(object, 4096);
  std::optional<SmallVector<StringRef>> types = object.strings("layer_types");
  if (types && static_cast<int64_t>(types->size()) != config.layers) {
    object.error("layer_types", "'layer_types' names " + Twine(types->size()) +
                                    " layers of " + Twine(config.layers));
    return;
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    StringRef type = types        ? (*types)[i]
                     : i % 2 == 0 ? "sliding_attention"
                                  : "full_attention";
    if (type != "sliding_attention" && type != "full_attention") {
      object.error("layer_types",
                   "'layer_types': \"" + type +
                       "\" is not supported; supported: full_attention, "
                       "sliding_attention");
      return;
    }
    config.windows.push_back(type == "sliding_attention" ? window : 0);
  }
}

OwningOpRef<ModuleOp> gtp::importGemma2(const ConfigObject &object,
                                        const ImportOptions &options) {
  // Older configs have both keys; hidden_activation is the one that counts.
  object.has("hidden_act");
  object.refuseUnless("use_bidirectional_attention", false);
  DecoderConfig config = readDecoder(object, gemma2Defaults(), options);
  config.names.mlpNorm = "pre_feedforward_layernorm";
  config.outputNorms = true;
  config.unitOffset = true;
  config.embeddingScale = std::sqrt(static_cast<double>(config.hidden));
  config.attentionScale =
      1.0 / std::sqrt(object.numberOr("query_pre_attn_scalar", 256.0, 0.0));
  config.scoreCap = readCap(object, "attn_logit_softcapping", 50.0);
  config.logitCap = readCap(object, "final_logit_softcapping", 30.0);
  readLayerWindows(object, config);
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "gemma2", object.reader().location(""), options);
}
