//===- Mistral.cpp - Mistral 7B -------------------------------------------===//

#include "Decoder.h"
#include "Family.h"

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' MistralConfig.
static DecoderDefaults mistralDefaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 32000;
  defaults.hidden = 4096;
  defaults.intermediate = 14336;
  defaults.layers = 32;
  defaults.heads = 32;
  defaults.kvHeads = 8;
  defaults.maxPositions = 4096 * 32;
  defaults.normEps = 1e-6;
  return defaults;
}

OwningOpRef<ModuleOp> gtp::importMistral(const ConfigObject &object,
                                         const ImportOptions &options) {
  DecoderConfig config = readDecoder(object, mistralDefaults(), options);
  config.windows.assign(config.layers, readWindow(object, 4096));
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "mistral", object.reader().location(""), options);
}
