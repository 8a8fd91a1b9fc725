//===- Gemm.h - Matrix products through cuBLASLt --------------------------===//

#ifndef GTP_RUNTIME_CUDA_GEMM_H
#define GTP_RUNTIME_CUDA_GEMM_H

#include "Context.h"
#include "gtp-rt/TuningCache.h"

#include <memory>

namespace gtp::rt::cuda {

/// Fails for an algorithm that needs more workspace, in bytes, than the plan
/// gives the product.
Status checkProductWorkspace(uint64_t bytes, uint64_t scratchBytes);

/// d = a b (+ d or a bias), row-major, in float32 without TF32 or with bf16
/// operands and float32 sums, rounded once. Its algorithm is one of those that
/// sum in one fixed order, so that equal calls give equal bits; calls of one
/// shape share it.
class Gemm {
public:
  /// One of cuBLASLt's algorithms.
  struct Choice {
    cublasLtMatmulAlgo_t algorithm = {};
    uint64_t workspaceBytes = 0;
    /// What it may be built from again; none if that gives another one.
    std::optional<ProductAlgorithm> attributes;
  };

  /// The product of that shape, which the context keeps. Fails when cuBLASLt
  /// has no algorithm for it.
  static StatusOr<std::shared_ptr<const Gemm>>
  create(Context &context, const ProductShape &shape);

  explicit Gemm(Context &context) : context(context) {}
  ~Gemm();
  Gemm(const Gemm &) = delete;
  Gemm &operator=(const Gemm &) = delete;

  const ProductShape &shape() const { return product; }
  /// The library's first choice, then what else of its list its attributes
  /// build; never empty.
  const std::vector<Choice> &candidates() const { return choices; }
  static StatusOr<ProductAlgorithm>
  attributes(const cublasLtMatmulAlgo_t &algorithm);
  /// Fails where the library takes no such algorithm for this product.
  StatusOr<Choice> build(const ProductAlgorithm &attributes) const;
  /// From now on; until then, the first candidate.
  void use(const Choice &choice) { chosen = choice; }
  const Choice &choice() const { return chosen; }

  /// On a stream of the plan. `workspace` has the shape's bytes of scratch;
  /// null where these are 0. `bias` is null where the shape has none.
  Status run(const void *a, const void *b, void *d, bool add, void *workspace,
             uint32_t stream, const void *bias = nullptr) const;
  /// By an algorithm, on any stream; `workspace` holds what the algorithm
  /// needs.
  cublasStatus_t run(const Choice &choice, const void *a, const void *b,
                     void *d, bool add, void *workspace, cudaStream_t stream,
                     const void *bias = nullptr) const;

private:
  Status describe(const ProductShape &shape);
  cublasStatus_t setBias(const void *bias) const;
  Status findCandidates(cublasLtMatmulPreference_t preference);

  Context &context;
  ProductShape product;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  std::vector<Choice> choices;
  Choice chosen;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_GEMM_H
