//===- Loss.cu - Cross entropy and the count of labels --------------------===//
//
// A block has a row of logits at a time. Each thread keeps the largest logit it
// has seen and the sum of exponentials relative to it, so that a softmax takes
// one pass over the row.
//
//===----------------------------------------------------------------------===//

#include "Vector.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 512;
/// The gradient reads a row twice. Of one block a multiprocessor, all rows fit
/// the L2 cache until the second time.
constexpr unsigned kGradThreads = 1024;
constexpr int32_t kIgnoredLabel = -100;

/// e^x. What bfloat16 holds of x is worth less than the approximation's error.
template <typename T>
__device__ float exponential(float x) {
  if constexpr (std::is_same_v<T, bf16>)
    return __expf(x);
  else
    return expf(x);
}

/// log(sum exp(x)) is maximum + log(sum), where sum is over exp(x - maximum).
template <typename T>
struct Softmax {
  float maximum;
  double sum;

  template <unsigned kWidth>
  __device__ static Softmax of(const T *x, uint64_t count, float *floats,
                               double *doubles) {
    float most = -INFINITY, part = 0;
    auto add = [&](const auto &values) {
      // A NaN is no maximum and shows in the sum.
      float larger = most;
      for (float value : values)
        larger = value > larger ? value : larger;
      if (larger > most) {
        part *= exponential<T>(most - larger);
        most = larger;
      }
      float base = most == -INFINITY ? 0.0f : most;
#pragma unroll
      for (float value : values)
        part += exponential<T>(value - base);
    };
    const uint64_t packs = count / kWidth;
#pragma unroll 4
    for (uint64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      float values[kWidth];
      widen(x + i * kWidth, values);
      add(values);
    }
    for (uint64_t i = packs * kWidth + threadIdx.x; i < count;
         i += blockDim.x) {
      float value[1] = {toFloat(x[i])};
      add(value);
    }
    Softmax result;
    result.maximum = blockMaximum(most, floats);
    result.sum = blockSum(
        static_cast<double>(part * expf(most - result.maximum)), doubles);
    return result;
  }

  /// Of a label with this logit.
  __device__ float loss(float correct) const {
    return static_cast<float>(log(sum) +
                              (static_cast<double>(maximum) - correct));
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

__device__ double divisor(int64_t count) {
  return static_cast<double>(count > 1 ? count : 1);
}

/// How many of `count` labels count.
__device__ int64_t countedIn(const int32_t *labels, uint64_t count,
                             long long *shared) {
  long long part = 0;
  for (uint64_t i = threadIdx.x; i < count; i += blockDim.x)
    part += labels[i] != kIgnoredLabel;
  return blockSum(part, shared);
}

template <typename T, unsigned kWidth>
__global__ void __launch_bounds__(kThreads)
    lossTerms(View<const T> logits, const int32_t *labels, uint64_t rows,
              uint64_t classes, float *terms, Fault *fault) {
  __shared__ float floats[33];
  __shared__ double doubles[33];
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int32_t label = labels[row];
    float term = 0;
    if (label != kIgnoredLabel && isLabel(label, classes, row, fault)) {
      const T *x = logits.row(row);
      auto softmax =
          Softmax<T>::template of<kWidth>(x, classes, floats, doubles);
      term = softmax.loss(toFloat(x[label]));
    }
    if (threadIdx.x == 0)
      terms[row] = term;
  }
}

__global__ void sumTerms(const float *terms, uint64_t rows, Labels labels,
                         float *loss, bool add) {
  __shared__ double shared[33];
  __shared__ long long counts[33];
  const uint64_t length = labels.sequence ? labels.sequence : rows;
  double total = 0;
  for (uint64_t start = 0; start < rows; start += length) {
    double part = 0;
    for (uint64_t row = threadIdx.x; row < length; row += kThreads)
      part += terms[start + row];
    double sum = blockSum(part, shared);
    int64_t counted =
        labels.sequence ? countedIn(labels.data + start, length, counts) : 1;
    total += sum / divisor(counted);
  }
  if (threadIdx.x != 0)
    return;
  auto value = static_cast<float>(total / divisor(*labels.count));
  *loss = add ? *loss + value : value;
}

template <typename T, typename G, unsigned kWidth>
__global__ void __launch_bounds__(kGradThreads)
    lossGrad(View<const T> logits, Labels labels, const float *dloss,
             View<G> out, uint64_t rows, uint64_t classes, float *terms,
             Fault *fault) {
  __shared__ float floats[33];
  __shared__ double doubles[33];
  __shared__ long long counts[33];
  const double whole = *dloss / divisor(*labels.count);
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int32_t label = labels.data[row];
    const T *x = logits.row(row);
    G *dx = out.row(row);
    if (label == kIgnoredLabel || !isLabel(label, classes, row, fault)) {
      for (uint64_t i = threadIdx.x; i < classes; i += kGradThreads)
        dx[i] = fromFloat<G>(0);
      if (terms && threadIdx.x == 0)
        terms[row] = 0;
      continue;
    }
    double scale = whole;
    if (labels.sequence)
      scale /= divisor(
          countedIn(labels.data + row / labels.sequence * labels.sequence,
                    labels.sequence, counts));
    auto softmax = Softmax<T>::template of<kWidth>(x, classes, floats, doubles);
    const auto factor = static_cast<float>(scale / softmax.sum);
    auto gradient = [&](float value) {
      return exponential<T>(value - softmax.maximum) * factor;
    };
    const uint64_t packs = classes / kWidth;
    const auto correct = static_cast<uint64_t>(label);
    // Whoever has the label's element in the loops below.
    const bool mine = (correct < packs * kWidth ? correct / kWidth
                                                : correct - packs * kWidth) %
                          kGradThreads ==
                      threadIdx.x;
    const float logit = mine ? toFloat(x[correct]) : 0;
    if (mine && terms)
      terms[row] = softmax.loss(logit);
    // Each thread reads its elements before it writes them, since dx may be x;
    // several packs are on the way at once.
    constexpr unsigned kAtOnce = 4;
    for (uint64_t first = threadIdx.x; first < packs;
         first += kAtOnce * kGradThreads) {
      Pack<T, kWidth> pieces[kAtOnce];
#pragma unroll
      for (unsigned n = 0; n < kAtOnce; ++n)
        if (first + n * kGradThreads < packs)
          pieces[n] =
              loadPack<T, kWidth>(x + (first + n * kGradThreads) * kWidth);
#pragma unroll
      for (unsigned n = 0; n < kAtOnce; ++n) {
        const uint64_t i = first + n * kGradThreads;
        if (i >= packs)
          continue;
        float values[kWidth];
#pragma unroll
        for (unsigned k = 0; k < kWidth; ++k)
          values[k] = gradient(toFloat(pieces[n].values[k]));
        narrow(dx + i * kWidth, values);
      }
    }
    for (uint64_t i = packs * kWidth + threadIdx.x; i < classes;
         i += kGradThreads)
      dx[i] = fromFloat<G>(gradient(toFloat(x[i])));
    // 1 - p from the other side: p near 1 would lose the difference.
    if (mine)
      dx[correct] = fromFloat<G>(static_cast<float>(
          scale * (exponential<T>(logit - softmax.maximum) / softmax.sum - 1)));
  }
}

