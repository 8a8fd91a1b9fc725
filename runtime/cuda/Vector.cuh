//===- Vector.cuh - Elements that move together ---------------------------===//
//
// Kernels that memory limits move 16 bytes an instruction where addresses and
// pitches allow it, and an element at a time where they do not: which of the
// two changes no result.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_VECTOR_CUH
#define GTP_RUNTIME_CUDA_VECTOR_CUH

#include "Device.cuh"

namespace gtp::rt::cuda {

/// kWidth elements in consecutive places, of which one instruction moves up to
/// 16 bytes.
template <typename T, unsigned kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T values[kWidth];
};

/// Elements of 16 bytes.
template <typename T>
constexpr unsigned kWidthOf = 16 / sizeof(T);

/// What one instruction moves of a pack.
template <unsigned kBytes>
struct Piece {
  using Type = uint4;
};
template <>
struct Piece<8> {
  using Type = uint2;
};
template <>
struct Piece<4> {
  using Type = uint32_t;
};
template <>
struct Piece<2> {
  using Type = uint16_t;
};
template <>
struct Piece<1> {
  using Type = uint8_t;
};
template <typename T, unsigned kWidth>
using PieceOf = typename Piece<sizeof(Pack<T, kWidth>)>::Type;

template <typename T>
__device__ inline void storePiece(T *to, T piece) {
  *to = piece;
}
// nvcc may take a store of a vector apart into its words.
__device__ inline void storePiece(uint4 *to, uint4 piece) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(piece.x), "r"(piece.y),
                 "r"(piece.z), "r"(piece.w)
               : "memory");
}
__device__ inline void storePiece(uint2 *to, uint2 piece) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};"
               :
               : "l"(__cvta_generic_to_global(to)), "r"(piece.x), "r"(piece.y)
               : "memory");
}

template <typename T, unsigned kWidth>
__device__ inline Pack<T, kWidth> loadPack(const T *from) {
  using Type = PieceOf<T, kWidth>;
  constexpr unsigned kPieces = sizeof(Pack<T, kWidth>) / sizeof(Type);
  Type pieces[kPieces];
#pragma unroll
  for (unsigned k = 0; k < kPieces; ++k)
    pieces[k] = reinterpret_cast<const Type *>(from)[k];
  Pack<T, kWidth> pack;
  memcpy(&pack, pieces, sizeof pack);
  return pack;
}

template <typename T, unsigned kWidth>
__device__ inline void storePack(T *to, const Pack<T, kWidth> &pack) {
  using Type = PieceOf<T, kWidth>;
  constexpr unsigned kPieces = sizeof(Pack<T, kWidth>) / sizeof(Type);
  Type pieces[kPieces];
  memcpy(pieces, &pack, sizeof pack);
#pragma unroll
  for (unsigned k = 0; k < kPieces; ++k)
    storePiece(reinterpret_cast<Type *>(to) + k, pieces[k]);
}

/// As what sums are made of: float, and double for double.
template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

__device__ inline int64_t toSum(int64_t x) { return x; }
__device__ inline double toSum(double x) { return x; }
__device__ inline float toSum(float x) { return x; }
__device__ inline float toSum(bf16 x) { return toFloat(x); }
/// Rounded once: a bfloat16 of a double does not go through float.
template <typename T, typename Sum>
__device__ inline T fromSum(Sum x) {
  if constexpr (!std::is_same_v<T, bf16>)
    return static_cast<T>(x);
  else if constexpr (std::is_same_v<Sum, double>)
    return __double2bfloat16(x);
  else
    return __float2bfloat16_rn(x);
}

template <unsigned kWidth, typename T, typename Sum>
__device__ inline void widen(const T *from, Sum (&to)[kWidth]) {
  Pack<T, kWidth> pack = loadPack<T, kWidth>(from);
#pragma unroll
  for (unsigned k = 0; k < kWidth; ++k)
    to[k] = toSum(pack.values[k]);
}

