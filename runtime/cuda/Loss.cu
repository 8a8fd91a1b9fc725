//===- Loss.cu - Cross entropy and the count of labels --------------------===//

#include "Device.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 512;
constexpr int32_t kIgnoredLabel = -100;

/// log(sum exp(x)) is maximum + log(sum), where sum is over exp(x - maximum).
struct Softmax {
  float maximum;
  double sum;

  template <typename T>
  __device__ Softmax(const T *x, uint64_t count, float *floats,
                     double *doubles) {
    float most = -INFINITY;
    for (uint64_t i = threadIdx.x; i < count; i += kThreads) {
      float value = toFloat(x[i]);
      // A NaN shall show in the sum.
      most = value > most ? value : most;
    }
    maximum = blockMaximum(most, floats);
    double part = 0;
    for (uint64_t i = threadIdx.x; i < count; i += kThreads)
      part += expf(toFloat(x[i]) - maximum);
    sum = blockSum(part, doubles);
  }
};

__device__ bool isLabel(int32_t label, uint64_t classes, uint64_t row,
                        Fault *fault) {
  if (label >= 0 && static_cast<uint64_t>(label) < classes)
    return true;
  if (threadIdx.x == 0)
    report(fault, Fault::BadLabel, label, row, classes);
  return false;
}

__device__ double divisor(const int64_t *count) {
  return static_cast<double>(*count > 1 ? *count : 1);
}

template <typename T>
__global__ void lossTerms(View<const T> logits, const int32_t *labels,
                          uint64_t rows, uint64_t classes, float *terms,
                          Fault *fault) {
  __shared__ float floats[33];
  __shared__ double doubles[33];
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int32_t label = labels[row];
    float term = 0;
    if (label != kIgnoredLabel && isLabel(label, classes, row, fault)) {
      const T *x = logits.row(row);
      Softmax softmax(x, classes, floats, doubles);
      term = static_cast<float>(
          log(softmax.sum) +
          (static_cast<double>(softmax.maximum) - toFloat(x[label])));
    }
    if (threadIdx.x == 0)
      terms[row] = term;
  }
}

__global__ void sumTerms(const float *terms, uint64_t rows,
                         const int64_t *count, float *loss, bool add) {
  __shared__ double shared[33];
  double part = 0;
  for (uint64_t row = threadIdx.x; row < rows; row += kThreads)
    part += terms[row];
  double total = blockSum(part, shared);
  if (threadIdx.x != 0)
    return;
  auto value = static_cast<float>(total / divisor(count));
  *loss = add ? *loss + value : value;
}

template <typename T>
__global__ void lossGrad(View<const T> logits, const int32_t *labels,
                         const int64_t *count, const float *dloss, View<T> out,
                         uint64_t rows, uint64_t classes, Fault *fault) {
  __shared__ float floats[33];
  __shared__ double doubles[33];
  const double scale = *dloss / divisor(count);
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int32_t label = labels[row];
    const T *x = logits.row(row);
    T *dx = out.row(row);
    if (label == kIgnoredLabel || !isLabel(label, classes, row, fault)) {
      for (uint64_t i = threadIdx.x; i < classes; i += kThreads)
        dx[i] = fromFloat<T>(0);
      continue;
    }
    Softmax softmax(x, classes, floats, doubles);
    auto factor = static_cast<float>(scale / softmax.sum);
    // Each thread reads its elements before it writes them: dx may be x.
    for (uint64_t i = threadIdx.x; i < classes; i += kThreads) {
      float e = expf(toFloat(x[i]) - softmax.maximum);
      // 1 - p from the other side: p near 1 would lose the difference.
      dx[i] =
          fromFloat<T>(i == static_cast<uint64_t>(label)
                           ? static_cast<float>(scale * (e / softmax.sum - 1))
                           : e * factor);
    }
  }
}

__global__ void countKernel(const int32_t *labels, uint64_t count,
                            int64_t *out) {
  __shared__ long long shared[33];
  long long part = 0;
  for (uint64_t i = threadIdx.x; i < count; i += kThreads)
    part += labels[i] != kIgnoredLabel;
  long long total = blockSum(part, shared);
  if (threadIdx.x == 0)
    *out = total;
}

unsigned blocksOf(uint64_t rows) {
  return static_cast<unsigned>(rows < 65536 ? rows : 65536);
}

} // namespace

cudaError_t gtp::rt::cuda::crossEntropy(const Tensor &logits,
                                        const int32_t *labels,
                                        const int64_t *count,
                                        const Tensor &loss, float *workspace,
                                        Fault *fault, cudaStream_t stream) {
  cudaError_t error = withType(logits.type, [&](auto zero) {
    using T = decltype(zero);
    lossTerms<T><<<blocksOf(logits.rows), kThreads, 0, stream>>>(
        View<const T>(logits), labels, logits.rows, logits.columns, workspace,
        fault);
    return cudaGetLastError();
  });
  if (error != cudaSuccess)
    return error;
  sumTerms<<<1, kThreads, 0, stream>>>(
      workspace, logits.rows, count, static_cast<float *>(loss.data), loss.add);
  return cudaGetLastError();
}

cudaError_t gtp::rt::cuda::crossEntropyGrad(const Tensor &logits,
                                            const int32_t *labels,
                                            const int64_t *count,
                                            const float *dloss,
                                            const Tensor &dlogits, Fault *fault,
                                            cudaStream_t stream) {
  return withType(logits.type, [&](auto zero) {
    using T = decltype(zero);
    lossGrad<T><<<blocksOf(logits.rows), kThreads, 0, stream>>>(
        View<const T>(logits), labels, count, dloss, View<T>(dlogits),
        logits.rows, logits.columns, fault);
    return cudaGetLastError();
  });
}

cudaError_t gtp::rt::cuda::countLabels(const int32_t *labels, uint64_t count,
                                       int64_t *out, cudaStream_t stream) {
  countKernel<<<1, kThreads, 0, stream>>>(labels, count, out);
  return cudaGetLastError();
}
