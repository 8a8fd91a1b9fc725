//===- Olmo2.cpp - OLMo 2 -------------------------------------------------===//

#include "Decoder.h"
#include "Family.h"

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' Olmo2Config.
static DecoderDefaults olmo2Defaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 50304;
  defaults.hidden = 4096;
  defaults.intermediate = 11008;
  defaults.layers = 32;
  defaults.heads = 32;
  defaults.maxPositions = 2048;
  defaults.normEps = 1e-5;
  return defaults;
}

OwningOpRef<ModuleOp> gtp::importOlmo2(const ConfigObject &object,
                                       const ImportOptions &options) {
  DecoderConfig config = readDecoder(object, olmo2Defaults(), options);
  config.queryKeyNorm = DecoderConfig::QueryKeyNorm::All;
  config.inputNorms = false;
  config.outputNorms = true;
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "olmo2", object.reader().location(""), options);
}
