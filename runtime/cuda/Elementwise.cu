//===- Elementwise.cu - Activations, sums, casts, rope --------------------===//

#include "Device.cuh"

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

template <Binary op>
__device__ float apply(float a, float b, float factor) {
  if constexpr (op == Binary::Mul) {
    return a * b;
  } else if constexpr (op == Binary::Swiglu) {
    return a / (1.0f + expf(-a)) * b;
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
__global__ void unaryKernel(View<const T> x, View<T> y, uint64_t rows,
                            uint64_t columns, float factor) {
  GTP_FOR_EACH_ELEMENT(row, rows, i, columns)
  y.row(row)[i] = fromFloat<T>(apply<op>(toFloat(x.row(row)[i]), factor));
}

template <typename From, typename To, typename Sum>
__global__ void castKernel(View<const From> x, View<To> y, uint64_t rows,
                           uint64_t columns, bool add) {
  GTP_FOR_EACH_ELEMENT(row, rows, i, columns) {
    To *out = y.row(row) + i;
    auto value = static_cast<Sum>(x.row(row)[i]);
    *out = static_cast<To>(add ? static_cast<Sum>(*out) + value : value);
  }
}

template <Binary op, typename T>
__global__ void binaryKernel(View<const T> a, View<const T> b, View<T> y,
                             uint64_t rows, uint64_t columns, float factor) {
  GTP_FOR_EACH_ELEMENT(row, rows, i, columns)
  y.row(row)[i] = fromFloat<T>(
      apply<op>(toFloat(a.row(row)[i]), toFloat(b.row(row)[i]), factor));
}

template <typename T>
__global__ void swigluGradKernel(View<const T> dy, View<const T> gate,
                                 View<const T> up, View<T> dgate, View<T> dup,
                                 uint64_t rows, uint64_t columns) {
  GTP_FOR_EACH_ELEMENT(row, rows, i, columns) {
    // Both results may replace an input: read all first.
    float grad = toFloat(dy.row(row)[i]), g = toFloat(gate.row(row)[i]);
    float u = toFloat(up.row(row)[i]);
    float s = 1.0f / (1.0f + expf(-g));
    dgate.row(row)[i] = fromFloat<T>(grad * u * s * (1.0f + g * (1.0f - s)));
    dup.row(row)[i] = fromFloat<T>(grad * g * s);
  }
}

struct Addends {
  const void *data[kMostAddends];
  uint64_t pitch[kMostAddends];
  unsigned count;
};

template <typename T, typename Sum>
__global__ void addKernel(Addends inputs, View<T> out, uint64_t rows,
                          uint64_t columns, bool add) {
  GTP_FOR_EACH_ELEMENT(row, rows, i, columns) {
    auto term = [&](unsigned n) {
      return static_cast<Sum>(
          static_cast<const T *>(inputs.data[n])[row * inputs.pitch[n] + i]);
    };
    T *to = out.row(row) + i;
    Sum sum = add ? static_cast<Sum>(*to) + term(0) : term(0);
    for (unsigned n = 1; n < inputs.count; ++n)
      sum += term(n);
    *to = static_cast<T>(sum);
  }
}

template <typename T>
__global__ void fillKernel(View<T> out, uint64_t rows, uint64_t columns,
                           T value) {
  GTP_FOR_EACH_ELEMENT(row, rows, i, columns)
  out.row(row)[i] = value;
}

template <typename T>
__global__ void ropeKernel(View<const T> x, View<T> y, const float *cosines,
                           const float *sines, uint64_t rows, uint64_t columns,
                           Positions positions, uint64_t head, uint64_t half,
                           float sign) {
  // A column is a pair of features, or one that stays.
  const uint64_t pairs = head - half, perRow = columns / head * pairs;
  GTP_FOR_EACH_ELEMENT(row, rows, column, perRow) {
    uint64_t start = column / pairs * head, i = column % pairs;
    const T *in = x.row(row) + start;
    T *out = y.row(row) + start;
    if (i >= half) {
      out[i + half] = in[i + half];
      continue;
    }
    uint64_t at = positionOf(positions, row) * half + i;
    float low = toFloat(in[i]), high = toFloat(in[i + half]);
    float cosine = cosines[at], sine = sign * sines[at];
    out[i] = fromFloat<T>(low * cosine - high * sine);
    out[i + half] = fromFloat<T>(high * cosine + low * sine);
  }
}

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

/// Rows and columns of a loop over all tensors: one row where none has a gap.
struct Extent {
  uint64_t rows, columns;

  template <typename... Tensors>
  explicit Extent(const Tensor &first, const Tensors &...others)
      : rows(first.rows), columns(first.columns) {
    bool dense = (first.pitch == columns) && ((others.pitch == columns) && ...);
    if (dense) {
      columns *= rows;
      rows = 1;
    }
  }
};

template <Unary op>
cudaError_t launchUnary(const Tensor &x, const Tensor &y, float factor,
                        cudaStream_t stream) {
  Extent e(x, y);
  Grid grid(e.rows, e.columns);
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    unaryKernel<op, T><<<grid.blocks, grid.threads, 0, stream>>>(
        View<const T>(x), View<T>(y), e.rows, e.columns, factor);
    return cudaGetLastError();
  });
}

