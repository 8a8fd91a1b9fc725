//===- Elementwise.cu - Activations, sums, casts, rope --------------------===//

#include "Vector.cuh"

#include <algorithm>

using namespace gtp::rt::cuda;

namespace {

constexpr float kRootHalf = 0.70710678118654752f;
constexpr float kRootTwoOverPi = 0.79788456080286536f;
constexpr float kInverseRootTwoPi = 0.39894228040143268f;
constexpr float kCubic = 0.044715f;

template <Unary op>
__device__ float apply(float x, float factor) {
  if constexpr (op == Unary::GeluExact)
    return 0.5f * x * (1.0f + erff(x * kRootHalf));
  else if constexpr (op == Unary::GeluTanh)
    return 0.5f * x * (1.0f + tanhf(kRootTwoOverPi * (x + kCubic * x * x * x)));
  else if constexpr (op == Unary::Softcap)
    return factor * tanhf(x / factor);
  else
    return factor * x;
}

/// A quotient to 2 units in the last place; a large divisor gives 0.
__device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

template <Binary op>
__device__ float apply(float a, float b, float factor) {
  if constexpr (op == Binary::Mul) {
    return a * b;
  } else if constexpr (op == Binary::Swiglu) {
    return a * sigmoid(a) * b;
  } else if constexpr (op == Binary::GeluExactGrad) {
    float density = kInverseRootTwoPi * expf(-0.5f * b * b);
    return a * (0.5f * (1.0f + erff(b * kRootHalf)) + b * density);
  } else if constexpr (op == Binary::GeluTanhGrad) {
    float t = tanhf(kRootTwoOverPi * (b + kCubic * b * b * b));
    float slope = kRootTwoOverPi * (1.0f + 3.0f * kCubic * b * b);
    return a * (0.5f * (1.0f + t) + 0.5f * b * (1.0f - t * t) * slope);
  } else {
    float t = tanhf(b / factor);
    return a * (1.0f - t * t);
  }
}

template <Unary op, typename T>
struct UnaryBody : PackBody {
  View<const T> x;
  View<T> y;
  float factor;

  UnaryBody(const Tensor &x, const Tensor &y, float factor)
      : x(x), y(y), factor(factor) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    float values[kWidth];
    widen(x.row(row) + i, values);
#pragma unroll
    for (float &value : values)
      value = apply<op>(value, factor);
    narrow(y.row(row) + i, values);
  }
};

/// The sum is rounded before op sees it.
template <Unary op, typename T>
struct BiasBody : PackBody {
  View<const T> x;
  const T *bias;
  View<T> sum, y;

  BiasBody(const Tensor &x, const void *bias, const Tensor &sum,
           const Tensor &y)
      : x(x), bias(static_cast<const T *>(bias)), sum(sum), y(y) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    float values[kWidth], biases[kWidth];
    widen(x.row(row) + i, values);
    widen(bias + i, biases);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      values[k] = toFloat(fromFloat<T>(values[k] + biases[k]));
    narrow(sum.row(row) + i, values);
#pragma unroll
    for (float &value : values)
      value = apply<op>(value, 0);
    narrow(y.row(row) + i, values);
  }
};

template <typename From, typename To>
struct CastBody : PackBody {
  /// Of either, the wider.
  using Sum =
      std::conditional_t<std::is_same_v<From, double>, double, SumOf<To>>;
  View<const From> x;
  View<To> y;
  bool add;

  CastBody(const Tensor &x, const Tensor &y) : x(x), y(y), add(y.add) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    Sum values[kWidth], sums[kWidth];
    widen(x.row(row) + i, values);
    if (add) {
      widen(y.row(row) + i, sums);
#pragma unroll
      for (unsigned k = 0; k < kWidth; ++k)
        values[k] = sums[k] + values[k];
    }
    narrow(y.row(row) + i, values);
  }
};

template <Binary op, typename T>
struct BinaryBody : PackBody {
  View<const T> a, b;
  View<T> y;
  float factor;

  BinaryBody(const Tensor &a, const Tensor &b, const Tensor &y, float factor)
      : a(a), b(b), y(y), factor(factor) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    float left[kWidth], right[kWidth];
    widen(a.row(row) + i, left);
    widen(b.row(row) + i, right);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      left[k] = apply<op>(left[k], right[k], factor);
    narrow(y.row(row) + i, left);
  }
};

