//===- NormRows.cu - Norms of rows that registers hold --------------------===//
//
// A team of threads, a warp or a block, has a group of features at a time,
// reads it once, in packs of 16 bytes, and keeps it. A team of the gradient
// keeps the sums of its columns too, over all groups that it has.
//
//===----------------------------------------------------------------------===//

#include "NormRows.cuh"

#include "Vector.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned threadsOf(unsigned lanes) {
  return lanes < 256 ? 256 : lanes;
}

/// Threads of the gradient that a multiprocessor runs at once.
constexpr unsigned kGradThreads = 1024;
/// Blocks of the gradient; fixed, since it is the order of the sum: as many as
/// run at once on the 132 multiprocessors of an H200.
constexpr uint64_t gradBlocks(unsigned lanes) {
  return 132 * kGradThreads / threadsOf(lanes);
}

/// How many lanes a team has and packs a lane.
template <unsigned kLanesOf, unsigned kPacksOf>
struct Holding {
  static constexpr unsigned kLanes = kLanesOf, kPacks = kPacksOf;
};

/// Calls f with the first that holds `packs` packs, or the last.
template <typename First, typename... Rest, typename F>
cudaError_t withHolding(uint64_t packs, F f) {
  if constexpr (sizeof...(Rest) > 0)
    if (packs > First::kLanes * First::kPacks)
      return withHolding<Rest...>(packs, f);
  return f(First());
}
constexpr uint64_t kMostPacks = 4096;
constexpr uint64_t kMostPacksOfAWarp = 64; ///< of the gradient

/// Of sums over a team of kLanes threads. All threads of the team call.
template <unsigned kLanes>
class Team {
public:
  /// `shared` holds 2 * 3 * 32 floats.
  __device__ explicit Team(float *shared) : shared(shared) {}

  static constexpr unsigned kTeams = threadsOf(kLanes) / kLanes;
  __device__ static unsigned lane() { return threadIdx.x % kLanes; }
  __device__ static uint64_t number() {
    return uint64_t(blockIdx.x) * kTeams + threadIdx.x / kLanes;
  }
  __device__ static uint64_t count() { return uint64_t(gridDim.x) * kTeams; }

  /// The sums of up to three values, the same in all threads, in a fixed order.
  template <unsigned kCount>
  __device__ void sum(float (&values)[kCount]) {
#pragma unroll
    for (unsigned n = 0; n < kCount; ++n)
      for (int offset = 16; offset > 0; offset /= 2)
        values[n] += __shfl_xor_sync(~0u, values[n], offset);
    if constexpr (kLanes > 32) {
      constexpr unsigned kWarps = kLanes / 32;
      // A thread that is behind may still read what the last sum left: the next
      // one goes beside it.
      float *place = shared + odd * 3 * 32;
      odd ^= 1;
      if (threadIdx.x % 32 == 0)
        for (unsigned n = 0; n < kCount; ++n)
          place[n * 32 + threadIdx.x / 32] = values[n];
      __syncthreads();
#pragma unroll
      for (unsigned n = 0; n < kCount; ++n) {
        values[n] = 0;
        for (unsigned warp = 0; warp < kWarps; ++warp)
          values[n] += place[n * 32 + warp];
      }
    }
  }

private:
  float *shared;
  unsigned odd = 0;
};

/// Where an item, a group of a row, starts. Most norms have one group a row,
/// and a division is what a block would wait for first.
__device__ inline uint64_t placeOf(uint64_t item, uint32_t groups,
                                   uint32_t group, uint64_t pitch) {
  return groups == 1 ? item * pitch
                     : item / groups * pitch + item % groups * group;
}

/// What a thread has of a group: words as they come from memory, since two
/// bfloat16 that the compiler takes apart take a register each, and wait.
template <typename T, unsigned kLanes, unsigned kPacks>
struct Held {
  static constexpr unsigned kWidth = kWidthOf<T>;
  uint32_t words[kPacks][4];

  /// First feature of pack k.
  __device__ static uint32_t at(unsigned k) {
    return (Team<kLanes>::lane() + k * kLanes) * kWidth;
  }
  __device__ void load(const T *from, uint32_t group) {
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k)
      if (at(k) < group) {
        uint4 pack = *reinterpret_cast<const uint4 *>(from + at(k));
        words[k][0] = pack.x;
        words[k][1] = pack.y;
        words[k][2] = pack.z;
        words[k][3] = pack.w;
      }
  }
  __device__ float value(unsigned k, unsigned i) const {
    if constexpr (std::is_same_v<T, float>)
      return __uint_as_float(words[k][i]);
    else // the upper half of a float32, of either half of a word
      return __uint_as_float(i % 2 ? words[k][i / 2] & 0xffff0000u
                                   : words[k][i / 2] << 16);
  }
  /// Adds another's values, each sum rounded to T, and stores them.
  __device__ void add(const Held &other, T *to, uint32_t group) {
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k) {
      if (at(k) >= group)
        continue;
#pragma unroll
      for (unsigned i = 0; i < kWidth; ++i) {
        uint32_t sum = __float_as_uint(
            toFloat(fromFloat<T>(value(k, i) + other.value(k, i))));
        if constexpr (std::is_same_v<T, float>)
          words[k][i] = sum;
        else if (i % 2)
          words[k][i / 2] = (words[k][i / 2] & 0xffffu) | (sum & 0xffff0000u);
        else
          words[k][i / 2] = (words[k][i / 2] & 0xffff0000u) | sum >> 16;
      }
      *reinterpret_cast<uint4 *>(to + at(k)) =
          make_uint4(words[k][0], words[k][1], words[k][2], words[k][3]);
    }
  }
  /// f(k, i) of every value that is of the group.
  template <typename F>
  __device__ static void each(uint32_t group, F f) {
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k)
      if (at(k) < group)
