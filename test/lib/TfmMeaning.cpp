//===- TfmMeaning.cpp - What one tfm op computes, in float64 --------------===//

#include "TfmMeaning.h"

#include <cmath>

using namespace mlir;
using namespace gtp::tfm;
using namespace gtp::test;

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

Tensors gtp::test::meaning(EmbeddingOp op, Operands in) {
  Tensors out = zeros(op);
  for (auto [position, id] : llvm::enumerate(in[0]->values))
    std::copy_n(in[1]->row(id), in[1]->last(), out[0].row(position));
  return out;
}

Tensors gtp::test::meaning(AddBiasOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < out[0].values.size(); ++i)
    out[0].values[i] = in[0]->values[i] + in[1]->values[i % in[1]->last()];
  return out;
}

Tensors gtp::test::meaning(DocumentStartsOp op, Operands in) {
  Tensors out = zeros(op);
  int64_t length = in[0]->last();
  for (int64_t i = 0, end = out[0].values.size(); i < end; ++i) {
    int64_t t = i % length;
    bool first = t == 0 || in[0]->values[i - 1] == op.getSeparator();
    out[0].values[i] = first ? t : out[0].values[i - 1];
  }
  return out;
}

/// The position of row `row` of x, `[.., T, H]`: along the sequence, or from
/// the start of its document if the operand `starts` is there.
static int64_t positionOf(const Tensor &x, int64_t row, Operands in,
                          size_t starts) {
  int64_t index = row % x.shape[x.shape.size() - 2];
  return starts < in.size() ? index - int64_t(in[starts]->values[row]) : index;
}

Tensors gtp::test::meaning(AddPositionsOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &x = *in[0];
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t i = 0; i < x.last(); ++i)
      out[0].row(r)[i] = x.row(r)[i] + in[1]->row(positionOf(x, r, in, 2))[i];
  return out;
}

Tensors gtp::test::meaning(LinearOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &x = *in[0], &w = *in[1];
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t n = 0; n < w.rows(); ++n)
      for (int64_t k = 0; k < w.last(); ++k)
        out[0].row(r)[n] += x.row(r)[k] * w.row(n)[k];
  return out;
}

Tensors gtp::test::meaning(RopeOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &x = *in[0];
  int64_t size = op.getHeadDim(), half = op.getFrequencies().size();
  int64_t heads = x.last() / size;
  forEachGroup(x, size, [&](const double *head, int64_t group) {
    int64_t position = positionOf(x, group / heads, in, 1);
    double *result = out[0].values.data() + group * size;
    for (int64_t i = 0; i < half; ++i) {
      double angle = position * op.getFrequencies()[i];
      if (op.getInverse())
        angle = -angle;
      double c = std::cos(angle), s = std::sin(angle);
      result[i] = head[i] * c - head[i + half] * s;
      result[i + half] = head[i + half] * c + head[i] * s;
    }
    std::copy(head + 2 * half, head + size, result + 2 * half);
  });
  return out;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Tensors gtp::test::meaning(SwigluOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < out[0].values.size(); ++i) {
    double gate = in[0]->values[i];
    out[0].values[i] = gate * sigmoid(gate) * in[1]->values[i];
  }
  return out;
}

static constexpr double kRootTwoOverPi = 0.79788456080286535588;
static constexpr double kCubic = 0.044715;

/// Φ(x) or its approximation.
static double gaussian(double x, bool approximate) {
  if (approximate)
    return (1 + std::tanh(kRootTwoOverPi * (x + kCubic * x * x * x))) / 2;
  return (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

/// Its derivative.
static double gaussianSlope(double x, bool approximate) {
  if (!approximate)
    return std::exp(-x * x / 2) * kRootTwoOverPi / 2;
  double t = std::tanh(kRootTwoOverPi * (x + kCubic * x * x * x));
  return (1 - t * t) / 2 * kRootTwoOverPi * (1 + 3 * kCubic * x * x);
}

/// f(element of each operand ...) for all elements.
template <typename F>
static Tensors elementwise(Operation *op, Operands in, F f) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < out[0].values.size(); ++i)
    out[0].values[i] = f(in[0]->values[i], in.back()->values[i]);
  return out;
}

