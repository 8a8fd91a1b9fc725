//===- Gemm.h - Matrix products through cuBLASLt --------------------------===//

#ifndef GTP_RUNTIME_CUDA_GEMM_H
#define GTP_RUNTIME_CUDA_GEMM_H

#include "Context.h"

#include <memory>

namespace gtp::rt::cuda {

/// A row-major operand of a product, without its address.
struct MatrixShape {
  uint64_t rows = 0, columns = 0, pitch = 0; ///< as stored
  bool transposed = false; ///< the product takes its transpose
  Element type = Element::F32;
  /// What every address it will have is a multiple of, bytes.
  uint64_t alignment = 4;
};

/// d = a b (+ d), row-major, in float32 without TF32 or with bf16 operands and
/// float32 sums. The algorithm is chosen once, of those that sum in one fixed
/// order, so that equal calls give equal bits.
class Gemm {
public:
  virtual ~Gemm() = default;
  /// Fails when cuBLASLt has no algorithm for the shapes. Asks the context for
  /// workspace.
  static StatusOr<std::shared_ptr<const Gemm>> create(Context &context,
                                                      const MatrixShape &a,
                                                      const MatrixShape &b,
                                                      const MatrixShape &d);
  virtual Status run(const void *a, const void *b, void *d, bool add,
                     uint32_t stream) const = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_GEMM_H
