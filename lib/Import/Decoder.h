//===- Decoder.h - RMS-norm decoders with rotary attention ----------------===//
//
// The shape that Llama fixed and most families since keep: embedding, layers of
// grouped-query attention and a gated MLP, each with RMS norms before or behind
// it and around a residual, a last norm, and a head that may share the
// embedding's weight. A family of this shape is its defaults, its refusals, and
// its weight names.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_IMPORT_DECODER_H
#define GTP_LIB_IMPORT_DECODER_H

#include "ConfigReader.h"
#include "ModelBuilder.h"
#include "Rope.h"

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
  /// Norms of what is added to the residual, where the family has them.
  llvm::StringLiteral attentionPostNorm = "post_attention_layernorm";
  llvm::StringLiteral mlpPostNorm = "post_feedforward_layernorm";
  /// Where the family has q, k and v, and gate and up, in one weight each.
  llvm::StringLiteral queryKeyValue = "self_attn.qkv_proj";
  llvm::StringLiteral gateUp = "mlp.gate_up_proj";
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
  RopeKeys rope;
  double initializerRange = 0.02;
  bool tied = false;
  /// The key of the gate's activation; "silu" is the only one when `tanhGelu`
  /// is false, else a gelu by the tanh formula is.
  llvm::StringLiteral activationKey = "hidden_act";
  bool tanhGelu = false;
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
  /// What of q and k is normalized before they turn.
  enum class QueryKeyNorm { None, Head, All };
  QueryKeyNorm queryKeyNorm = QueryKeyNorm::None;
  bool queryKeyValueBias = false;
  bool fusedWeights = false;
  /// Norms of the inputs of attention and MLP, and of their outputs.
  bool inputNorms = true;
  bool outputNorms = false;
  /// Weights of norms count from 1.
  bool unitOffset = false;
  bool tanhGelu = false;
  /// Factor of embeddings; 0: none.
  double embeddingScale = 0;
  /// Of scores; 0: 1/sqrt(headDim).
  double attentionScale = 0;
  /// Soft caps of scores and logits; 0: none.
  double scoreCap = 0;
  double logitCap = 0;
  /// Window of each layer's attention, 0: none. Empty: none at all.
  llvm::SmallVector<int64_t> windows;
  llvm::SmallVector<double> frequencies;
  DecoderNames names;
};

/// Reads the keys that all families of the shape share and checks the sizes,
/// also with those of the options. Errors are the reader's.
DecoderConfig readDecoder(const ConfigObject &config,
                          const DecoderDefaults &defaults,
                          const ImportOptions &options);

/// `sliding_window`: a size, or 0 for null. Absent means `fallback`.
int64_t readWindow(const ConfigObject &config, int64_t fallback);

/// Refuses `use_sliding_window` and sliding layers.
void refuseWindows(const ConfigObject &config);

/// Builds the program of a config that readDecoder found right.
mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(const DecoderConfig &config,
                                               llvm::StringRef family,
                                               mlir::Location location,
                                               const ImportOptions &options);

} // namespace gtp

#endif // GTP_LIB_IMPORT_DECODER_H