#pragma unroll
        for (unsigned i = 0; i < kWidth; ++i)
          f(k, i);
  }
};

/// Of a group; 0 unless centered. All threads of the team call.
template <typename T, unsigned kLanes, unsigned kPacks>
__device__ float meanOf(bool centered, uint32_t group, float share,
                        const Held<T, kLanes, kPacks> &in, Team<kLanes> &team) {
  float mean = 0;
  if (centered) {
    float sum[1] = {0};
    in.each(group, [&](unsigned k, unsigned i) { sum[0] += in.value(k, i); });
    team.sum(sum);
    mean = sum[0] * share;
  }
  return mean;
}

template <typename T, unsigned kLanes, unsigned kPacks, bool kAdds>
__global__ void __launch_bounds__(threadsOf(kLanes))
    normKernel(NormShape shape, View<const T> x, View<const T> added,
               const T *weight, View<T> stored, View<T> y, uint64_t items,
               uint32_t groups) {
  using Values = Held<T, kLanes, kPacks>;
  constexpr unsigned kWidth = Values::kWidth;
  __shared__ float shared[2 * 3 * 32];
  Team<kLanes> team(shared);
  const auto group = static_cast<uint32_t>(shape.group);
  const float share = 1.0f / static_cast<float>(group);
  for (uint64_t item = team.number(); item < items; item += team.count()) {
    Values in;
    in.load(x.data + placeOf(item, groups, group, x.pitch), group);
    if constexpr (kAdds) {
      Values other;
      other.load(added.data + placeOf(item, groups, group, added.pitch), group);
      in.add(other, stored.data + placeOf(item, groups, group, stored.pitch),
             group);
    }
    const float mean = meanOf(shape.centered, group, share, in, team);
    float squares[1] = {0};
    Values::each(group, [&](unsigned k, unsigned i) {
      float d = in.value(k, i) - mean;
      squares[0] += d * d;
    });
    team.sum(squares);
    const float r = rsqrtf(squares[0] * share + shape.eps);
    T *out = y.data + placeOf(item, groups, group, y.pitch);
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k) {
      if (Values::at(k) >= group)
        continue;
      float w[kWidth];
      widen(weight + Values::at(k), w);
#pragma unroll
      for (unsigned i = 0; i < kWidth; ++i)
        w[i] = (in.value(k, i) - mean) * r * (shape.unitOffset + w[i]);
      narrow(out + Values::at(k), w);
    }
  }
}

template <typename T, unsigned kLanes, unsigned kPacks, bool kAdds>
__global__ void __launch_bounds__(threadsOf(kLanes),
                                  kGradThreads / threadsOf(kLanes))
    gradKernel(NormShape shape, View<const T> dy, View<const T> x,
               const T *weight, View<const T> residual, View<T> dx,
               uint64_t items, uint32_t groups, float *partials) {
  using Values = Held<T, kLanes, kPacks>;
  constexpr unsigned kWidth = Values::kWidth;
  __shared__ float shared[2 * 3 * 32];
  Team<kLanes> team(shared);
  const auto group = static_cast<uint32_t>(shape.group);
  const float share = 1.0f / static_cast<float>(group);
  float sums[kPacks][kWidth] = {};
  Values in, grad, scale, nextIn, nextGrad;
  auto load = [&](uint64_t item, Values &ofX, Values &ofDy) {
    ofX.load(x.data + placeOf(item, groups, group, x.pitch), group);
    ofDy.load(dy.data + placeOf(item, groups, group, dy.pitch), group);
  };
  scale.load(weight, group);
  uint64_t item = team.number();
  if (item < items)
    load(item, in, grad);
  for (uint64_t next; item < items; item = next) {
    // The next group is on its way while the team sums.
    next = item + team.count();
    if (next < items)
      load(next, nextIn, nextGrad);
    Values rest;
    if constexpr (kAdds)
      rest.load(residual.data + placeOf(item, groups, group, residual.pitch),
                group);
    auto slope = [&](unsigned k, unsigned i) {
      return grad.value(k, i) * (shape.unitOffset + scale.value(k, i));
    };
    const float mean = meanOf(shape.centered, group, share, in, team);
    // Of squares, of products of slopes and x - mean, and of slopes.
    float all[3] = {};
    Values::each(group, [&](unsigned k, unsigned i) {
      float d = in.value(k, i) - mean, h = slope(k, i);
      all[0] += d * d;
      all[1] += h * d;
      all[2] += h;
    });
    if (shape.centered) {
      team.sum(all);
    } else {
      float two[2] = {all[0], all[1]};
      team.sum(two);
      all[0] = two[0];
      all[1] = two[1];
    }
    const float r = rsqrtf(all[0] * share + shape.eps);
    const float level = shape.centered ? all[2] * share : 0.0f;
    const float inner = all[1] * share * r;
    // Each thread has read what it writes of dy's group: dx may be dy.
    T *out = dx.data + placeOf(item, groups, group, dx.pitch);
#pragma unroll
    for (unsigned k = 0; k < kPacks; ++k) {
      if (Values::at(k) >= group)
        continue;
      float result[kWidth];
#pragma unroll
      for (unsigned i = 0; i < kWidth; ++i) {
        float n = (in.value(k, i) - mean) * r;
        sums[k][i] += grad.value(k, i) * n;
        result[i] = r * (slope(k, i) - level - n * inner);
        if constexpr (kAdds) // to what would be stored
          result[i] =
              __fadd_rn(rest.value(k, i), toFloat(fromFloat<T>(result[i])));
      }
      narrow(out + Values::at(k), result);
    }
    in = nextIn;
    grad = nextGrad;
  }
#pragma unroll
  for (unsigned k = 0; k < kPacks; ++k)
    if (Values::at(k) < group)
      narrow(partials + team.number() * group + Values::at(k), sums[k]);
}

} // namespace