template <typename T>
struct SwigluGradBody : PackBody {
  View<const T> dy, gate, up;
  View<T> dgate, dup;

  SwigluGradBody(const Tensor &dy, const Tensor &gate, const Tensor &up,
                 const Tensor &dgate, const Tensor &dup)
      : dy(dy), gate(gate), up(up), dgate(dgate), dup(dup) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    // Both results may replace an input: read all first.
    float grad[kWidth], g[kWidth], u[kWidth];
    widen(dy.row(row) + i, grad);
    widen(gate.row(row) + i, g);
    widen(up.row(row) + i, u);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k) {
      float s = sigmoid(g[k]);
      float d = grad[k] * u[k] * s * (1.0f + g[k] * (1.0f - s));
      u[k] = grad[k] * g[k] * s;
      g[k] = d;
    }
    narrow(dgate.row(row) + i, g);
    narrow(dup.row(row) + i, u);
  }
};

/// Of a call, whose parameters hold up to 32 KiB.
template <size_t kMost>
struct Addends {
  const void *data[kMost];
  uint64_t pitch[kMost];
  unsigned count;
};
constexpr size_t kFewAddends = 8;

template <typename T, size_t kMost>
struct AddBody : PackBody {
  Addends<kMost> inputs;
  View<T> out;
  bool add;

  AddBody(const Addends<kMost> &inputs, const Tensor &out)
      : inputs(inputs), out(out), add(out.add) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    T *to = out.row(row) + i;
    auto term = [&](unsigned n) {
      return loadPack<T, kWidth>(static_cast<const T *>(inputs.data[n]) +
                                 row * inputs.pitch[n] + i);
    };
    // The next term is on its way while one is added.
    unsigned n = !add;
    Pack<T, kWidth> pack = add ? loadPack<T, kWidth>(to) : term(0), next;
    if (n < inputs.count)
      next = term(n);
    SumOf<T> sum[kWidth];
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      sum[k] = toSum(pack.values[k]);
    for (; n < inputs.count; ++n) {
      pack = next;
      if (n + 1 < inputs.count)
        next = term(n + 1);
#pragma unroll
      for (unsigned k = 0; k < kWidth; ++k)
        sum[k] += toSum(pack.values[k]);
    }
    narrow(to, sum);
  }
};

template <typename T>
struct FillBody : PackBody {
  View<T> out;
  T value;

  FillBody(const Tensor &out, T value) : out(out), value(value) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    Pack<T, kWidth> pack;
#pragma unroll
    for (T &each : pack.values)
      each = value;
    storePack<T, kWidth>(out.row(row) + i, pack);
  }
};

/// A column is a pair of features, or one that stays.
template <typename T>
struct RopeBody : PackBody {
  View<const T> x;
  View<T> y;
  const float *cosines, *sines;
  Positions positions;
  uint32_t head, half;
  float sign;

  RopeBody(const Tensor &x, const Tensor &y) : x(x), y(y) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t column) const {
    const uint32_t pairs = head - half, which = uint32_t(column) / pairs;
    const uint32_t i = uint32_t(column) - which * pairs, start = which * head;
    const T *in = x.row(row) + start + i;
    T *out = y.row(row) + start + i;
    if (i >= half) {
      storePack<T, kWidth>(out + half, loadPack<T, kWidth>(in + half));
      return;
    }
    float low[kWidth], high[kWidth], cosine[kWidth], sine[kWidth];
    widen(in, low);
    widen(in + half, high);
    const uint64_t at = positionOf(positions, row) * half + i;
    widen(cosines + at, cosine);
    widen(sines + at, sine);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k) {
      float s = sign * sine[k], turned = low[k] * cosine[k] - high[k] * s;
      high[k] = high[k] * cosine[k] + low[k] * s;
      low[k] = turned;
    }
    narrow(out, low);
    narrow(out + half, high);
  }
};

