//===- Launch.h - The CUDA kernels, as C++ calls --------------------------===//
//
// What the .cu files offer to the rest of the backend: each function launches
// on a stream and returns cudaGetLastError's value. Shapes and types are as the
// registry says and were checked at load. Every kernel is deterministic: sums
// have a fixed order, and there are no floating-point atomics.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_LAUNCH_H
#define GTP_RUNTIME_CUDA_LAUNCH_H

#include "AttentionShape.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

namespace gtp::rt::cuda {

enum class Element { F32, BF16, F64 };

/// Rows of the last dimension, in device memory.
struct Tensor {
  void *data = nullptr;
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t pitch = 0; ///< elements from one row to the next
  Element type = Element::F32;
  bool add = false; ///< results add to what is there

  uint64_t elements() const { return rows * columns; }
};

/// A mistake that only the device can see, in its memory. The first of a run
/// stays.
struct Fault {
  enum Kind : uint32_t { None, BadId, BadLabel, BadStart };
  uint32_t kind;
  int32_t value;
  uint64_t position;
  uint64_t limit; ///< rows of the table, or classes
};

/// Positions of rows [B, T]: the index along T, less `starts` of the row, where
/// its document starts, if there are any.
struct Positions {
  uint64_t length; ///< T
  const int32_t *starts = nullptr;
  Fault *fault = nullptr; ///< of a start that is no index up to its row's
};

//===-- Elementwise.cu ----------------------------------------------------===//

enum class Unary { Copy, GeluExact, GeluTanh, Softcap, Scale };
/// y = op(x), `factor` being Softcap's cap or Scale's factor; Copy converts
/// and adds.
cudaError_t unary(Unary op, const Tensor &x, const Tensor &y, float factor,
                  cudaStream_t stream);

/// sum = x + bias of each row; y = gelu of it as it is stored.
cudaError_t biasGelu(const Tensor &x, const void *bias, const Tensor &sum,
                     const Tensor &y, bool approximate, cudaStream_t stream);

enum class Binary { Mul, Swiglu, GeluExactGrad, GeluTanhGrad, SoftcapGrad };
/// y = op(a, b); for gradients a is dy and b is x.
cudaError_t binary(Binary op, const Tensor &a, const Tensor &b, const Tensor &y,
                   float factor, cudaStream_t stream);

cudaError_t swigluGrad(const Tensor &dy, const Tensor &gate, const Tensor &up,
                       const Tensor &dgate, const Tensor &dup,
                       cudaStream_t stream);

constexpr size_t kMostAddends = 1000;
/// out = (out.add ? out : 0) + inputs[0] + ..., in that order.
cudaError_t addAll(const Tensor *inputs, size_t count, const Tensor &out,
                   cudaStream_t stream);

/// Sets every element of rows of elements of 1, 2, 4 or 8 bytes to `pattern`'s
/// low bytes.
cudaError_t fillPattern(const Tensor &out, unsigned elementBytes,
                        uint64_t pattern, cudaStream_t stream);

/// `head` features a head, of which 2 * `half` turn; tables are [T, half].
cudaError_t rope(const Tensor &x, const Tensor &y, const float *cosines,
                 const float *sines, const Positions &positions, uint64_t head,
                 uint64_t half, bool inverse, cudaStream_t stream);

/// Of each row of tokens.
cudaError_t documentStarts(const int32_t *tokens, int32_t *starts,
                           uint64_t rows, uint64_t length, int32_t separator,
                           cudaStream_t stream);

//===-- Norm.cu -----------------------------------------------------------===//

struct NormShape {
  uint64_t group; ///< features a group
  float eps;
  float unitOffset; ///< added to weights
  bool centered;    ///< layer_norm
};
cudaError_t norm(const NormShape &shape, const Tensor &x, const void *weight,
                 const Tensor &y, cudaStream_t stream);
/// sum = a + b; y = the norm of it as it is stored.
cudaError_t addNorm(const NormShape &shape, const Tensor &a, const Tensor &b,
                    const void *weight, const Tensor &sum, const Tensor &y,
                    cudaStream_t stream);
/// Bytes of workspace of `normGrad`.
uint64_t normGradWorkspace(uint64_t group);
/// Whether a block's sums of `group` features fit the multiprocessor.
bool normGradFits(uint64_t group);
/// `dweight` without memory is not computed; `residual`, if it has memory, is
/// added to dx as that is stored.
cudaError_t normGrad(const NormShape &shape, const Tensor &dy, const Tensor &x,
                     const void *weight, const Tensor &residual,
                     const Tensor &dx, const Tensor &dweight, float *workspace,
                     cudaStream_t stream);

//===-- Embedding.cu ------------------------------------------------------===//

cudaError_t embedding(const int32_t *ids, const Tensor &table,
                      const Tensor &out, Fault *fault, cudaStream_t stream);
uint64_t embeddingGradWorkspace(uint64_t rows);
cudaError_t embeddingGrad(const Tensor &dy, const int32_t *ids,
                          const Tensor &dtable, void *workspace,
                          uint64_t workspaceBytes, Fault *fault,
                          cudaStream_t stream);

/// y = x + the row of table that the row's position names.
cudaError_t addRows(const Tensor &x, const Tensor &table, const Tensor &y,
                    const Positions &positions, cudaStream_t stream);
uint64_t sumRowsWorkspace(uint64_t rows, uint64_t columns, uint64_t period);
/// Row p < period of table is the sum of rows p, p + period, ... of dy, other
/// rows are 0, or stay if they add.
cudaError_t sumRows(const Tensor &dy, const Tensor &table, uint64_t period,
                    double *workspace, cudaStream_t stream);
uint64_t sumPositionsWorkspace(uint64_t rows);
/// Row p of table is the sum of rows of dy whose position is p, in their order,
/// other rows are 0, or stay if they add. For positions with starts.
cudaError_t sumPositions(const Tensor &dy, const Tensor &table,
                         const Positions &positions, void *workspace,
                         uint64_t workspaceBytes, cudaStream_t stream);

//===-- Loss.cu -----------------------------------------------------------===//

/// What a loss is the mean over.
struct Labels {
  const int32_t *data;
  const int64_t *count; ///< tokens or sequences that count, of all ranks
  uint64_t sequence;    ///< rows of a sequence whose mean counts; 0: tokens do
};
/// `workspace` holds a float a row.
cudaError_t crossEntropy(const Tensor &logits, const Labels &labels,
                         const Tensor &loss, float *workspace, Fault *fault,
                         cudaStream_t stream);
cudaError_t crossEntropyGrad(const Tensor &logits, const Labels &labels,
                             const float *dloss, const Tensor &dlogits,
                             Fault *fault, cudaStream_t stream);
/// The loss, and the gradient in the place of the logits.
cudaError_t crossEntropyInPlace(const Tensor &logits, const Labels &labels,
                                const float *dloss, const Tensor &loss,
                                float *workspace, Fault *fault,
                                cudaStream_t stream);
/// How many labels count, or if `sequence` is not 0 how many sequences of that
/// many labels have one that does.
cudaError_t countLabels(const int32_t *labels, uint64_t count,
                        uint64_t sequence, int64_t *out, cudaStream_t stream);

//===-- Optimizer.cu ------------------------------------------------------===//

/// Doubles of workspace of `sumSquares`.
constexpr uint64_t kSumSquaresBlocks = 1056;
cudaError_t sumSquares(const Tensor &x, double *out, double *workspace,
                       cudaStream_t stream);
cudaError_t clipScale(const double *sumsq, float *norm, float *scale,
                      float maxNorm, cudaStream_t stream);
/// What an update of weights reads and writes.
struct Update {
  Tensor master;                   ///< f32 or bf16
  int16_t *remainder = nullptr;    ///< of a master in two halves
  void *m = nullptr, *v = nullptr; ///< f32, or bf16 as the master
  Tensor grad;
  const float *hyper = nullptr, *scale = nullptr;
  bool decays = false;
  Tensor compute; ///< of an f32 master; without memory where there is none
};
cudaError_t adamw(const Update &update, cudaStream_t stream);
cudaError_t sgd(const Update &update, cudaStream_t stream);

//===-- Attention.cu ------------------------------------------------------===//

using rt::AttentionShape;
constexpr uint64_t kMostHeadFeatures = 256;
/// `starts` may be null.
cudaError_t attention(const AttentionShape &shape, const Tensor &q,
                      const Tensor &k, const Tensor &v, const Tensor &out,
                      float *lse, const int32_t *starts, cudaStream_t stream);
/// `workspace` holds a float for each of lse.
cudaError_t attentionGrad(const AttentionShape &shape, const Tensor &dout,
                          const Tensor &q, const Tensor &k, const Tensor &v,
                          const Tensor &out, const float *lse, const Tensor &dq,
                          const Tensor &dk, const Tensor &dv,
                          const int32_t *starts, float *workspace,
                          cudaStream_t stream);

//===-- Reduce.cu ---------------------------------------------------------===//

constexpr size_t kMostRanksOfAGroup = 64;
enum class Scalar { F32, F64, I64, BF16 };
struct Reduction {
  Scalar type;       ///< of the result, and of sources unless they are narrow
  Scalar wire;       ///< what contributions and their reduction are rounded to
  bool wide = false; ///< accumulated in f64
  bool maximum = false;
  bool narrow = false; ///< sources of a float32 result are bf16
};
/// out = (add ? out : 0) + the reduction of element i of all `sources`, in that
/// order; the addition is rounded by itself.
cudaError_t reduceInOrder(const Reduction &reduction,
                          const void *const *sources, size_t ranks,
                          uint64_t count, void *out, bool add,
                          cudaStream_t stream);
/// Rounds float32 to bf16, to nearest even.
cudaError_t roundToBf16(const void *from, uint64_t count, void *to,
                        cudaStream_t stream);

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_LAUNCH_H
