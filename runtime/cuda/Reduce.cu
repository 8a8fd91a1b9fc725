//===- Reduce.cu - Sums of ranks' contributions, in rank order ------------===//

#include "Vector.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 256;

struct Sources {
  const void *data[kMostRanksOfAGroup];
  unsigned count;
};

/// One element of what is sent, of type T, as a rank's contribution counts.
template <typename T, typename Wire, typename Sum>
__device__ Sum contribution(T x) {
  return static_cast<Sum>(toSum(fromSum<Wire>(toSum(x))));
}

template <typename Sent, typename T, typename Wire, typename Sum,
          unsigned kWidth>
__device__ void reducePack(const Sources &sources, uint64_t i, T *out,
                           bool maximum, bool add) {
  Sum sums[kWidth];
  auto load = [&](unsigned rank) {
    return loadPack<Sent, kWidth>(
        static_cast<const Sent *>(sources.data[rank]) + i);
  };
  auto first = load(0);
#pragma unroll
  for (unsigned k = 0; k < kWidth; ++k)
    sums[k] = contribution<Sent, Wire, Sum>(first.values[k]);
  for (unsigned rank = 1; rank < sources.count; ++rank) {
    auto pack = load(rank);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k) {
      Sum next = contribution<Sent, Wire, Sum>(pack.values[k]);
      sums[k] = !maximum ? sums[k] + next : next > sums[k] ? next : sums[k];
    }
  }
  Pack<T, kWidth> result;
  if (add)
    result = loadPack<T, kWidth>(out + i);
#pragma unroll
  for (unsigned k = 0; k < kWidth; ++k) {
    T value = fromSum<T>(toSum(fromSum<Wire>(sums[k])));
    result.values[k] =
        add ? fromSum<T>(toSum(result.values[k]) + toSum(value)) : value;
  }
  storePack<T, kWidth>(out + i, result);
}

template <typename Sent, typename T, typename Wire, typename Sum,
          unsigned kWidth>
__global__ void reduceKernel(Sources sources, uint64_t count, T *out,
                             bool maximum, bool add) {
  const uint64_t packs = count / kWidth;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < packs;
       i += uint64_t(gridDim.x) * kThreads)
    reducePack<Sent, T, Wire, Sum, kWidth>(sources, i * kWidth, out, maximum,
                                           add);
  uint64_t last = packs * kWidth + threadIdx.x;
  if (kWidth > 1 && blockIdx.x == 0 && last < count)
    reducePack<Sent, T, Wire, Sum, 1>(sources, last, out, maximum, add);
}

template <typename Sent, typename T, typename Wire, typename Sum>
cudaError_t launch(const Reduction &reduction, const Sources &sources,
                   uint64_t count, void *out, bool add, cudaStream_t stream) {
  constexpr unsigned kWidth = kWidthOf<Sent>;
  bool wide = movesPacks(out, 0, sizeof(T), kWidth);
  for (unsigned rank = 0; rank < sources.count; ++rank)
    wide &= movesPacks(sources.data[rank], 0, sizeof(Sent), kWidth);
  uint64_t packs = wide ? (count + kWidth - 1) / kWidth : count;
  uint64_t blocks = (packs + kThreads - 1) / kThreads;
  auto grid = static_cast<unsigned>(blocks < 8192 ? blocks : 8192);
  auto *to = static_cast<T *>(out);
  if (wide)
    reduceKernel<Sent, T, Wire, Sum, kWidth><<<grid, kThreads, 0, stream>>>(
        sources, count, to, reduction.maximum, add);
  else
    reduceKernel<Sent, T, Wire, Sum, 1><<<grid, kThreads, 0, stream>>>(
        sources, count, to, reduction.maximum, add);
  return cudaGetLastError();
}

/// Of the float types that may be sent as each other.
template <typename Sent, typename T, typename Wire>
cudaError_t launchFloat(const Reduction &reduction, const Sources &sources,
                        uint64_t count, void *out, bool add,
                        cudaStream_t stream) {
  return reduction.wide ? launch<Sent, T, Wire, double>(reduction, sources,
                                                        count, out, add, stream)
                        : launch<Sent, T, Wire, float>(reduction, sources,
                                                       count, out, add, stream);
}

template <unsigned kWidth>
__global__ void roundKernel(const float *from, uint64_t count, bf16 *to) {
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
       i < count / kWidth; i += uint64_t(gridDim.x) * kThreads) {
    auto in = loadPack<float, kWidth>(from + i * kWidth);
    Pack<bf16, kWidth> out;
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      out.values[k] = __float2bfloat16_rn(in.values[k]);
    storePack<bf16, kWidth>(to + i * kWidth, out);
  }
}

} // namespace

cudaError_t gtp::rt::cuda::reduceInOrder(const Reduction &reduction,
                                         const void *const *data, size_t ranks,
                                         uint64_t count, void *out, bool add,
                                         cudaStream_t stream) {
  if (count == 0)
    return cudaSuccess;
  Sources sources;
  sources.count = static_cast<unsigned>(ranks);
  for (size_t rank = 0; rank < ranks; ++rank)
    sources.data[rank] = data[rank];
  const bool narrow = reduction.wire == Scalar::BF16;
  switch (reduction.type) {
  case Scalar::F32:
    return (reduction.narrow ? launchFloat<bf16, float, bf16>
            : narrow ? launchFloat<float, float, bf16>
                     : launchFloat<float, float, float>)(reduction, sources,
                                                         count, out, add,
                                                         stream);
  case Scalar::BF16:
    return (narrow ? launchFloat<bf16, bf16, bf16>
                   : launchFloat<bf16, bf16, float>)(reduction, sources, count,
                                                     out, add, stream);
  case Scalar::F64:
    return launch<double, double, double, double>(reduction, sources, count,
                                                  out, add, stream);
  case Scalar::I64:
    return launch<int64_t, int64_t, int64_t, int64_t>(reduction, sources, count,
                                                      out, add, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t gtp::rt::cuda::roundToBf16(const void *from, uint64_t count,
                                       void *to, cudaStream_t stream) {
  if (count == 0)
    return cudaSuccess;
  constexpr unsigned kWidth = kWidthOf<bf16>;
  const bool wide = count % kWidth == 0 &&
                    movesPacks(from, 0, sizeof(float), kWidth) &&
                    movesPacks(to, 0, sizeof(bf16), kWidth);
  uint64_t packs = wide ? count / kWidth : count;
  uint64_t blocks = (packs + kThreads - 1) / kThreads;
  auto grid = static_cast<unsigned>(blocks < 8192 ? blocks : 8192);
  auto *in = static_cast<const float *>(from);
  auto *out = static_cast<bf16 *>(to);
  if (wide)
    roundKernel<kWidth><<<grid, kThreads, 0, stream>>>(in, count, out);
  else
    roundKernel<1><<<grid, kThreads, 0, stream>>>(in, count, out);
  return cudaGetLastError();
}