template <Binary op>
cudaError_t launchBinary(const Tensor &a, const Tensor &b, const Tensor &y,
                         float factor, cudaStream_t stream) {
  Extent e(a, b, y);
  Grid grid(e.rows, e.columns);
  return withType(a.type, [&](auto zero) {
    using T = decltype(zero);
    binaryKernel<op, T><<<grid.blocks, grid.threads, 0, stream>>>(
        View<const T>(a), View<const T>(b), View<T>(y), e.rows, e.columns,
        factor);
    return cudaGetLastError();
  });
}

template <typename From, typename To, typename Sum>
cudaError_t launchCast(const Tensor &x, const Tensor &y, cudaStream_t stream) {
  Extent e(x, y);
  Grid grid(e.rows, e.columns);
  castKernel<From, To, Sum><<<grid.blocks, grid.threads, 0, stream>>>(
      View<const From>(x), View<To>(y), e.rows, e.columns, y.add);
  return cudaGetLastError();
}

template <typename From>
cudaError_t castFrom(const Tensor &x, const Tensor &y, cudaStream_t stream) {
  constexpr bool wide = std::is_same_v<From, double>;
  using Narrow = std::conditional_t<wide, double, float>;
  switch (y.type) {
  case Element::F32:
    return launchCast<From, float, Narrow>(x, y, stream);
  case Element::BF16:
    return launchCast<From, bf16, Narrow>(x, y, stream);
  default:
    return launchCast<From, double, double>(x, y, stream);
  }
}

template <typename T, typename Sum>
cudaError_t launchAdd(const Addends &inputs, const Tensor &out, Extent e,
                      cudaStream_t stream) {
  Grid grid(e.rows, e.columns);
  addKernel<T, Sum><<<grid.blocks, grid.threads, 0, stream>>>(
      inputs, View<T>(out), e.rows, e.columns, out.add);
  return cudaGetLastError();
}

template <typename T>
cudaError_t launchFill(const Tensor &out, uint64_t pattern,
                       cudaStream_t stream) {
  Extent e(out);
  Grid grid(e.rows, e.columns);
  fillKernel<T><<<grid.blocks, grid.threads, 0, stream>>>(
      View<T>(out), e.rows, e.columns, static_cast<T>(pattern));
  return cudaGetLastError();
}

} // namespace

cudaError_t gtp::rt::cuda::unary(Unary op, const Tensor &x, const Tensor &y,
                                 float factor, cudaStream_t stream) {
  switch (op) {
  case Unary::Copy:
    switch (x.type) {
    case Element::F32:
      return castFrom<float>(x, y, stream);
    case Element::BF16:
      return castFrom<bf16>(x, y, stream);
    default:
      return castFrom<double>(x, y, stream);
    }
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
  Extent e(dy, gate, up, dgate, dup);
  Grid grid(e.rows, e.columns);
  return withType(dy.type, [&](auto zero) {
    using T = decltype(zero);
    swigluGradKernel<T><<<grid.blocks, grid.threads, 0, stream>>>(
        View<const T>(dy), View<const T>(gate), View<const T>(up),
        View<T>(dgate), View<T>(dup), e.rows, e.columns);
    return cudaGetLastError();
  });
}

cudaError_t gtp::rt::cuda::addAll(const Tensor *inputs, size_t count,
                                  const Tensor &out, cudaStream_t stream) {
  Addends addends;
  addends.count = static_cast<unsigned>(count);
  Extent e(out);
  for (size_t i = 0; i < count; ++i) {
    addends.data[i] = inputs[i].data;
    addends.pitch[i] = inputs[i].pitch;
    if (inputs[i].pitch != out.columns)
      e.rows = out.rows, e.columns = out.columns;
  }
  switch (out.type) {
  case Element::F32:
    return launchAdd<float, float>(addends, out, e, stream);
  case Element::BF16:
    return launchAdd<bf16, float>(addends, out, e, stream);
  default:
    return launchAdd<double, double>(addends, out, e, stream);
  }
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
  Grid grid(x.rows, x.columns / head * (head - half));
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    ropeKernel<T><<<grid.blocks, grid.threads, 0, stream>>>(
        View<const T>(x), View<T>(y), cosines, sines, x.rows, x.columns,
        positions, head, half, inverse ? -1.0f : 1.0f);
    return cudaGetLastError();
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
