//===- NormRows.cuh - Norms of rows that registers hold -------------------===//

#ifndef GTP_RUNTIME_CUDA_NORMROWS_CUH
#define GTP_RUNTIME_CUDA_NORMROWS_CUH

#include "Launch.h"

namespace gtp::rt::cuda {

/// Whether the norms below take these operands: groups that can be moved in
/// packs of 16 bytes and are not longer than registers hold.
bool holdsRows(const NormShape &shape, const void *weight, const Tensor &x,
               const Tensor &y);

/// Of x, or if `added` has memory of their sum, which goes to `sum`.
cudaError_t normRows(const NormShape &shape, const Tensor &x,
                     const Tensor &added, const void *weight, const Tensor &sum,
                     const Tensor &y, cudaStream_t stream);

/// Rows of sums of `normGradRows` at most.
uint64_t mostGradTeams(uint64_t group);
/// Leaves sums over rows of the gradient of the weight in `partials`, and how
/// many rows of them in `teams`. `residual`, if it has memory, is added to dx.
cudaError_t normGradRows(const NormShape &shape, const Tensor &dy,
                         const Tensor &x, const void *weight,
                         const Tensor &residual, const Tensor &dx,
                         float *partials, uint64_t &teams, cudaStream_t stream);

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_NORMROWS_CUH
