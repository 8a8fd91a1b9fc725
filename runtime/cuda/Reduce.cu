//===- Reduce.cu - Sums of ranks' contributions, in rank order ------------===//

#include "Device.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 256;

struct Sources {
  const void *data[kMostRanksOfAGroup];
  unsigned count;
};

template <typename T>
struct Plain {
  __device__ static T load(T x) { return x; }
  __device__ static T round(T x) { return x; }
  __device__ static T round(double x) { return static_cast<T>(x); }
};
template <>
struct Plain<double> {
  __device__ static double load(double x) { return x; }
  __device__ static double round(double x) { return x; }
};
template <>
struct Plain<bf16> {
  __device__ static float load(bf16 x) { return __bfloat162float(x); }
  __device__ static bf16 round(float x) { return __float2bfloat16_rn(x); }
  __device__ static bf16 round(double x) {
    return __float2bfloat16_rn(static_cast<float>(x));
  }
};

template <typename T, typename Sum>
__global__ void reduceKernel(Sources sources, uint64_t count, T *out,
                             bool maximum, bool add) {
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += uint64_t(gridDim.x) * kThreads) {
    auto term = [&](unsigned rank) {
      return static_cast<Sum>(
          Plain<T>::load(static_cast<const T *>(sources.data[rank])[i]));
    };
    Sum sum = term(0);
    for (unsigned rank = 1; rank < sources.count; ++rank) {
      Sum next = term(rank);
      sum = !maximum ? sum + next : next > sum ? next : sum;
    }
    T value = Plain<T>::round(sum);
    if (add)
      value = Plain<T>::round(Plain<T>::load(out[i]) + Plain<T>::load(value));
    out[i] = value;
  }
}

template <typename T, typename Sum>
cudaError_t launch(const Sources &sources, uint64_t count, void *out,
                   bool maximum, bool add, cudaStream_t stream) {
  uint64_t blocks = (count + kThreads - 1) / kThreads;
  reduceKernel<T, Sum>
      <<<static_cast<unsigned>(blocks < 2048 ? blocks : 2048), kThreads, 0,
         stream>>>(sources, count, static_cast<T *>(out), maximum, add);
  return cudaGetLastError();
}

} // namespace

cudaError_t gtp::rt::cuda::reduceInOrder(Scalar type, bool wide, bool maximum,
                                         const void *const *data, size_t ranks,
                                         uint64_t count, void *out, bool add,
                                         cudaStream_t stream) {
  if (count == 0)
    return cudaSuccess;
  Sources sources;
  sources.count = static_cast<unsigned>(ranks);
  for (size_t rank = 0; rank < ranks; ++rank)
    sources.data[rank] = data[rank];
  switch (type) {
  case Scalar::F32:
    return wide ? launch<float, double>(sources, count, out, maximum, add,
                                        stream)
                : launch<float, float>(sources, count, out, maximum, add,
                                       stream);
  case Scalar::F64:
    return launch<double, double>(sources, count, out, maximum, add, stream);
  case Scalar::I64:
    return launch<int64_t, int64_t>(sources, count, out, maximum, add, stream);
  case Scalar::BF16:
    return launch<bf16, float>(sources, count, out, maximum, add, stream);
  }
  return cudaErrorInvalidValue;
}
