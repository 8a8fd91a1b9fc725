//===- Attention.cu - Attention without a library -------------------------===//
//
// For float32, and for what cuDNN refuses. A warp owns one row of the result, a
// query in `attention` and dq, a key in dk and dv; it walks the other side in
// tiles of 32 that its block shares: a lane has one element of the tile while
// scores are made, and some features of the row while they are used. No score
// reaches memory and nothing is added atomically.
//
//===----------------------------------------------------------------------===//

#include "Device.cuh"

using namespace gtp::rt::cuda;

namespace {

constexpr unsigned kWarps = 8;
constexpr unsigned kTile = 32;

/// Rows [begin, begin + 32) of one head, padded so that lanes that read one
/// feature of different rows meet no bank twice. Rows at or behind `end` are 0.
template <typename T>
__device__ void loadTile(float *tile, View<T> from, uint64_t firstRow,
                         uint64_t firstColumn, uint64_t begin, uint64_t end,
                         unsigned head) {
  for (unsigned i = threadIdx.x; i < kTile * head; i += kWarps * 32) {
    unsigned row = i / head, column = i % head;
    tile[row * (head + 1) + column] =
        begin + row < end
            ? toFloat(from.row(firstRow + begin + row)[firstColumn + column])
            : 0.0f;
  }
}

/// Features lane, lane + 32, ... of a row.
template <unsigned kParts, typename T>
__device__ void loadRow(float *row, const T *from, unsigned head) {
  for (unsigned part = 0; part < kParts; ++part) {
    unsigned column = part * 32 + threadIdx.x % 32;
    row[part] = column < head ? toFloat(from[column]) : 0.0f;
  }
}

template <unsigned kParts, typename T>
__device__ void storeRow(T *to, const float *row, float factor, unsigned head) {
  for (unsigned part = 0; part < kParts; ++part) {
    unsigned column = part * 32 + threadIdx.x % 32;
    if (column < head)
      to[column] = fromFloat<T>(row[part] * factor);
  }
}

/// The dot product of a row that the warp's lanes hold and row `lane` of a
/// tile.
__device__ float dotTile(const float *shared, const float *tile,
                         unsigned head) {
  const float *other = tile + (threadIdx.x % 32) * (head + 1);
  float sum = 0;
  for (unsigned i = 0; i < head; ++i)
    sum += shared[i] * other[i];
  return sum;
}

/// row += sum over the tile of weight (a lane's own) * tile row.
template <unsigned kParts>
__device__ void addTile(float *row, float weight, const float *tile,
                        unsigned head) {
  for (unsigned j = 0; j < kTile; ++j) {
    float w = __shfl_sync(~0u, weight, j);
    for (unsigned part = 0; part < kParts; ++part) {
      unsigned column = part * 32 + threadIdx.x % 32;
      if (column < head)
        row[part] += w * tile[j * (head + 1) + column];
    }
  }
}

__device__ float warpSum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(~0u, value, offset);
  return value;
}
__device__ float warpMaximum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(~0u, value, offset));
  return value;
}

/// A score from a dot product; `slope` is what the cap multiplies a gradient
/// by.
struct Score {
  float value, slope;
  __device__ Score(const AttentionShape &s, float dot) : slope(1) {
    value = s.scale * dot;
    if (s.softcap > 0) {
      float t = tanhf(value / s.softcap);
      value = s.softcap * t;
      slope = 1 - t * t;
    }
  }
};