__global__ void countKernel(const int32_t *labels, uint64_t count,
                            uint64_t sequence, int64_t *out) {
  __shared__ long long shared[33];
  int64_t total = 0;
  if (!sequence)
    total = countedIn(labels, count, shared);
  else
    for (uint64_t start = 0; start < count; start += sequence)
      total += countedIn(labels + start, sequence, shared) > 0;
  if (threadIdx.x == 0)
    *out = total;
}

unsigned blocksOf(uint64_t rows) {
  return static_cast<unsigned>(rows < 65536 ? rows : 65536);
}

} // namespace

cudaError_t gtp::rt::cuda::crossEntropy(const Tensor &logits,
                                        const Labels &labels,
                                        const Tensor &loss, float *workspace,
                                        Fault *fault, cudaStream_t stream) {
  cudaError_t error = withType(logits.type, [&](auto zero) {
    using T = decltype(zero);
    if (movesPacks(logits, kWidthOf<T>))
      lossTerms<T, kWidthOf<T>><<<blocksOf(logits.rows), kThreads, 0, stream>>>(
          View<const T>(logits), labels.data, logits.rows, logits.columns,
          workspace, fault);
    else
      lossTerms<T, 1><<<blocksOf(logits.rows), kThreads, 0, stream>>>(
          View<const T>(logits), labels.data, logits.rows, logits.columns,
          workspace, fault);
    return cudaGetLastError();
  });
  if (error != cudaSuccess)
    return error;
  sumTerms<<<1, kThreads, 0, stream>>>(workspace, logits.rows, labels,
                                       static_cast<float *>(loss.data),
                                       loss.add);
  return cudaGetLastError();
}

/// `terms`, of each row, may be null.
static cudaError_t gradient(const Tensor &logits, const Labels &labels,
                            const float *dloss, const Tensor &dlogits,
                            float *terms, Fault *fault, cudaStream_t stream) {
  int device = 0, processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                   device);
  if (error != cudaSuccess)
    return error;
  auto most = static_cast<uint64_t>(processors);
  auto blocks = static_cast<unsigned>(logits.rows < most ? logits.rows : most);
  return withType(logits.type, [&](auto zero) {
    using T = decltype(zero);
    return withType(dlogits.type, [&](auto result) {
      using G = decltype(result);
      constexpr unsigned kWidth = kWidthOf<T>;
      if (movesPacks(logits, kWidth) && movesPacks(dlogits, kWidth))
        lossGrad<T, G, kWidth><<<blocks, kGradThreads, 0, stream>>>(
            View<const T>(logits), labels, dloss, View<G>(dlogits), logits.rows,
            logits.columns, terms, fault);
      else
        lossGrad<T, G, 1><<<blocks, kGradThreads, 0, stream>>>(
            View<const T>(logits), labels, dloss, View<G>(dlogits), logits.rows,
            logits.columns, terms, fault);
      return cudaGetLastError();
    });
  });
}

cudaError_t gtp::rt::cuda::crossEntropyGrad(const Tensor &logits,
                                            const Labels &labels,
                                            const float *dloss,
                                            const Tensor &dlogits, Fault *fault,
                                            cudaStream_t stream) {
  return gradient(logits, labels, dloss, dlogits, nullptr, fault, stream);
}

cudaError_t gtp::rt::cuda::crossEntropyInPlace(
    const Tensor &logits, const Labels &labels, const float *dloss,
    const Tensor &loss, float *workspace, Fault *fault, cudaStream_t stream) {
  cudaError_t error =
      gradient(logits, labels, dloss, logits, workspace, fault, stream);
  if (error != cudaSuccess)
    return error;
  sumTerms<<<1, kThreads, 0, stream>>>(workspace, logits.rows, labels,
                                       static_cast<float *>(loss.data),
                                       loss.add);
  return cudaGetLastError();
}

cudaError_t gtp::rt::cuda::countLabels(const int32_t *labels, uint64_t count,
                                       uint64_t sequence, int64_t *out,
                                       cudaStream_t stream) {
  countKernel<<<1, kThreads, 0, stream>>>(labels, count, sequence, out);
  return cudaGetLastError();
}
