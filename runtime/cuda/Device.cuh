//===- Device.cuh - What the kernels share --------------------------------===//

#ifndef GTP_RUNTIME_CUDA_DEVICE_CUH
#define GTP_RUNTIME_CUDA_DEVICE_CUH

#include "Launch.h"

#include <cuda_bf16.h>
#include <type_traits>

namespace gtp::rt::cuda {

using bf16 = __nv_bfloat16;

__device__ inline float toFloat(float x) { return x; }
__device__ inline float toFloat(bf16 x) { return __bfloat162float(x); }
template <typename T>
__device__ inline T fromFloat(float x);
template <>
__device__ inline float fromFloat<float>(float x) {
  return x;
}
template <>
__device__ inline bf16 fromFloat<bf16>(float x) {
  return __float2bfloat16_rn(x);
}

/// A tensor as a kernel gets it.
template <typename T>
struct View {
  T *data;
  uint64_t pitch;

  explicit View(const Tensor &tensor)
      : data(static_cast<T *>(tensor.data)), pitch(tensor.pitch) {}
  __device__ T *row(uint64_t index) const { return data + index * pitch; }
};

/// Calls f(T()) with the C++ type of `type`, of f32 and bf16.
template <typename F>
cudaError_t withType(Element type, F f) {
  switch (type) {
  case Element::F32:
    return f(float());
  case Element::BF16:
    return f(bf16());
  default:
    return cudaErrorInvalidValue;
  }
}

/// A grid for `rows` x `columns` elements whose kernel strides over both.
struct Grid {
  dim3 blocks;
  unsigned threads = 256;

  Grid(uint64_t rows, uint64_t columns) {
    uint64_t x = (columns + threads - 1) / threads;
    blocks =
        dim3(static_cast<unsigned>(x < 4096 ? (x ? x : 1) : 4096),
             static_cast<unsigned>(rows < 4096 ? (rows ? rows : 1) : 4096));
  }
};

#define GTP_FOR_EACH_ELEMENT(row, rows, column, columns)                       \
  for (uint64_t row = blockIdx.y; row < (rows); row += gridDim.y)              \
    for (uint64_t column = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;    \
         column < (columns); column += uint64_t(gridDim.x) * blockDim.x)

/// Sum over a block of up to 1024 threads, the same in all of them and in a
/// fixed order. `shared` holds 33 values; all threads must call.
template <typename T>
__device__ T blockSum(T value, T *shared) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(~0u, value, offset);
  unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads(); // `shared` may hold the last result
  if (lane == 0)
    shared[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < blockDim.x / 32 ? shared[lane] : T(0);
    for (int offset = 16; offset > 0; offset /= 2)
      value += __shfl_xor_sync(~0u, value, offset);
    if (lane == 0)
      shared[32] = value;
  }
  __syncthreads();
  return shared[32];
}

__device__ inline float blockMaximum(float value, float *shared) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
  unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();
  if (lane == 0)
    shared[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < blockDim.x / 32 ? shared[lane] : -INFINITY;
    for (int offset = 16; offset > 0; offset /= 2)
      value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
    if (lane == 0)
      shared[32] = value;
  }
  __syncthreads();
  return shared[32];
}

/// Keeps the first fault of the run. Whoever reads it does so behind the
/// kernels of the step.
__device__ inline void report(Fault *fault, Fault::Kind kind, int32_t value,
                              uint64_t position, uint64_t limit) {
  if (atomicCAS(&fault->kind, uint32_t(Fault::None), uint32_t(kind)) !=
      Fault::None)
    return;
  fault->value = value;
  fault->position = position;
  fault->limit = limit;
}

/// The position of a row.
__device__ inline uint64_t positionOf(const Positions &positions,
                                      uint64_t row) {
  uint64_t index = row % positions.length;
  if (!positions.starts)
    return index;
  int32_t start = positions.starts[row];
  if (start < 0 || static_cast<uint64_t>(start) > index) {
    report(positions.fault, Fault::BadStart, start, index, 0);
    return index;
  }
  return index - static_cast<uint64_t>(start);
}

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_DEVICE_CUH
