//===- KernelsAttention.cpp - attention and its gradient ------------------===//
//
// One (sequence, head) at a time, scores in the scratch operand, in blocks of
// query rows so that a causal mask skips most of the upper triangle.
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "Blas.h"
#include "Kernel.h"
#include "VectorMath.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::host;

namespace {

constexpr uint64_t kBlockRows = 64;

struct Geometry : AttentionShape {
  uint64_t group() const { return heads / kvHeads; }
  /// Query `row` sees keys [first(row), visible(row)). `starts` of documents
  /// may be null.
  uint64_t visible(uint64_t row) const { return causal ? row + 1 : length; }
  uint64_t first(uint64_t row, const int32_t *starts) const {
    uint64_t key = window && row >= window ? row + 1 - window : 0;
    return starts ? std::max(key, static_cast<uint64_t>(starts[row])) : key;
  }
  /// The first key that any of rows [begin, end) sees.
  uint64_t firstOf(uint64_t begin, uint64_t end, const int32_t *starts) const {
    uint64_t key = first(begin, starts);
    for (uint64_t row = begin + 1; starts && row < end; ++row)
      key = std::min(key, first(row, starts));
    return key;
  }
  /// Caps scores, softly.
  void cap(float *scores, uint64_t begin, uint64_t end) const {
    if (softcap > 0)
      for (uint64_t j = begin; j < end; ++j)
        scores[j] = softcap * std::tanh(scores[j] / softcap);
  }
};

/// Column `first` on of the rows of one sequence.
struct Panel {
  float *data;
  uint64_t pitch;

  Panel(const KernelCall &call, size_t operand, const Shape &shape,
        uint64_t firstRow, uint64_t firstColumn)
      : data(call.f32(operand) + firstRow * shape.pitch + firstColumn),
        pitch(shape.pitch) {}
  float *row(uint64_t index) const { return data + index * pitch; }
  Matrix from(uint64_t index, bool transposed = false) const {
    return {row(index), pitch, transposed};
  }
};

} // namespace

/// `squares` score matrices must fit the scratch operand.
static Status checkScratch(const KernelSite &site, size_t operand,
                           uint64_t length, uint64_t squares) {
  auto bytes = plan::checkedMul(length, length);
  if (bytes)
    bytes = plan::checkedMul(*bytes, squares * sizeof(float));
  if (bytes && site.shape(operand).elements() >= *bytes)
    return Status::ok();
  return Status::error(
      "operand " + site.text(operand) + " is too small: the host needs " +
      (bytes ? std::to_string(*bytes) : std::string("too many")) +
      " bytes for a sequence of " + std::to_string(length) +
      "; compile with --target=cpu");
}

static StatusOr<KernelBody> attention(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  GTP_RETURN_IF_ERROR(site.needBlasSizes());
  Geometry g{attentionShape(site, 0)};
  GTP_RETURN_IF_ERROR(checkScratch(site, 5, g.length, 1));
  return KernelBody([g, positions = site.positions(0, 6),
                     qShape = site.shape(0), kShape = site.shape(1),
                     vShape = site.shape(2),
                     outShape = site.shape(3)](const KernelCall &call) {
    GTP_RETURN_IF_ERROR(positions.check(call, qShape.rows));
    float *scores = call.f32(5);
    for (uint64_t index = 0; index < g.batch * g.heads; ++index) {
      uint64_t first = index / g.heads * g.length, h = index % g.heads;
      uint64_t kv = h / g.group();
      Panel q(call, 0, qShape, first, h * g.head);
      Panel k(call, 1, kShape, first, kv * g.head);
      Panel v(call, 2, vShape, first, kv * g.head);
      Panel out(call, 3, outShape, first, h * g.head);
      float *lse = call.f32(4) + index * g.length;
      const int32_t *starts = positions.startsOf(call, first);
      for (uint64_t begin = 0; begin < g.length; begin += kBlockRows) {
        uint64_t end = std::min(begin + kBlockRows, g.length);
        // Columns of the scores are keys from `left` on.
        uint64_t left = g.firstOf(begin, end, starts);
        uint64_t columns = g.visible(end - 1) - left;
        multiply(end - begin, columns, g.head, g.scale, q.from(begin),
                 k.from(left, true), false, scores, g.length);
        for (uint64_t row = begin; row < end; ++row) {
          float *line = scores + (row - begin) * g.length;
          uint64_t hidden = g.first(row, starts) - left;
          uint64_t visible = g.visible(row) - left - hidden;
          float *s = line + hidden;
          g.cap(s, 0, visible);
          float most = maximum(s, visible);
          for (uint64_t j = 0; j < visible; ++j)
            s[j] = fastExp(s[j] - most);
          double sum = sumOf(
              visible, [=](uint64_t j) { return static_cast<double>(s[j]); });
          auto inverse = static_cast<float>(1 / sum);
          for (uint64_t j = 0; j < visible; ++j)
            s[j] *= inverse;
          std::fill(line, s, 0.0f);
          std::fill(s + visible, line + columns, 0.0f);
          lse[row] = static_cast<float>(most + std::log(sum));
        }
        multiply(end - begin, g.head, columns, 1, {scores, g.length},
                 v.from(left), false, out.row(begin), out.pitch);
      }
    }
    return Status::ok();
  });
}

