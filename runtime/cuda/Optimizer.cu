//===- Optimizer.cu - Norm, clipping and weight updates -------------------===//

#include "Vector.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 256;

/// Positions in `hyper`.
enum Hyper { Rate, Decay, Beta1, Beta2, Epsilon, Correction1, Correction2 };

template <typename T, unsigned kWidth>
__global__ void squareParts(const T *x, uint64_t count, double *partials) {
  __shared__ double shared[33];
  double part = 0;
  auto add = [&](auto values) {
#pragma unroll
    for (T each : values.values) {
      double value = toFloat(each);
      part += value * value;
    }
  };
  const uint64_t packs = count / kWidth, step = uint64_t(gridDim.x) * kThreads;
#pragma unroll 4
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < packs;
       i += step)
    add(loadPack<T, kWidth>(x + i * kWidth));
  uint64_t last = packs * kWidth + threadIdx.x;
  if (kWidth > 1 && blockIdx.x == 0 && last < count)
    add(loadPack<T, 1>(x + last));
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

/// A float32 in two halves: the nearest bfloat16, ties away from zero, and the
/// difference of the bits (gtp/Support/BFloat16.h).
struct Halves {
  uint16_t high;
  int16_t low;

  __device__ explicit Halves(float value) {
    uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
      bits = (bits & 0x80000000u) | 0x7fc00000u;
    high = static_cast<uint16_t>((bits + 0x8000u) >> 16);
    low = static_cast<int16_t>(bits & 0xffffu);
  }
  __device__ static float join(uint16_t high, int16_t low) {
    return __uint_as_float((uint32_t(high) << 16) +
                           static_cast<uint32_t>(int32_t(low)));
  }
};

/// A master in float32 or bfloat16, and what it publishes if that is not null.
template <typename T, typename C>
struct WholeMaster {
  T *values;
  C *compute;

  template <unsigned kWidth>
  __device__ void load(uint64_t i, float (&w)[kWidth]) const {
    widen(values + i, w);
  }
  template <unsigned kWidth>
  __device__ void store(uint64_t i, const float (&w)[kWidth]) const {
    narrow(values + i, w);
  }
  template <unsigned kWidth>
  __device__ void publish(uint64_t i, const float (&w)[kWidth]) const {
    if (!compute)
      return;
    if constexpr (std::is_same_v<C, float>) {
      narrow(compute + i, w);
    } else {
      Pack<uint16_t, kWidth> halves;
#pragma unroll
      for (unsigned k = 0; k < kWidth; ++k)
        halves.values[k] = Halves(w[k]).high;
      storePack<uint16_t, kWidth>(reinterpret_cast<uint16_t *>(compute) + i,
                                  halves);
    }
  }
};

struct SplitMaster {
  uint16_t *high;
  int16_t *low;

  template <unsigned kWidth>
  __device__ void load(uint64_t i, float (&w)[kWidth]) const {
    auto a = loadPack<uint16_t, kWidth>(high + i);
    auto b = loadPack<int16_t, kWidth>(low + i);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      w[k] = Halves::join(a.values[k], b.values[k]);
  }
  template <unsigned kWidth>
  __device__ void store(uint64_t i, const float (&w)[kWidth]) const {
    Pack<uint16_t, kWidth> a;
    Pack<int16_t, kWidth> b;
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k) {
      Halves halves(w[k]);
      a.values[k] = halves.high;
      b.values[k] = halves.low;
    }
    storePack<uint16_t, kWidth>(high + i, a);
    storePack<int16_t, kWidth>(low + i, b);
  }
  /// What it publishes is its high half.
  template <unsigned kWidth>
  __device__ void publish(uint64_t, const float (&)[kWidth]) const {}
};

/// What all elements of an update share.
struct Rates {
  const float *hyper, *scalePointer;
  bool decays;
  float scale, rate, decay;

  __device__ void begin() {
    scale = *scalePointer;
    rate = hyper[Rate];
    decay = decays ? hyper[Decay] : 0.0f;
  }
  /// A scale that is not a number leaves everything as it is.
  __device__ bool skips() const { return isnan(scale); }
};

// A product and the sum it goes into are rounded apart, as the host does it:
// what the updates of two backends differ by is in every later step.
template <typename Master, typename S, typename G>
struct AdamwBody {
  Master master;
  S *m, *v;
  const G *grad;
  Rates rates;
  float beta1, beta2, eps, correction1, correction2;

  __device__ void begin() {
    rates.begin();
    const float *hyper = rates.hyper;
    beta1 = hyper[Beta1];
    beta2 = hyper[Beta2];
    eps = hyper[Epsilon];
    correction1 = hyper[Correction1];
    correction2 = hyper[Correction2];
  }

  template <unsigned kWidth>
  __device__ void run(uint64_t, uint64_t i) const {
    float w[kWidth];
    master.template load<kWidth>(i, w);
    if (!rates.skips()) {
      float g[kWidth], first[kWidth], second[kWidth];
      widen(grad + i, g);
      widen(m + i, first);
      widen(v + i, second);
#pragma unroll
      for (unsigned k = 0; k < kWidth; ++k) {
        float x = rates.scale * g[k];
        first[k] =
            __fadd_rn(__fmul_rn(beta1, first[k]), __fmul_rn(1 - beta1, x));
        second[k] = __fadd_rn(__fmul_rn(beta2, second[k]),
                              __fmul_rn(__fmul_rn(1 - beta2, x), x));
        float step =
            (first[k] / correction1) / (sqrtf(second[k] / correction2) + eps);
        w[k] = __fsub_rn(
            w[k], __fmul_rn(rates.rate,
                            __fadd_rn(step, __fmul_rn(rates.decay, w[k]))));
      }
      narrow(m + i, first);
      narrow(v + i, second);
      master.template store<kWidth>(i, w);
    }
    master.template publish<kWidth>(i, w);
  }
};

