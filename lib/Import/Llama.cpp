//===- Llama.cpp - TinyLlama, SmolLM2, Llama 2 and 3.x --------------------===//

#include "Decoder.h"
#include "Family.h"

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' LlamaConfig.
static DecoderDefaults llamaDefaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 32000;
  defaults.hidden = 4096;
  defaults.intermediate = 11008;
  defaults.layers = 32;
  defaults.heads = 32;
  defaults.maxPositions = 2048;
  defaults.normEps = 1e-6;
  return defaults;
}

OwningOpRef<ModuleOp> gtp::importLlama(const ConfigObject &object,
                                       const ImportOptions &options) {
  object.refuseUnless("mlp_bias", false);
  object.refuseUnless("pretraining_tp", int64_t(1));
  DecoderConfig config = readDecoder(object, llamaDefaults(), options);
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "llama", object.reader().location(""), options);
}
