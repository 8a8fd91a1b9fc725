//===- Norm.cu - rms_norm, layer_norm and their gradients -----------------===//
//
// The gradient of the weight is summed in two stages: a row of sums a block, or
// a warp, then the rows. Groups that registers hold are in NormRows.cu; here a
// block reads others as often as it needs them and keeps the sums in shared
// memory.
//
//===----------------------------------------------------------------------===//

#include "Columns.cuh"
#include "NormRows.cuh"

#include <algorithm>

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 256;
/// Blocks of the gradient; fixed, since it is the order of the sum.
constexpr uint64_t kGradBlocks = 264;
/// Shared memory that a block can ask for on every supported GPU, less what the
/// kernel takes itself.
constexpr uint64_t kMostShared = 96 * 1024;

/// Mean (0 unless centered) and 1 / sqrt(variance + eps) of a group.
struct Moments {
  float mean, r;

  template <typename T>
  __device__ Moments(const NormShape &shape, const T *x, double *shared)
      : mean(0) {
    const auto count = static_cast<double>(shape.group);
    if (shape.centered) {
      double sum = 0;
      for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads)
        sum += toFloat(x[i]);
      mean = static_cast<float>(blockSum(sum, shared) / count);
    }
    double squares = 0;
    for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads) {
      double d = static_cast<double>(toFloat(x[i])) - mean;
      squares += d * d;
    }
    r = static_cast<float>(
        rsqrt(blockSum(squares, shared) / count + shape.eps));
  }
};

template <typename T>
__global__ void normKernel(NormShape shape, View<const T> x, const T *weight,
                           View<T> y, uint64_t rows, uint64_t groups) {
  __shared__ double shared[33];
  for (uint64_t item = blockIdx.x; item < rows * groups; item += gridDim.x) {
    uint64_t row = item / groups, start = item % groups * shape.group;
    const T *in = x.row(row) + start;
    T *out = y.row(row) + start;
    Moments moments(shape, in, shared);
    for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads)
      out[i] = fromFloat<T>((toFloat(in[i]) - moments.mean) * moments.r *
                            (shape.unitOffset + toFloat(weight[i])));
  }
}

template <typename T>
__global__ void normGradKernel(NormShape shape, View<const T> dy,
                               View<const T> x, const T *weight, View<T> dx,
                               uint64_t rows, uint64_t groups,
                               float *partials) {
  __shared__ double shared[33];
  extern __shared__ float sums[];
  for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads)
    sums[i] = 0;
  const auto count = static_cast<double>(shape.group);
  for (uint64_t item = blockIdx.x; item < rows * groups; item += gridDim.x) {
    uint64_t row = item / groups, start = item % groups * shape.group;
    const T *in = x.row(row) + start, *grad = dy.row(row) + start;
    T *out = dx.row(row) + start;
    Moments m(shape, in, shared);
    double total = 0, inner = 0;
    for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads) {
      float h = toFloat(grad[i]) * (shape.unitOffset + toFloat(weight[i]));
      total += h;
      inner += static_cast<double>(h) * ((toFloat(in[i]) - m.mean) * m.r);
    }
    float mean = 0;
    if (shape.centered)
      mean = static_cast<float>(blockSum(total, shared) / count);
    auto slope = static_cast<float>(blockSum(inner, shared) / count);
    // Each thread reads its elements before it writes them: dx may be dy.
    for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads) {
      float g = toFloat(grad[i]), n = (toFloat(in[i]) - m.mean) * m.r;
      sums[i] += g * n;
      float h = g * (shape.unitOffset + toFloat(weight[i]));
      out[i] = fromFloat<T>(m.r * (h - mean - n * slope));
    }
  }
  for (uint64_t i = threadIdx.x; i < shape.group; i += kThreads)
    partials[blockIdx.x * shape.group + i] = sums[i];
}

cudaError_t normGradAny(const NormShape &shape, const Tensor &dy,
                        const Tensor &x, const void *weight, const Tensor &dx,
                        float *partials, uint64_t &parts, cudaStream_t stream) {
  uint64_t groups = x.columns / shape.group, items = x.rows * groups;
  parts = items < kGradBlocks ? items : kGradBlocks;
  auto bytes = static_cast<int>(shape.group * sizeof(float));
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    cudaError_t set = cudaFuncSetAttribute(
        normGradKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (set != cudaSuccess)
      return set;
    normGradKernel<T>
        <<<static_cast<unsigned>(parts), kThreads, size_t(bytes), stream>>>(
            shape, View<const T>(dy), View<const T>(x),
            static_cast<const T *>(weight), View<T>(dx), x.rows, groups,
            partials);
    return cudaGetLastError();
  });
}

} // namespace

cudaError_t gtp::rt::cuda::addNorm(const NormShape &shape, const Tensor &a,
                                   const Tensor &b, const void *weight,
                                   const Tensor &sum, const Tensor &y,
                                   cudaStream_t stream) {
  if (holdsRows(shape, weight, a, b) && holdsRows(shape, weight, sum, y))
    return normRows(shape, a, b, weight, sum, y, stream);
  const Tensor terms[] = {a, b};
  cudaError_t error = addAll(terms, 2, sum, stream);
  return error == cudaSuccess ? norm(shape, sum, weight, y, stream) : error;
}

cudaError_t gtp::rt::cuda::norm(const NormShape &shape, const Tensor &x,
                                const void *weight, const Tensor &y,
                                cudaStream_t stream) {
  if (holdsRows(shape, weight, x, y))
    return normRows(shape, x, Tensor(), weight, Tensor(), y, stream);
  uint64_t groups = x.columns / shape.group, items = x.rows * groups;
  auto blocks = static_cast<unsigned>(items < 65536 ? items : 65536);
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    normKernel<T><<<blocks, kThreads, 0, stream>>>(
        shape, View<const T>(x), static_cast<const T *>(weight), View<T>(y),
        x.rows, groups);
    return cudaGetLastError();
  });
}

uint64_t gtp::rt::cuda::normGradWorkspace(uint64_t group) {
  return std::max(kGradBlocks, mostGradTeams(group)) * group * sizeof(float);
}

bool gtp::rt::cuda::normGradFits(uint64_t group) {
  return group * sizeof(float) <= kMostShared;
}

cudaError_t gtp::rt::cuda::normGrad(const NormShape &shape, const Tensor &dy,
                                    const Tensor &x, const void *weight,
                                    const Tensor &residual, const Tensor &dx,
                                    const Tensor &dweight, float *workspace,
                                    cudaStream_t stream) {
  uint64_t parts = 0;
  cudaError_t error = cudaSuccess;
  if (holdsRows(shape, weight, x, dy) && holdsRows(shape, weight, x, dx) &&
      (!residual.data || holdsRows(shape, weight, x, residual))) {
    error = normGradRows(shape, dy, x, weight, residual, dx, workspace, parts,
                         stream);
  } else {
    error = normGradAny(shape, dy, x, weight, dx, workspace, parts, stream);
    const Tensor terms[] = {residual, dx};
    if (error == cudaSuccess && residual.data)
      error = addAll(terms, 2, dx, stream);
  }
  if (error != cudaSuccess || !dweight.data)
    return error;
  return withType(dweight.type, [&](auto zero) {
    using T = decltype(zero);
    return sumColumns(workspace, parts, shape.group,
                      static_cast<T *>(dweight.data), dweight.add, stream);
  });
}
