//===- Qwen2.cpp - Qwen2 and Qwen2.5 --------------------------------------===//

#include "Decoder.h"
#include "Family.h"

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' Qwen2Config.
static DecoderDefaults qwen2Defaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 151936;
  defaults.hidden = 4096;
  defaults.intermediate = 22016;
  defaults.layers = 32;
  defaults.heads = 32;
  defaults.kvHeads = 32;
  defaults.maxPositions = 32768;
  defaults.normEps = 1e-6;
  return defaults;
}

OwningOpRef<ModuleOp> gtp::importQwen2(const ConfigObject &object,
                                       const ImportOptions &options) {
  refuseWindows(object);
  object.refuseUnless("use_mrope", false);
  DecoderConfig config = readDecoder(object, qwen2Defaults(), options);
  config.queryKeyValueBias = true;
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "qwen2", object.reader().location(""), options);
}
