//===- Embedding.cu - embeddings, biases and their gradients --------------===//
//
// The gradient of an embedding sorts (id, row) pairs, stably, and lets one
// block sum the rows of one id in row order.
//
//===----------------------------------------------------------------------===//

#include "Columns.cuh"
#include "Vector.cuh"

#include <cub/device/device_radix_sort.cuh>

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kThreads = 256;

/// Rows of `columns` pieces of any type.
template <typename Piece>
__global__ void embeddingKernel(const int32_t *ids, const Piece *table,
                                uint64_t tablePitch, uint64_t tableRows,
                                Piece *out, uint64_t outPitch, uint64_t rows,
                                uint64_t columns, Fault *fault) {
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int32_t id = ids[row];
    if (id < 0 || static_cast<uint64_t>(id) >= tableRows) {
      if (threadIdx.x == 0)
        report(fault, Fault::BadId, id, row, tableRows);
      continue;
    }
    const Piece *in = table + static_cast<uint64_t>(id) * tablePitch;
    for (uint64_t i = threadIdx.x; i < columns; i += kThreads)
      out[row * outPitch + i] = in[i];
  }
}

__global__ void numberRows(uint32_t *rows, uint64_t count) {
  uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    rows[i] = static_cast<uint32_t>(i);
}

/// Block (i, part): if sorted position i is the first of its id, the sum of
/// that id's rows, a part of the columns.
template <typename T, typename G, unsigned kWidth>
__global__ void __launch_bounds__(kThreads)
    sumIds(View<const T> dy, const int32_t *ids, const uint32_t *order,
           View<G> dtable, uint64_t tableRows, uint64_t rows, uint64_t columns,
           bool add, Fault *fault) {
  for (uint64_t i = blockIdx.x; i < rows; i += gridDim.x) {
    const int32_t id = ids[i];
    if (i > 0 && ids[i - 1] == id)
      continue;
    if (id < 0 || static_cast<uint64_t>(id) >= tableRows) {
      if (threadIdx.x == 0)
        report(fault, Fault::BadId, id, order[i], tableRows);
      continue;
    }
    // How many there are, before they are read: then many are on the way at
    // once.
    uint64_t count = 1;
    for (int same = int(kThreads); same == int(kThreads);
         count += static_cast<uint64_t>(same)) {
      uint64_t next = i + count + threadIdx.x;
      same = __syncthreads_count(next < rows && ids[next] == id);
    }
    G *out = dtable.row(static_cast<uint64_t>(id));
    for (uint64_t c = (uint64_t(blockIdx.y) * kThreads + threadIdx.x) * kWidth;
         c < columns; c += uint64_t(gridDim.y) * kThreads * kWidth) {
      float sum[kWidth] = {};
      if (add)
        widen(out + c, sum);
#pragma unroll 8
      for (uint64_t j = 0; j < count; ++j) {
        float next[kWidth];
        widen(dy.row(order[i + j]) + c, next);
#pragma unroll
        for (unsigned k = 0; k < kWidth; ++k)
          sum[k] += next[k];
      }
      narrow(out + c, sum);
    }
  }
}

template <typename T>
struct AddRowsBody : PackBody {
  View<const T> x, table;
  View<T> y;
  Positions positions;

  AddRowsBody(const Tensor &x, const Tensor &table, const Tensor &y,
              const Positions &positions)
      : x(x), table(table), y(y), positions(positions) {}
  template <unsigned kWidth>
  __device__ void run(uint64_t row, uint64_t i) const {
    float values[kWidth], terms[kWidth];
    widen(x.row(row) + i, values);
    widen(table.row(positionOf(positions, row)) + i, terms);
#pragma unroll
    for (unsigned k = 0; k < kWidth; ++k)
      values[k] += terms[k];
    narrow(y.row(row) + i, values);
  }
};

__global__ void positionsKernel(Positions positions, int32_t *ids,
                                uint64_t rows) {
  uint64_t row = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < rows)
    ids[row] = static_cast<int32_t>(positionOf(positions, row));
}

/// Chunks of rows that are summed apart, if there is one position only.
constexpr uint64_t kRowChunks = 256;

uint64_t chunksOf(uint64_t rows, uint64_t period) {
  uint64_t terms = rows / period;
  return period > 1 ? 1 : terms < kRowChunks ? terms : kRowChunks;
}

