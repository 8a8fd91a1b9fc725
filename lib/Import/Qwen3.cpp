//===- Qwen3.cpp - Dense Qwen3 --------------------------------------------===//

#include "Decoder.h"
#include "Family.h"

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
  return defaults;
}

OwningOpRef<ModuleOp> gtp::importQwen3(const ConfigObject &object,
                                       const ImportOptions &options) {
  refuseWindows(object);
  DecoderConfig config = readDecoder(object, qwen3Defaults(), options);
  config.queryKeyNorm = DecoderConfig::QueryKeyNorm::Head;
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "qwen3", object.reader().location(""), options);
}