/// A warp has a row, and 32 tokens of it at a time.
__global__ void documentStartsKernel(const int32_t *tokens, int32_t *starts,
                                     uint64_t rows, uint64_t length,
                                     int32_t separator) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned upToLane = ~0u >> (31 - lane);
  const uint64_t warps = uint64_t(gridDim.x) * blockDim.x / 32;
  uint64_t row = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  for (; row < rows; row += warps) {
    const int32_t *in = tokens + row * length;
    int32_t start = 0; // of the document that goes on
    for (uint64_t begin = 0; begin < length; begin += 32) {
      const uint64_t t = begin + lane;
      bool first = t > 0 && t < length && in[t - 1] == separator;
      unsigned firsts = __ballot_sync(~0u, first);
      auto last = [&](unsigned bits) {
        return bits ? static_cast<int32_t>(begin + 31 - __clz(bits)) : start;
      };
      if (t < length)
        starts[row * length + t] = last(firsts & upToLane);
      start = last(firsts);
    }
  }
}

/// Whether the tensors can be moved in packs of `width`.
template <typename... Tensors>
bool allMove(unsigned width, const Tensors &...tensors) {
  return (movesPacks(tensors, width) && ...);
}

/// Packs that a thread does.
constexpr unsigned kEach = 2;

template <Unary op>
cudaError_t launchUnary(const Tensor &x, const Tensor &y, float factor,
                        cudaStream_t stream) {
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    return eachPack<kWidth>(UnaryBody<op, T>(x, y, factor), Extent(x, y),
                            allMove(kWidth, x, y), kEach, stream);
  });
}

template <Binary op>
cudaError_t launchBinary(const Tensor &a, const Tensor &b, const Tensor &y,
                         float factor, cudaStream_t stream) {
  return withType(a.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    return eachPack<kWidth>(BinaryBody<op, T>(a, b, y, factor), Extent(a, b, y),
                            allMove(kWidth, a, b, y), kEach, stream);
  });
}

/// Calls f(T()) with the C++ type of `type`, of float64 too.
template <typename F>
cudaError_t withWideType(Element type, F f) {
  return type == Element::F64 ? f(double()) : withType(type, f);
}

template <typename T>
cudaError_t launchFill(const Tensor &out, uint64_t pattern,
                       cudaStream_t stream) {
  constexpr unsigned kWidth = kWidthOf<T>;
  bool wide =
      movesPacks(out.data, out.rows > 1 ? out.pitch : 0, sizeof(T), kWidth);
  return eachPack<kWidth>(FillBody<T>(out, static_cast<T>(pattern)),
                          Extent(out), wide, kEach, stream);
}

template <size_t kMost>
cudaError_t addUpTo(const Tensor *inputs, size_t count, const Tensor &out,
                    cudaStream_t stream) {
  Addends<kMost> addends;
  addends.count = static_cast<unsigned>(count);
  Extent extent(out);
  for (size_t i = 0; i < count; ++i) {
    addends.data[i] = inputs[i].data;
    addends.pitch[i] = inputs[i].pitch;
    if (inputs[i].pitch != out.columns)
      extent = Extent(out.rows, out.columns);
  }
  return withWideType(out.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    bool wide = movesPacks(out, kWidth);
    for (size_t i = 0; i < count; ++i)
      wide &= movesPacks(inputs[i], kWidth);
    return eachPack<kWidth>(AddBody<T, kMost>(addends, out), extent, wide,
                            kEach, stream);
  });
}

} // namespace

template <Unary op>
static cudaError_t launchBias(const Tensor &x, const void *bias,
                              const Tensor &sum, const Tensor &y,
                              cudaStream_t stream) {
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    // Columns count: they are the bias's.
    Extent extent(x.rows, x.columns);
    bool wide =
        allMove(kWidth, x, sum, y) && movesPacks(bias, 0, sizeof(T), kWidth);
    return eachPack<kWidth>(BiasBody<op, T>(x, bias, sum, y), extent, wide,
                            kEach, stream);
  });
}

cudaError_t gtp::rt::cuda::biasGelu(const Tensor &x, const void *bias,
                                    const Tensor &sum, const Tensor &y,
                                    bool approximate, cudaStream_t stream) {
  return approximate ? launchBias<Unary::GeluTanh>(x, bias, sum, y, stream)
                     : launchBias<Unary::GeluExact>(x, bias, sum, y, stream);
}