Tensors gtp::test::meaning(GeluOp op, Operands in) {
  return elementwise(op, in, [&](double x, double) {
    return x * gaussian(x, op.getApproximate());
  });
}

Tensors gtp::test::meaning(GeluGradOp op, Operands in) {
  bool approximate = op.getApproximate();
  return elementwise(op, in, [&](double dy, double x) {
    return dy * (gaussian(x, approximate) + x * gaussianSlope(x, approximate));
  });
}

Tensors gtp::test::meaning(SoftcapOp op, Operands in) {
  double cap = op.getCap().convertToDouble();
  return elementwise(
      op, in, [&](double x, double) { return cap * std::tanh(x / cap); });
}

Tensors gtp::test::meaning(SoftcapGradOp op, Operands in) {
  double cap = op.getCap().convertToDouble();
  return elementwise(op, in, [&](double dy, double x) {
    double t = std::tanh(x / cap);
    return dy * (1 - t * t);
  });
}

Tensors gtp::test::meaning(ScaleOp op, Operands in) {
  double factor = op.getFactor().convertToDouble();
  return elementwise(op, in, [&](double x, double) { return factor * x; });
}

Tensors gtp::test::meaning(MulOp op, Operands in) {
  return elementwise(op, in, [](double a, double b) { return a * b; });
}

Tensors gtp::test::meaning(AddOp op, Operands in) {
  Tensors out = zeros(op);
  for (const Tensor *input : in)
    for (size_t i = 0; i < input->values.size(); ++i)
      out[0].values[i] += input->values[i];
  return out;
}

Tensors gtp::test::meaning(SplitOp op, Operands in) {
  Tensors out = zeros(op);
  for (int64_t r = 0; r < in[0]->rows(); ++r) {
    const double *next = in[0]->row(r);
    for (Tensor &piece : out) {
      std::copy_n(next, piece.last(), piece.row(r));
      next += piece.last();
    }
  }
  return out;
}

Tensors gtp::test::meaning(ConcatOp op, Operands in) {
  Tensors out = zeros(op);
  for (int64_t r = 0; r < out[0].rows(); ++r) {
    double *next = out[0].row(r);
    for (const Tensor *piece : in)
      next = std::copy_n(piece->row(r), piece->last(), next);
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Training step
//===----------------------------------------------------------------------===//

Tensors gtp::test::meaning(EmbeddingGradOp op, Operands in) {
  Tensors out = zeros(op);
  for (auto [position, id] : llvm::enumerate(in[1]->values))
    for (int64_t i = 0; i < in[0]->last(); ++i)
      out[0].row(id)[i] += in[0]->row(position)[i];
  return out;
}

Tensors gtp::test::meaning(BiasGradOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < in[0]->values.size(); ++i)
    out[0].values[i % out[0].values.size()] += in[0]->values[i];
  return out;
}

Tensors gtp::test::meaning(PositionsGradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t i = 0; i < dy.last(); ++i)
      out[0].row(positionOf(dy, r, in, 1))[i] += dy.row(r)[i];
  return out;
}

Tensors gtp::test::meaning(LinearDgradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0], &w = *in[1];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < w.rows(); ++n)
      for (int64_t k = 0; k < w.last(); ++k)
        out[0].row(r)[k] += dy.row(r)[n] * w.row(n)[k];
  return out;
}

Tensors gtp::test::meaning(LinearWgradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0], &x = *in[1];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < dy.last(); ++n)
      for (int64_t k = 0; k < x.last(); ++k)
        out[0].row(n)[k] += dy.row(r)[n] * x.row(r)[k];
  return out;
}

Tensors gtp::test::meaning(SwigluGradOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < out[0].values.size(); ++i) {
    double dy = in[0]->values[i], gate = in[1]->values[i];
    double s = sigmoid(gate);
    out[0].values[i] = dy * in[2]->values[i] * s * (1 + gate * (1 - s));
    out[1].values[i] = dy * gate * s;
  }
  return out;
}