/// kWidth elements from (p, i) on of chunk blockIdx.z.
template <typename T, unsigned kWidth>
__global__ void sumRowChunks(View<const T> dy, double *partials, uint64_t rows,
                             uint64_t columns, uint64_t period) {
  uint64_t terms = rows / period, chunks = gridDim.z, chunk = blockIdx.z;
  uint64_t begin = terms * chunk / chunks, end = terms * (chunk + 1) / chunks;
  GTP_FOR_EACH_ELEMENT(p, period, pack, columns / kWidth) {
    const uint64_t i = pack * kWidth;
    double sums[kWidth] = {};
#pragma unroll 4
    for (uint64_t term = begin; term < end; ++term) {
      float values[kWidth];
      widen(dy.row(term * period + p) + i, values);
#pragma unroll
      for (unsigned k = 0; k < kWidth; ++k)
        sums[k] += values[k];
    }
    narrow(partials + (chunk * period + p) * columns + i, sums);
  }
}

template <typename G>
__global__ void finishRows(const double *partials, uint64_t chunks,
                           View<G> table, uint64_t tableRows, uint64_t columns,
                           uint64_t period, bool add) {
  GTP_FOR_EACH_ELEMENT(p, tableRows, i, columns) {
    G *out = table.row(p) + i;
    double sum = add ? toFloat(*out) : 0.0;
    for (uint64_t chunk = 0; p < period && chunk < chunks; ++chunk)
      sum += partials[(chunk * period + p) * columns + i];
    *out = fromFloat<G>(static_cast<float>(sum));
  }
}

uint64_t roundUp(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Where the pieces of embeddingGrad's workspace are.
struct SortSpace {
  int32_t *ids;
  uint32_t *rowsIn, *rowsOut;
  void *temporary;
  size_t temporaryBytes = 0;
  uint64_t bytes;

  SortSpace(void *base, uint64_t rows) {
    cub::DeviceRadixSort::SortPairs(
        nullptr, temporaryBytes, static_cast<const int32_t *>(nullptr),
        static_cast<int32_t *>(nullptr), static_cast<const uint32_t *>(nullptr),
        static_cast<uint32_t *>(nullptr), static_cast<int64_t>(rows));
    uint64_t list = roundUp(rows * sizeof(int32_t));
    auto *start = static_cast<std::byte *>(base);
    ids = reinterpret_cast<int32_t *>(start);
    rowsIn = reinterpret_cast<uint32_t *>(start + list);
    rowsOut = reinterpret_cast<uint32_t *>(start + 2 * list);
    temporary = start + 3 * list;
    bytes = 3 * list + roundUp(temporaryBytes);
  }
};

} // namespace

cudaError_t gtp::rt::cuda::embedding(const int32_t *ids, const Tensor &table,
                                     const Tensor &out, Fault *fault,
                                     cudaStream_t stream) {
  auto blocks = static_cast<unsigned>(out.rows < 65536 ? out.rows : 65536);
  const uint64_t bytes = bytesOf(out.type);
  auto launch = [&](auto piece) {
    using Piece = decltype(piece);
    auto pieces = [&](uint64_t elements) {
      return elements * bytes / sizeof(Piece);
    };
    embeddingKernel<Piece><<<blocks, kThreads, 0, stream>>>(
        ids, static_cast<const Piece *>(table.data), pieces(table.pitch),
        table.rows, static_cast<Piece *>(out.data), pieces(out.pitch), out.rows,
        pieces(out.columns), fault);
    return cudaGetLastError();
  };
  const auto width = static_cast<unsigned>(16 / bytes);
  if (out.columns % width == 0 && movesPacks(out, width) &&
      movesPacks(table, width))
    return launch(uint4());
  return launch(uint16_t());
}

uint64_t gtp::rt::cuda::embeddingGradWorkspace(uint64_t rows) {
  return SortSpace(nullptr, rows).bytes;
}