cudaError_t gtp::rt::cuda::unary(Unary op, const Tensor &x, const Tensor &y,
                                 float factor, cudaStream_t stream) {
  switch (op) {
  case Unary::Copy:
    return withWideType(x.type, [&](auto from) {
      return withWideType(y.type, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        // Of the wider type 16 bytes.
        constexpr unsigned kWidth = 16 / std::max(sizeof(From), sizeof(To));
        return eachPack<kWidth>(CastBody<From, To>(x, y), Extent(x, y),
                                allMove(kWidth, x, y), kEach, stream);
      });
    });
  case Unary::GeluExact:
    return launchUnary<Unary::GeluExact>(x, y, factor, stream);
  case Unary::GeluTanh:
    return launchUnary<Unary::GeluTanh>(x, y, factor, stream);
  case Unary::Softcap:
    return launchUnary<Unary::Softcap>(x, y, factor, stream);
  case Unary::Scale:
    return launchUnary<Unary::Scale>(x, y, factor, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t gtp::rt::cuda::binary(Binary op, const Tensor &a, const Tensor &b,
                                  const Tensor &y, float factor,
                                  cudaStream_t stream) {
  switch (op) {
  case Binary::Mul:
    return launchBinary<Binary::Mul>(a, b, y, factor, stream);
  case Binary::Swiglu:
    return launchBinary<Binary::Swiglu>(a, b, y, factor, stream);
  case Binary::GeluExactGrad:
    return launchBinary<Binary::GeluExactGrad>(a, b, y, factor, stream);
  case Binary::GeluTanhGrad:
    return launchBinary<Binary::GeluTanhGrad>(a, b, y, factor, stream);
  case Binary::SoftcapGrad:
    return launchBinary<Binary::SoftcapGrad>(a, b, y, factor, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t gtp::rt::cuda::swigluGrad(const Tensor &dy, const Tensor &gate,
                                      const Tensor &up, const Tensor &dgate,
                                      const Tensor &dup, cudaStream_t stream) {
  return withType(dy.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    return eachPack<kWidth>(SwigluGradBody<T>(dy, gate, up, dgate, dup),
                            Extent(dy, gate, up, dgate, dup),
                            allMove(kWidth, dy, gate, up, dgate, dup), kEach,
                            stream);
  });
}

cudaError_t gtp::rt::cuda::addAll(const Tensor *inputs, size_t count,
                                  const Tensor &out, cudaStream_t stream) {
  return count <= kFewAddends
             ? addUpTo<kFewAddends>(inputs, count, out, stream)
             : addUpTo<kMostAddends>(inputs, count, out, stream);
}

cudaError_t gtp::rt::cuda::fillPattern(const Tensor &out, unsigned elementBytes,
                                       uint64_t pattern, cudaStream_t stream) {
  switch (elementBytes) {
  case 1:
    return launchFill<uint8_t>(out, pattern, stream);
  case 2:
    return launchFill<uint16_t>(out, pattern, stream);
  case 4:
    return launchFill<uint32_t>(out, pattern, stream);
  default:
    return launchFill<uint64_t>(out, pattern, stream);
  }
}

cudaError_t gtp::rt::cuda::rope(const Tensor &x, const Tensor &y,
                                const float *cosines, const float *sines,
                                const Positions &positions, uint64_t head,
                                uint64_t half, bool inverse,
                                cudaStream_t stream) {
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    RopeBody<T> body(x, y);
    body.cosines = cosines;
    body.sines = sines;
    body.positions = positions;
    body.head = static_cast<uint32_t>(head);
    body.half = static_cast<uint32_t>(half);
    body.sign = inverse ? -1.0f : 1.0f;
    Extent extent(x.rows, x.columns / head * (head - half));
    // A pack is of pairs of one head, or of what stays of it.
    bool wide =
        head % kWidth == 0 && half % kWidth == 0 && allMove(kWidth, x, y);
    return eachPack<kWidth>(body, extent, wide, 1, stream);
  });
}

cudaError_t gtp::rt::cuda::documentStarts(const int32_t *tokens,
                                          int32_t *starts, uint64_t rows,
                                          uint64_t length, int32_t separator,
                                          cudaStream_t stream) {
  constexpr unsigned kRowsABlock = 4;
  uint64_t blocks = (rows + kRowsABlock - 1) / kRowsABlock;
  documentStartsKernel<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096),
                         kRowsABlock * 32, 0, stream>>>(tokens, starts, rows,
                                                        length, separator);
  return cudaGetLastError();
}
