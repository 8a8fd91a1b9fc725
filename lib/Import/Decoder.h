//===- Decoder.h - Pre-norm decoders with rotary attention ----------------===//
//
// The shape that Llama fixed and most families since keep: embedding, layers of
// grouped-query attention and a gated MLP, each behind an RMS norm and around a
// residual, a last norm, and a head that may share the embedding's weight. A
// family of this shape is its defaults, its refusals, and its weight names.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_IMPORT_DECODER_H
#define GTP_LIB_IMPORT_DECODER_H

#include "ConfigReader.h"
#include "ModelBuilder.h"

namespace gtp {

/// Names of the modules in checkpoints. Those of a layer follow
/// "<layers>.<i>.".
struct DecoderNames {
  llvm::StringLiteral embedding = "model.embed_tokens";
  llvm::StringLiteral layers = "model.layers";
  llvm::StringLiteral attentionNorm = "input_layernorm";
  llvm::StringLiteral query = "self_attn.q_proj";
  llvm::StringLiteral key = "self_attn.k_proj";
  llvm::StringLiteral value = "self_attn.v_proj";
  llvm::StringLiteral output = "self_attn.o_proj";
  /// Norms of each head of q and k, where the family has them.
  llvm::StringLiteral queryNorm = "self_attn.q_norm";
  llvm::StringLiteral keyNorm = "self_attn.k_norm";
  llvm::StringLiteral mlpNorm = "post_attention_layernorm";
  llvm::StringLiteral gate = "mlp.gate_proj";
  llvm::StringLiteral up = "mlp.up_proj";
  llvm::StringLiteral down = "mlp.down_proj";
  llvm::StringLiteral norm = "model.norm";
  llvm::StringLiteral head = "lm_head";
};

/// What a family takes for absent keys: the defaults of its class in
/// transformers.
struct DecoderDefaults {
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  /// 0: as many as heads.
  int64_t kvHeads = 0;
  /// 0: hidden / heads.
  int64_t headDim = 0;
  int64_t maxPositions = 0;
  double normEps = 0;
  double ropeTheta = 0;
  double initializerRange = 0.02;
  bool tied = false;
};

/// One model of the shape.
struct DecoderConfig {
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t maxPositions = 0;
  double normEps = 0;
  double initializerRange = 0;
  bool tied = false;
  /// Each head of q and k is normalized.
  bool headNorms = false;
  llvm::SmallVector<double> frequencies;
  DecoderNames names;
};

/// Reads the keys that all families of the shape share and checks the sizes,
/// also with those of the options. Errors are the reader's.
DecoderConfig readDecoder(const ConfigObject &config,
                          const DecoderDefaults &defaults,
                          const ImportOptions &options);

/// Builds the program of a config that readDecoder found right.
mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(const DecoderConfig &config,
                                               llvm::StringRef family,
                                               mlir::Location location,
                                               const ImportOptions &options);

} // namespace gtp

#endif // GTP_LIB_IMPORT_DECODER_H