static void clear(const Panel &panel, uint64_t rows, uint64_t columns) {
  for (uint64_t row = 0; row < rows; ++row)
    std::memset(panel.row(row), 0, columns * sizeof(float));
}

namespace {
/// Operands of attention_grad.
enum Grad { DOut, Q, K, V, Out, Lse, DQ, DK, DV, Scratch, Starts };
} // namespace

static StatusOr<KernelBody> attentionGrad(const KernelSite &site) {
  GTP_RETURN_IF_ERROR(site.needFloat32());
  GTP_RETURN_IF_ERROR(site.needBlasSizes());
  Geometry g{attentionShape(site, Q)};
  GTP_RETURN_IF_ERROR(checkScratch(site, Scratch, g.length, 2));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < site.count(); ++i)
    shapes.push_back(site.shape(i));
  return KernelBody([g, shapes, positions = site.positions(Q, Starts)](
                        const KernelCall &call) {
    GTP_RETURN_IF_ERROR(positions.check(call, shapes[Q].rows));
    float *p = call.f32(Scratch), *ds = p + g.length * g.length;
    for (uint64_t index = 0; index < g.batch * g.heads; ++index) {
      uint64_t first = index / g.heads * g.length, h = index % g.heads;
      uint64_t kv = h / g.group();
      auto query = [&](Grad operand) {
        return Panel(call, operand, shapes[operand], first, h * g.head);
      };
      auto key = [&](Grad operand) {
        return Panel(call, operand, shapes[operand], first, kv * g.head);
      };
      Panel dout = query(DOut), q = query(Q), out = query(Out), dq = query(DQ);
      Panel k = key(K), v = key(V), dk = key(DK), dv = key(DV);
      const float *lse = call.f32(Lse) + index * g.length;
      const int32_t *starts = positions.startsOf(call, first);
      // The heads of a group add to one key head, the first after a clear.
      if (h % g.group() == 0) {
        clear(dk, g.length, g.head);
        clear(dv, g.length, g.head);
      }
      for (uint64_t begin = 0; begin < g.length; begin += kBlockRows) {
        uint64_t rows = std::min(kBlockRows, g.length - begin);
        uint64_t left = g.firstOf(begin, begin + rows, starts);
        uint64_t columns = g.visible(begin + rows - 1) - left;
        multiply(rows, columns, g.head, g.scale, q.from(begin),
                 k.from(left, true), false, p, g.length);
        multiply(rows, columns, g.head, 1, dout.from(begin), v.from(left, true),
                 false, ds, g.length);
        for (uint64_t i = 0; i < rows; ++i) {
          uint64_t row = begin + i, hidden = g.first(row, starts) - left;
          uint64_t visible = g.visible(row) - left;
          float *pRow = p + i * g.length, *dsRow = ds + i * g.length;
          auto inner =
              static_cast<float>(dot(dout.row(row), out.row(row), g.head));
          g.cap(pRow, hidden, visible);
          for (uint64_t j = hidden; j < visible; ++j) {
            float part = g.softcap > 0 ? pRow[j] / g.softcap : 0.0f;
            pRow[j] = fastExp(pRow[j] - lse[row]);
            dsRow[j] = pRow[j] * (dsRow[j] - inner) * (1.0f - part * part);
          }
          for (float *line : {pRow, dsRow}) {
            std::fill(line, line + hidden, 0.0f);
            std::fill(line + visible, line + columns, 0.0f);
          }
        }
        multiply(rows, g.head, columns, g.scale, {ds, g.length}, k.from(left),
                 false, dq.row(begin), dq.pitch);
        multiply(columns, g.head, rows, g.scale, {ds, g.length, true},
                 q.from(begin), true, dk.row(left), dk.pitch);
        multiply(columns, g.head, rows, 1, {p, g.length, true},
                 dout.from(begin), true, dv.row(left), dv.pitch);
      }
    }
    return Status::ok();
  });
}

const std::vector<KernelEntry> &gtp::rt::host::attentionKernels() {
  static const std::vector<KernelEntry> table = {
      {"attention", attention},
      {"attention_grad", attentionGrad},
  };
  return table;
}
