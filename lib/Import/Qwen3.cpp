//===- Qwen3.cpp - Dense Qwen3 --------------------------------------------===//

#include "Decoder.h"
#include "Family.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' Qwen3Config.
static DecoderDefaults qwen3Defaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 151936;
  defaults.hidden = 4096;
  defaults.intermediate = 22016;
  defaults.layers = 32;
  defaults.heads = 32;
  defaults.kvHeads = 32;
  defaults.headDim = 128;
  defaults.maxPositions = 32768;
  defaults.normEps = 1e-6;
  defaults.ropeTheta = 10000.0;
  return defaults;
}

/// Attention is over the whole sequence in every layer.
static void refuseWindows(const ConfigObject &object) {
  object.refuseUnless("use_sliding_window", false);
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

OwningOpRef<ModuleOp> gtp::importQwen3(const ConfigObject &object,
                                       const ImportOptions &options) {
  refuseWindows(object);
  DecoderConfig config = readDecoder(object, qwen3Defaults(), options);
  config.headNorms = true;
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "qwen3", object.reader().location(""), options);
}
