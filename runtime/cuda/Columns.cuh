//===- Columns.cuh - Sums over rows of partial sums -----------------------===//

#ifndef GTP_RUNTIME_CUDA_COLUMNS_CUH
#define GTP_RUNTIME_CUDA_COLUMNS_CUH

#include "Device.cuh"

namespace gtp::rt::cuda {

/// A block has 32 columns; 32 threads share the rows of each.
template <typename P, typename T>
__global__ void __launch_bounds__(1024)
    sumColumnsKernel(const P *partials, uint64_t rows, uint64_t columns, T *out,
                     bool add) {
  __shared__ double sums[32][33];
  const uint64_t column = uint64_t(blockIdx.x) * 32 + threadIdx.x;
  double sum = 0;
  if (column < columns)
#pragma unroll 8
    for (uint64_t row = threadIdx.y; row < rows; row += 32)
      sum += partials[row * columns + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns)
    return;
  double total = add ? toFloat(out[column]) : 0.0;
  for (unsigned part = 0; part < 32; ++part)
    total += sums[part][threadIdx.x];
  out[column] = fromFloat<T>(static_cast<float>(total));
}

/// out = (add ? out : 0) + the sum of `rows` rows, in an order that only their
/// number decides.
template <typename P, typename T>
cudaError_t sumColumns(const P *partials, uint64_t rows, uint64_t columns,
                       T *out, bool add, cudaStream_t stream) {
  sumColumnsKernel<P, T>
      <<<static_cast<unsigned>((columns + 31) / 32), dim3(32, 32), 0, stream>>>(
          partials, rows, columns, out, add);
  return cudaGetLastError();
}

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_COLUMNS_CUH