cudaError_t gtp::rt::cuda::embeddingGrad(const Tensor &dy, const int32_t *ids,
                                         const Tensor &dtable, void *workspace,
                                         uint64_t workspaceBytes, Fault *fault,
                                         cudaStream_t stream) {
  SortSpace space(workspace, dy.rows);
  if (space.bytes > workspaceBytes)
    return cudaErrorMemoryAllocation;
  auto rowBlocks = static_cast<unsigned>((dy.rows + 255) / 256);
  numberRows<<<rowBlocks, 256, 0, stream>>>(space.rowsIn, dy.rows);
  // Ids that are outside the table may come in any order.
  int bits = 1;
  while (bits < 32 && dtable.rows >> bits)
    ++bits;
  cudaError_t error = cub::DeviceRadixSort::SortPairs(
      space.temporary, space.temporaryBytes, ids, space.ids, space.rowsIn,
      space.rowsOut, static_cast<int64_t>(dy.rows), 0, bits, stream);
  if (error != cudaSuccess)
    return error;
  return withType(dy.type, [&](auto zero) {
    using T = decltype(zero);
    return withType(dtable.type, [&](auto result) {
      using G = decltype(result);
      if (!dtable.add) {
        cudaError_t cleared = cudaMemsetAsync(
            dtable.data, 0, dtable.elements() * sizeof(G), stream);
        if (cleared != cudaSuccess)
          return cleared;
      }
      constexpr unsigned kWidth = kWidthOf<T>;
      const bool wide = dy.columns % kWidth == 0 && movesPacks(dy, kWidth) &&
                        movesPacks(dtable, kWidth);
      const uint64_t taken = kThreads * (wide ? kWidth : 1);
      uint64_t parts = (dy.columns + taken - 1) / taken;
      dim3 blocks(static_cast<unsigned>(dy.rows < 65536 ? dy.rows : 65536),
                  static_cast<unsigned>(parts < 64 ? parts : 64));
      (wide ? sumIds<T, G, kWidth>
            : sumIds<T, G, 1>)<<<blocks, kThreads, 0, stream>>>(
          View<const T>(dy), space.ids, space.rowsOut, View<G>(dtable),
          dtable.rows, dy.rows, dy.columns, dtable.add, fault);
      return cudaGetLastError();
    });
  });
}

cudaError_t gtp::rt::cuda::addRows(const Tensor &x, const Tensor &table,
                                   const Tensor &y, const Positions &positions,
                                   cudaStream_t stream) {
  return withType(x.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    // Positions are of rows.
    Extent extent(x.rows, x.columns);
    return eachPack<kWidth>(AddRowsBody<T>(x, table, y, positions), extent,
                            movesPacks(x, kWidth) && movesPacks(y, kWidth) &&
                                movesPacks(table, kWidth),
                            1, stream);
  });
}

uint64_t gtp::rt::cuda::sumRowsWorkspace(uint64_t rows, uint64_t columns,
                                         uint64_t period) {
  return chunksOf(rows, period) * period * columns * sizeof(double);
}

cudaError_t gtp::rt::cuda::sumRows(const Tensor &dy, const Tensor &table,
                                   uint64_t period, double *workspace,
                                   cudaStream_t stream) {
  uint64_t chunks = chunksOf(dy.rows, period);
  cudaError_t error = withType(dy.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr unsigned kWidth = kWidthOf<T>;
    bool wide = dy.columns % kWidth == 0 && movesPacks(dy, kWidth);
    Grid grid(period, dy.columns / (wide ? kWidth : 1));
    grid.blocks.z = static_cast<unsigned>(chunks);
    (wide ? sumRowChunks<T, kWidth>
          : sumRowChunks<T, 1>)<<<grid.blocks, grid.threads, 0, stream>>>(
        View<const T>(dy), workspace, dy.rows, dy.columns, period);
    return cudaGetLastError();
  });
  if (error != cudaSuccess)
    return error;
  Grid finish(table.rows, table.columns);
  return withType(table.type, [&](auto zero) {
    using G = decltype(zero);
    if (table.rows == 1)
      return sumColumns(workspace, chunks, table.columns,
                        static_cast<G *>(table.data), table.add, stream);
    finishRows<G><<<finish.blocks, finish.threads, 0, stream>>>(
        workspace, chunks, View<G>(table), table.rows, table.columns, period,
        table.add);
    return cudaGetLastError();
  });
}

uint64_t gtp::rt::cuda::sumPositionsWorkspace(uint64_t rows) {
  return roundUp(rows * sizeof(int32_t)) + embeddingGradWorkspace(rows);
}

cudaError_t gtp::rt::cuda::sumPositions(const Tensor &dy, const Tensor &table,
                                        const Positions &positions,
                                        void *workspace,
                                        uint64_t workspaceBytes,
                                        cudaStream_t stream) {
  // As a table whose ids are positions.
  auto *ids = static_cast<int32_t *>(workspace);
  uint64_t taken = roundUp(dy.rows * sizeof(int32_t));
  if (taken > workspaceBytes)
    return cudaErrorMemoryAllocation;
  positionsKernel<<<static_cast<unsigned>((dy.rows + 255) / 256), 256, 0,
                    stream>>>(positions, ids, dy.rows);
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    return error;
  return embeddingGrad(dy, ids, table,
                       static_cast<std::byte *>(workspace) + taken,
                       workspaceBytes - taken, positions.fault, stream);
}