/// `starts` of the sequence's documents may be null.
__device__ bool sees(const AttentionShape &s, const int32_t *starts,
                     uint64_t query, uint64_t key) {
  return query < s.length && key < s.length && (!s.causal || key <= query) &&
         (s.window == 0 || key + s.window > query) &&
         (!starts || static_cast<int64_t>(key) >= starts[query]);
}
/// Keys [first, last) are all that kWarps queries from `begin` on can see.
__device__ uint64_t firstKey(const AttentionShape &s, const int32_t *starts,
                             uint64_t begin) {
  uint64_t key = s.window && begin >= s.window ? begin + 1 - s.window : 0;
  if (!starts)
    return key;
  int64_t least = static_cast<int64_t>(begin);
  for (uint64_t i = begin; i < begin + kWarps && i < s.length; ++i)
    least = min(least, static_cast<int64_t>(starts[i]));
  return max(key, static_cast<uint64_t>(max(least, int64_t(0))));
}
__device__ uint64_t lastKey(const AttentionShape &s, uint64_t end) {
  return s.causal && end < s.length ? end : s.length;
}

/// Which rows a block has: kWarps of one (sequence, head).
struct Place {
  uint64_t head, batch, begin, row;
  unsigned warp;

  __device__ Place(uint64_t heads) {
    head = blockIdx.y % heads;
    batch = blockIdx.y / heads;
    warp = threadIdx.x / 32;
    begin = uint64_t(blockIdx.x) * kWarps;
    row = begin + warp;
  }
};

template <unsigned kParts, typename T>
__global__ void __launch_bounds__(kWarps * 32)
    forwardKernel(AttentionShape s, View<const T> q, View<const T> k,
                  View<const T> v, View<T> out, float *lse,
                  const int32_t *starts) {
  extern __shared__ float shared[];
  const auto head = static_cast<unsigned>(s.head);
  float *keys = shared, *values = keys + kTile * (head + 1);
  float *queries = values + kTile * (head + 1);
  Place p(s.heads);
  const uint64_t first = p.batch * s.length;
  if (starts)
    starts += first;
  const uint64_t kvColumn = p.head / (s.heads / s.kvHeads) * head;
  const bool active = p.row < s.length;
  float *query = queries + p.warp * head;
  for (unsigned i = threadIdx.x % 32; i < head; i += 32)
    query[i] = active ? toFloat(q.row(first + p.row)[p.head * head + i]) : 0;

  float result[kParts] = {}, most = -INFINITY, sum = 0;
  const uint64_t end = lastKey(s, p.begin + kWarps);
  for (uint64_t tile = firstKey(s, starts, p.begin) / kTile * kTile; tile < end;
       tile += kTile) {
    __syncthreads();
    loadTile(keys, k, first, kvColumn, tile, s.length, head);
    loadTile(values, v, first, kvColumn, tile, s.length, head);
    __syncthreads();
    bool visible = sees(s, starts, p.row, tile + threadIdx.x % 32);
    float score =
        visible ? Score(s, dotTile(query, keys, head)).value : -INFINITY;
    float next = fmaxf(most, warpMaximum(score));
    // Nothing visible yet: there is nothing to scale, and inf - inf is NaN.
    float scale = most == -INFINITY ? 0.0f : expf(most - next);
    float weight = visible ? expf(score - next) : 0.0f;
    sum = sum * scale + warpSum(weight);
    for (unsigned part = 0; part < kParts; ++part)
      result[part] *= scale;
    addTile<kParts>(result, weight, values, head);
    most = next;
  }
  if (!active)
    return;
  storeRow<kParts>(out.row(first + p.row) + p.head * head, result, 1 / sum,
                   head);
  if (threadIdx.x % 32 == 0)
    lse[(p.batch * s.heads + p.head) * s.length + p.row] = most + logf(sum);
}

/// dout . out of every query.
template <typename T>
__global__ void innerKernel(AttentionShape s, View<const T> dout,
                            View<const T> out, float *inner) {
  Place p(s.heads);
  if (p.row >= s.length)
    return;
  const T *a = dout.row(p.batch * s.length + p.row) + p.head * s.head;
  const T *b = out.row(p.batch * s.length + p.row) + p.head * s.head;
  float sum = 0;
  for (unsigned i = threadIdx.x % 32; i < s.head; i += 32)
    sum += toFloat(a[i]) * toFloat(b[i]);
  sum = warpSum(sum);
  if (threadIdx.x % 32 == 0)
    inner[(p.batch * s.heads + p.head) * s.length + p.row] = sum;
}