template <unsigned kWidth, typename T, typename Sum>
__device__ inline void narrow(T *to, const Sum (&from)[kWidth]) {
  if constexpr (std::is_same_v<T, bf16> && std::is_same_v<Sum, float> &&
                kWidth % 2 == 0) {
    // One instruction rounds two.
    Pack<T, kWidth> pack;
#pragma unroll
    for (unsigned k = 0; k < kWidth; k += 2) {
      __nv_bfloat162 pair = __floats2bfloat162_rn(from[k], from[k + 1]);
      pack.values[k] = pair.x;
      pack.values[k + 1] = pair.y;
    }
    storePack<T, kWidth>(to, pack);
  } else {
    Pack<T, kWidth> pack;
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      pack.values[k] = fromSum<T>(from[k]);
    storePack<T, kWidth>(to, pack);
  }
}

inline uint64_t bytesOf(Element type) {
  return type == Element::BF16 ? 2 : type == Element::F64 ? 8 : 4;
}

/// Whether rows that start `pitch` elements of `bytes` apart can be moved in
/// packs of `width` elements.
inline bool movesPacks(const void *data, uint64_t pitch, uint64_t bytes,
                       unsigned width) {
  uint64_t piece = width * bytes < 16 ? width * bytes : 16;
  return reinterpret_cast<uintptr_t>(data) % piece == 0 &&
         pitch * bytes % piece == 0;
}
inline bool movesPacks(const Tensor &tensor, unsigned width) {
  return movesPacks(tensor.data, tensor.rows > 1 ? tensor.pitch : 0,
                    bytesOf(tensor.type), width);
}

/// Rows and columns of a loop over all tensors: one row where none has a gap.
struct Extent {
  uint64_t rows, columns;

  /// Where it counts which row or column it is.
  Extent(uint64_t rows, uint64_t columns) : rows(rows), columns(columns) {}
  /// One row where all are dense.
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

/// What a body of `eachPack` derives from: `run<kWidth>(row, column)` does
/// kWidth elements, `begin` reads what all elements need.
struct PackBody {
  __device__ void begin() {}
};

template <unsigned kWidth, typename Body>
__global__ void __launch_bounds__(256)
    eachPackKernel(Body body, uint64_t rows, uint64_t columns) {
  const uint64_t packs = columns / kWidth;
  body.begin();
  for (uint64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    for (uint64_t pack = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
         pack < packs; pack += uint64_t(gridDim.x) * blockDim.x)
      body.template run<kWidth>(row, pack * kWidth);
    if constexpr (kWidth > 1) {
      uint64_t column = packs * kWidth + threadIdx.x;
      if (blockIdx.x == 0 && column < columns)
        body.template run<1>(row, column);
    }
  }
}

/// Runs the body on every element, kWidth of a row together if `wide`. A thread
/// does about `each` packs.
template <unsigned kWidth, typename Body>
cudaError_t eachPack(const Body &body, const Extent &extent, bool wide,
                     unsigned each, cudaStream_t stream) {
  constexpr uint64_t kMostBlocks = uint64_t(1) << 30;
  const uint64_t width = wide ? kWidth : 1;
  uint64_t packs = (extent.columns + width - 1) / width;
  // Short rows, and few of them, shall not leave threads idle.
  const auto threads =
      static_cast<unsigned>(packs < 256 ? (packs + 31) / 32 * 32 : 256);
  uint64_t x = (packs + threads * each - 1) / (threads * each);
  if (x * extent.rows < 1024)
    x = (packs + threads - 1) / threads;
  uint64_t y = extent.rows < 65535 ? extent.rows : 65535;
  dim3 blocks(static_cast<unsigned>(x < kMostBlocks ? x : kMostBlocks),
              static_cast<unsigned>(y));
  if (wide)
    eachPackKernel<kWidth, Body>
        <<<blocks, threads, 0, stream>>>(body, extent.rows, extent.columns);
  else
    eachPackKernel<1, Body>
        <<<blocks, threads, 0, stream>>>(body, extent.rows, extent.columns);
  return cudaGetLastError();
}

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_VECTOR_CUH