bool gtp::rt::cuda::holdsRows(const NormShape &shape, const void *weight,
                              const Tensor &x, const Tensor &y) {
  const uint64_t bytes = bytesOf(x.type);
  const auto width = static_cast<unsigned>(16 / bytes);
  return shape.group % width == 0 && shape.group <= kMostPacks * width &&
         movesPacks(x, width) && movesPacks(y, width) &&
         movesPacks(weight, 0, bytes, width);
}

cudaError_t gtp::rt::cuda::normRows(const NormShape &shape, const Tensor &x,
                                    const Tensor &added, const void *weight,
                                    const Tensor &sum, const Tensor &y,
                                    cudaStream_t stream) {
  const uint64_t groups = x.columns / shape.group, items = x.rows * groups;
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    auto launch = [&](auto holding) {
      constexpr unsigned kLanes = holding.kLanes, kPacks = holding.kPacks;
      constexpr unsigned kTeams = Team<kLanes>::kTeams;
      uint64_t blocks = (items + kTeams - 1) / kTeams;
      auto *kernel = added.data ? normKernel<T, kLanes, kPacks, true>
                                : normKernel<T, kLanes, kPacks, false>;
      kernel<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536),
               threadsOf(kLanes), 0, stream>>>(
          shape, View<const T>(x), View<const T>(added),
          static_cast<const T *>(weight), View<T>(sum), View<T>(y), items,
          static_cast<uint32_t>(groups));
      return cudaGetLastError();
    };
    return withHolding<Holding<32, 1>, Holding<32, 2>, Holding<32, 4>,
                       Holding<256, 1>, Holding<256, 2>, Holding<256, 4>,
                       Holding<1024, 4>>(shape.group / kWidthOf<T>, launch);
  });
}

uint64_t gtp::rt::cuda::mostGradTeams(uint64_t group) {
  return group <= kMostPacksOfAWarp * kWidthOf<bf16>
             ? gradBlocks(32) * Team<32>::kTeams
             : gradBlocks(256);
}

cudaError_t gtp::rt::cuda::normGradRows(const NormShape &shape,
                                        const Tensor &dy, const Tensor &x,
                                        const void *weight,
                                        const Tensor &residual,
                                        const Tensor &dx, float *partials,
                                        uint64_t &teams, cudaStream_t stream) {
  const uint64_t groups = x.columns / shape.group, items = x.rows * groups;
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    auto launch = [&](auto holding) {
      constexpr unsigned kLanes = holding.kLanes, kPacks = holding.kPacks;
      constexpr unsigned kTeams = Team<kLanes>::kTeams;
      uint64_t blocks = (items + kTeams - 1) / kTeams;
      if (blocks > gradBlocks(kLanes))
        blocks = gradBlocks(kLanes);
      teams = blocks * kTeams;
      auto *kernel = residual.data ? gradKernel<T, kLanes, kPacks, true>
                                   : gradKernel<T, kLanes, kPacks, false>;
      kernel<<<static_cast<unsigned>(blocks), threadsOf(kLanes), 0, stream>>>(
          shape, View<const T>(dy), View<const T>(x),
          static_cast<const T *>(weight), View<const T>(residual), View<T>(dx),
          items, static_cast<uint32_t>(groups), partials);
      return cudaGetLastError();
    };
    // Sums of columns take registers: fewer packs than above.
    return withHolding<Holding<32, 1>, Holding<32, kMostPacksOfAWarp / 32>,
                       Holding<256, 1>, Holding<512, 1>, Holding<1024, 1>,
                       Holding<1024, 4>>(shape.group / kWidthOf<T>, launch);
  });
}
