//===- CudnnAttention.h - Attention of bf16 by cuDNN ----------------------===//
//
// cuDNN is loaded when a plan first needs it, so that a machine without it runs
// plans that do not. What it has built for one shape serves every layer.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_CUDNNATTENTION_H
#define GTP_RUNTIME_CUDA_CUDNNATTENTION_H

#include "Launch.h"
#include "gtp/Support/Status.h"

#include <memory>
#include <string>
#include <vector>

namespace gtp::rt::cuda {

/// A call of `attention` or `attention_grad` of bf16, without softcap and
/// without starts. Operands are in the registry's order, up to scratch.
struct AttentionProblem {
  AttentionShape shape;
  bool gradient = false;
  /// Of the gradient: sums may run in any order.
  bool fast = false;
  /// Elements from one token to the next, an operand each; of lse unused.
  std::vector<uint64_t> pitches;
};

/// Built for one problem. Runs may be captured in a graph.
class CudnnAttention {
public:
  virtual ~CudnnAttention() = default;
  /// Bytes of scratch that a run uses.
  virtual uint64_t scratchBytes() const = 0;
  /// `operands` as in the problem; `scratch` is a multiple of 16.
  virtual Status run(void *const *operands, void *scratch,
                     cudaStream_t stream) const = 0;
};

/// What was built, or why cuDNN does not take the problem.
struct MadeAttention {
  std::shared_ptr<const CudnnAttention> attention;
  std::string refusal;
};

class Cudnn {
public:
  /// Loads the library and makes a handle on the current device. Fails when
  /// there is none, or an older one than is known to be right.
  static StatusOr<std::shared_ptr<Cudnn>> load();
  virtual ~Cudnn() = default;
  /// "cuDNN 9.19.1" of the library that would be loaded, or "no cuDNN".
  static std::string installed();

  /// "cuDNN 9.19.1".
  virtual std::string name() const = 0;
  /// The first of its algorithms, in the order of its heuristics, that builds
  /// and needs at most `scratchBytes`. An error names the scratch that would
  /// do.
  virtual StatusOr<MadeAttention> attention(const AttentionProblem &problem,
                                            uint64_t scratchBytes) = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_CUDNNATTENTION_H