template <unsigned kParts, typename T>
__global__ void __launch_bounds__(kWarps * 32)
    queryGradKernel(AttentionShape s, View<const T> dout, View<const T> q,
                    View<const T> k, View<const T> v, const float *lse,
                    const float *inner, View<T> dq, const int32_t *starts) {
  extern __shared__ float shared[];
  const auto head = static_cast<unsigned>(s.head);
  float *keys = shared, *values = keys + kTile * (head + 1);
  float *query = values + kTile * (head + 1) + threadIdx.x / 32 * 2 * head;
  float *grad = query + head;
  Place p(s.heads);
  const uint64_t first = p.batch * s.length;
  if (starts)
    starts += first;
  const uint64_t kvColumn = p.head / (s.heads / s.kvHeads) * head;
  const bool active = p.row < s.length;
  for (unsigned i = threadIdx.x % 32; i < head; i += 32) {
    uint64_t column = p.head * head + i;
    query[i] = active ? toFloat(q.row(first + p.row)[column]) : 0;
    grad[i] = active ? toFloat(dout.row(first + p.row)[column]) : 0;
  }
  const uint64_t at = (p.batch * s.heads + p.head) * s.length + p.row;
  const float norm = active ? lse[at] : 0, dot = active ? inner[at] : 0;

  float result[kParts] = {};
  const uint64_t end = lastKey(s, p.begin + kWarps);
  for (uint64_t tile = firstKey(s, starts, p.begin) / kTile * kTile; tile < end;
       tile += kTile) {
    __syncthreads();
    loadTile(keys, k, first, kvColumn, tile, s.length, head);
    loadTile(values, v, first, kvColumn, tile, s.length, head);
    __syncthreads();
    float weight = 0;
    Score score(s, dotTile(query, keys, head));
    float product = dotTile(grad, values, head);
    if (sees(s, starts, p.row, tile + threadIdx.x % 32))
      weight = expf(score.value - norm) * (product - dot) * score.slope;
    addTile<kParts>(result, weight, keys, head);
  }
  if (active)
    storeRow<kParts>(dq.row(first + p.row) + p.head * head, result, s.scale,
                     head);
}

template <unsigned kParts, typename T>
__global__ void __launch_bounds__(kWarps * 32)
    keyGradKernel(AttentionShape s, View<const T> dout, View<const T> q,
                  View<const T> k, View<const T> v, const float *lse,
                  const float *inner, View<T> dk, View<T> dv,
                  const int32_t *starts) {
  extern __shared__ float shared[];
  const auto head = static_cast<unsigned>(s.head);
  float *queries = shared, *grads = queries + kTile * (head + 1);
  float *key = grads + kTile * (head + 1) + threadIdx.x / 32 * 2 * head;
  float *value = key + head;
  Place p(s.kvHeads);
  const uint64_t first = p.batch * s.length, column = p.head * head;
  if (starts)
    starts += first;
  const bool active = p.row < s.length;
  for (unsigned i = threadIdx.x % 32; i < head; i += 32) {
    key[i] = active ? toFloat(k.row(first + p.row)[column + i]) : 0;
    value[i] = active ? toFloat(v.row(first + p.row)[column + i]) : 0;
  }

  float keyGrad[kParts] = {}, valueGrad[kParts] = {};
  const uint64_t group = s.heads / s.kvHeads;
  // Queries that can see the block's keys.
  const uint64_t begin = s.causal ? p.begin / kTile * kTile : 0;
  uint64_t end = s.length;
  if (s.window && p.begin + kWarps + s.window < end)
    end = p.begin + kWarps + s.window;
  for (uint64_t h = p.head * group; h < (p.head + 1) * group; ++h) {
    for (uint64_t tile = begin; tile < end; tile += kTile) {
      __syncthreads();
      loadTile(queries, q, first, h * head, tile, s.length, head);
      loadTile(grads, dout, first, h * head, tile, s.length, head);
      __syncthreads();
      const uint64_t query = tile + threadIdx.x % 32;
      const uint64_t at = (p.batch * s.heads + h) * s.length + query;
      float weight = 0, slope = 0;
      Score score(s, dotTile(key, queries, head));
      float product = dotTile(value, grads, head);
      if (active && sees(s, starts, query, p.row)) {
        weight = expf(score.value - lse[at]);
        slope = weight * (product - inner[at]) * score.slope;
      }
      addTile<kParts>(valueGrad, weight, grads, head);
      addTile<kParts>(keyGrad, slope, queries, head);
    }
  }
  if (!active)
    return;
  storeRow<kParts>(dk.row(first + p.row) + column, keyGrad, s.scale, head);
  storeRow<kParts>(dv.row(first + p.row) + column, valueGrad, 1, head);
}