template <typename Master, typename G>
struct SgdBody {
  Master master;
  const G *grad;
  Rates rates;

  __device__ void begin() { rates.begin(); }

  template <unsigned kWidth>
  __device__ void run(uint64_t, uint64_t i) const {
    float w[kWidth];
    master.template load<kWidth>(i, w);
    if (!rates.skips()) {
      float g[kWidth];
      widen(grad + i, g);
#pragma unroll
      for (unsigned k = 0; k < kWidth; ++k) {
        float step = __fadd_rn(__fmul_rn(rates.scale, g[k]),
                               __fmul_rn(rates.decay, w[k]));
        w[k] = __fsub_rn(w[k], __fmul_rn(rates.rate, step));
      }
      master.template store<kWidth>(i, w);
    }
    master.template publish<kWidth>(i, w);
  }
};

/// Elements that a thread does together, and how often: many short blocks keep
/// more on the way than fewer that loop.
constexpr unsigned kWidth = 4, kPacks = 1;

template <typename Master, typename S>
cudaError_t launchAdamw(const Master &master, const Update &update, bool wide,
                        cudaStream_t stream) {
  return withType(update.grad.type, [&](auto gradient) {
    using G = decltype(gradient);
    AdamwBody<Master, S, G> body = {
        master,
        static_cast<S *>(update.m),
        static_cast<S *>(update.v),
        static_cast<const G *>(update.grad.data),
        {update.hyper, update.scale, update.decays, 0, 0, 0},
        0,
        0,
        0,
        0,
        0};
    return eachPack<kWidth>(body, Extent(update.grad), wide, kPacks, stream);
  });
}

template <typename Master>
cudaError_t launchSgd(const Master &master, const Update &update, bool wide,
                      cudaStream_t stream) {
  return withType(update.grad.type, [&](auto gradient) {
    using G = decltype(gradient);
    SgdBody<Master, G> body = {
        master,
        static_cast<const G *>(update.grad.data),
        {update.hyper, update.scale, update.decays, 0, 0, 0}};
    return eachPack<kWidth>(body, Extent(update.grad), wide, kPacks, stream);
  });
}

/// Calls f(master, S()) with how the update's master is kept and the type of
/// its moments.
template <typename F>
cudaError_t withMaster(const Update &update, F f) {
  if (update.remainder)
    return f(SplitMaster{static_cast<uint16_t *>(update.master.data),
                         update.remainder},
             float());
  if (update.master.type == Element::BF16)
    return f(WholeMaster<bf16, float>{static_cast<bf16 *>(update.master.data),
                                      nullptr},
             bf16());
  auto *values = static_cast<float *>(update.master.data);
  return withType(update.compute.type, [&](auto published) {
    using C = decltype(published);
    return f(
        WholeMaster<float, C>{values, static_cast<C *>(update.compute.data)},
        float());
  });
}

/// Whether all that an update touches can be moved in packs.
bool movesInPacks(const Update &update) {
  auto moves = [](const void *data, uint64_t bytes) {
    return movesPacks(data, 0, bytes, kWidth);
  };
  uint64_t state =
      update.master.type == Element::BF16 && !update.remainder ? 2 : 4;
  return moves(update.master.data, bytesOf(update.master.type)) &&
         moves(update.remainder, 2) && moves(update.m, state) &&
         moves(update.v, state) &&
         moves(update.grad.data, bytesOf(update.grad.type)) &&
         moves(update.compute.data, bytesOf(update.compute.type));
}

} // namespace

cudaError_t gtp::rt::cuda::sumSquares(const Tensor &x, double *out,
                                      double *workspace, cudaStream_t stream) {
  uint64_t count = x.elements();
  uint64_t blocks = (count + kThreads - 1) / kThreads;
  if (blocks > kSumSquaresBlocks)
    blocks = kSumSquaresBlocks;
  // A step has many short vectors, each of which one launch is to do.
  constexpr uint64_t kOfOneBlock = 16384;
  if (count <= kOfOneBlock)
    blocks = 1;
  double *partials = blocks == 1 ? out : workspace;
  cudaError_t error = withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    const auto *data = static_cast<const T *>(x.data);
    if (movesPacks(x, kWidthOf<T>))
      squareParts<T, kWidthOf<T>>
          <<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(data, count,
                                                                   partials);
    else
      squareParts<T, 1><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
          data, count, partials);
    return cudaGetLastError();
  });
  if (error != cudaSuccess || blocks == 1)
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

cudaError_t gtp::rt::cuda::adamw(const Update &update, cudaStream_t stream) {
  bool wide = movesInPacks(update);
  return withMaster(update, [&](auto master, auto state) {
    return launchAdamw<decltype(master), decltype(state)>(master, update, wide,
                                                          stream);
  });
}

cudaError_t gtp::rt::cuda::sgd(const Update &update, cudaStream_t stream) {
  bool wide = movesInPacks(update);
  return withMaster(update, [&](auto master, auto) {
    return launchSgd(master, update, wide, stream);
  });
}
