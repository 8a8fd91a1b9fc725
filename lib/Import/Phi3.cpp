//===- Phi3.cpp - Phi-3 ---------------------------------------------------===//

#include "Decoder.h"
#include "Family.h"
#include "Sizes.h"

using namespace mlir;
using namespace gtp;

/// The defaults of transformers' Phi3Config.
static DecoderDefaults phi3Defaults() {
  DecoderDefaults defaults;
  defaults.vocabulary = 32064;
  defaults.hidden = 3072;
  defaults.intermediate = 8192;
  defaults.layers = 32;
  defaults.heads = 32;
  defaults.maxPositions = 4096;
  defaults.normEps = 1e-5;
  defaults.rope.partKey = "partial_rotary_factor";
  return defaults;
}

OwningOpRef<ModuleOp> gtp::importPhi3(const ConfigObject &object,
                                      const ImportOptions &options) {
  // Only scaled positions need it.
  object.has("original_max_position_embeddings");
  readDropout(object, "embd_pdrop", options);
  readDropout(object, "resid_pdrop", options);
  DecoderConfig config = readDecoder(object, phi3Defaults(), options);
  config.fusedWeights = true;
  config.windows.assign(config.layers, readWindow(object, 0));
  if (object.reader().failed())
    return nullptr;
  return buildDecoder(config, "phi3", object.reader().location(""), options);
}