/// Calls f with the number of a lane's features as a constant.
template <typename F>
cudaError_t withParts(uint64_t head, F f) {
  if (head <= 32)
    return f(std::integral_constant<unsigned, 1>());
  if (head <= 64)
    return f(std::integral_constant<unsigned, 2>());
  if (head <= 128)
    return f(std::integral_constant<unsigned, 4>());
  if (head <= kMostHeadFeatures)
    return f(std::integral_constant<unsigned, 8>());
  return cudaErrorInvalidValue;
}

template <typename Kernel, typename... Arguments>
cudaError_t launch(Kernel kernel, const AttentionShape &s, uint64_t heads,
                   unsigned rowsAWarp, cudaStream_t stream,
                   Arguments... arguments) {
  size_t bytes =
      sizeof(float) * (2 * kTile * (s.head + 1) + kWarps * rowsAWarp * s.head);
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes));
  if (error != cudaSuccess)
    return error;
  dim3 blocks(static_cast<unsigned>((s.length + kWarps - 1) / kWarps),
              static_cast<unsigned>(s.batch * heads));
  kernel<<<blocks, kWarps * 32, bytes, stream>>>(s, arguments...);
  return cudaGetLastError();
}

} // namespace

cudaError_t gtp::rt::cuda::attention(const AttentionShape &s, const Tensor &q,
                                     const Tensor &k, const Tensor &v,
                                     const Tensor &out, float *lse,
                                     const int32_t *starts,
                                     cudaStream_t stream) {
  return withType(q.type, [&](auto zero) {
    using T = decltype(zero);
    return withParts(s.head, [&](auto parts) {
      return launch(forwardKernel<parts(), T>, s, s.heads, 1, stream,
                    View<const T>(q), View<const T>(k), View<const T>(v),
                    View<T>(out), lse, starts);
    });
  });
}

cudaError_t gtp::rt::cuda::attentionGrad(
    const AttentionShape &s, const Tensor &dout, const Tensor &q,
    const Tensor &k, const Tensor &v, const Tensor &out, const float *lse,
    const Tensor &dq, const Tensor &dk, const Tensor &dv, const int32_t *starts,
    float *workspace, cudaStream_t stream) {
  return withType(q.type, [&](auto zero) {
    using T = decltype(zero);
    cudaError_t error =
        launch(innerKernel<T>, s, s.heads, 0, stream, View<const T>(dout),
               View<const T>(out), workspace);
    if (error != cudaSuccess)
      return error;
    return withParts(s.head, [&](auto parts) {
      cudaError_t queries =
          launch(queryGradKernel<parts(), T>, s, s.heads, 2, stream,
                 View<const T>(dout), View<const T>(q), View<const T>(k),
                 View<const T>(v), lse, workspace, View<T>(dq), starts);
      if (queries != cudaSuccess)
        return queries;
      return launch(keyGradKernel<parts(), T>, s, s.kvHeads, 2, stream,
                    View<const T>(dout), View<const T>(q), View<const T>(k),
                    View<const T>(v), lse, workspace, View<T>(dk), View<T>(dv),
                    starts);
    });
  });
}
