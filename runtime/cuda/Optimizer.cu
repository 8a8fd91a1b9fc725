//===- Optimizer.cu - Norm, clipping and weight updates -------------------===//

#include "Device.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 256;

/// Positions in `hyper`.
enum Hyper { Rate, Decay, Beta1, Beta2, Epsilon, Correction1, Correction2 };

template <typename T>
__global__ void squareParts(const T *x, uint64_t count, double *partials) {
  __shared__ double shared[33];
  double part = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += uint64_t(gridDim.x) * kThreads) {
    double value = toFloat(x[i]);
    part += value * value;
  }
  double total = blockSum(part, shared);
  if (threadIdx.x == 0)
    partials[blockIdx.x] = total;
}

__global__ void sumParts(const double *partials, unsigned count, double *out) {
  __shared__ double shared[33];
  double part = 0;
  for (unsigned i = threadIdx.x; i < count; i += kThreads)
    part += partials[i];
  double total = blockSum(part, shared);
  if (threadIdx.x == 0)
    *out = total;
}

__global__ void clipKernel(const double *sumsq, float *norm, float *scale,
                           float most) {
  auto value = static_cast<float>(sqrt(*sumsq));
  *norm = value;
  if (!isfinite(value))
    *scale = NAN;
  else
    *scale = most == 0 ? 1.0f : fminf(1.0f, most / (value + 1e-6f));
}

template <typename T>
__device__ void publish(T *compute, uint64_t i, float value) {
  if (compute)
    compute[i] = fromFloat<T>(value);
}

// A product and the sum it goes into are rounded apart, as the host does it:
// what the updates of two backends differ by is in every later step.
template <typename G, typename C>
__global__ void adamwKernel(float *w, float *m, float *v, const G *grad,
                            const float *hyper, const float *scalePointer,
                            bool decays, C *compute, uint64_t count) {
  const float scale = *scalePointer, rate = hyper[Rate];
  const float beta1 = hyper[Beta1], beta2 = hyper[Beta2];
  const float decay = decays ? hyper[Decay] : 0.0f, eps = hyper[Epsilon];
  const float correction1 = hyper[Correction1];
  const float correction2 = hyper[Correction2];
  const bool skip = isnan(scale);
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += uint64_t(gridDim.x) * kThreads) {
    float weight = w[i];
    if (!skip) {
      float g = scale * toFloat(grad[i]);
      float first = __fadd_rn(__fmul_rn(beta1, m[i]), __fmul_rn(1 - beta1, g));
      float second = __fadd_rn(__fmul_rn(beta2, v[i]),
                               __fmul_rn(__fmul_rn(1 - beta2, g), g));
      m[i] = first;
      v[i] = second;
      float step = (first / correction1) / (sqrtf(second / correction2) + eps);
      weight = __fsub_rn(
          weight, __fmul_rn(rate, __fadd_rn(step, __fmul_rn(decay, weight))));
      w[i] = weight;
    }
    publish(compute, i, weight);
  }
}

template <typename G, typename C>
__global__ void sgdKernel(float *w, const G *grad, const float *hyper,
                          const float *scalePointer, bool decays, C *compute,
                          uint64_t count) {
  const float scale = *scalePointer, rate = hyper[Rate];
  const float decay = decays ? hyper[Decay] : 0.0f;
  const bool skip = isnan(scale);
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += uint64_t(gridDim.x) * kThreads) {
    float weight = w[i];
    if (!skip) {
      float step = __fadd_rn(__fmul_rn(scale, toFloat(grad[i])),
                             __fmul_rn(decay, weight));
      weight = __fsub_rn(weight, __fmul_rn(rate, step));
      w[i] = weight;
    }
    publish(compute, i, weight);
  }
}

unsigned blocksOf(uint64_t count) {
  uint64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 8192 ? blocks : 8192);
}

} // namespace

cudaError_t gtp::rt::cuda::sumSquares(const Tensor &x, double *out,
                                      double *workspace, cudaStream_t stream) {
  uint64_t count = x.elements();
  uint64_t blocks = (count + kThreads - 1) / kThreads;
  if (blocks > kSumSquaresBlocks)
    blocks = kSumSquaresBlocks;
  cudaError_t error = withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    squareParts<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        static_cast<const T *>(x.data), count, workspace);
    return cudaGetLastError();
  });
  if (error != cudaSuccess)
    return error;
  sumParts<<<1, kThreads, 0, stream>>>(workspace, static_cast<unsigned>(blocks),
                                       out);
  return cudaGetLastError();
}

cudaError_t gtp::rt::cuda::clipScale(const double *sumsq, float *norm,
                                     float *scale, float maxNorm,
                                     cudaStream_t stream) {
  clipKernel<<<1, 1, 0, stream>>>(sumsq, norm, scale, maxNorm);
  return cudaGetLastError();
}

cudaError_t gtp::rt::cuda::adamw(const Tensor &master, float *m, float *v,
                                 const Tensor &grad, const float *hyper,
                                 const float *scale, bool decays,
                                 const Tensor &compute, cudaStream_t stream) {
  return withType(grad.type, [&](auto gradient) {
    using G = decltype(gradient);
    return withType(compute.type, [&](auto published) {
      using C = decltype(published);
      adamwKernel<G, C><<<blocksOf(master.elements()), kThreads, 0, stream>>>(
          static_cast<float *>(master.data), m, v,
          static_cast<const G *>(grad.data), hyper, scale, decays,
          static_cast<C *>(compute.data), master.elements());
      return cudaGetLastError();
    });
  });
}

cudaError_t gtp::rt::cuda::sgd(const Tensor &master, const Tensor &grad,
                               const float *hyper, const float *scale,
                               bool decays, const Tensor &compute,
                               cudaStream_t stream) {
  return withType(grad.type, [&](auto gradient) {
    using G = decltype(gradient);
    return withType(compute.type, [&](auto published) {
      using C = decltype(published);
      sgdKernel<G, C><<<blocksOf(master.elements()), kThreads, 0, stream>>>(
          static_cast<float *>(master.data), static_cast<const G *>(grad.data),
          hyper, scale, decays, static_cast<C *>(compute.data),
          master.elements());
      return cudaGetLastError();
    });
  });
}
