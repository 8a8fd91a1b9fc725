//===- TfmMeaningNorms.cpp - Norms and their gradients in float64 ---------===//

#include "TfmMeaning.h"

#include <cmath>

using namespace mlir;
using namespace gtp::tfm;
using namespace gtp::test;

static double inverseRms(const double *x, int64_t size, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < size; ++i)
    squares += x[i] * x[i];
  return 1 / std::sqrt(squares / size + eps);
}

Tensors gtp::test::meaning(RmsNormOp op, Operands in) {
  Tensors out = zeros(op);
  double eps = op.getEps().convertToDouble();
  const Tensor &weight = *in[1];
  double offset = op.getUnitOffset() ? 1 : 0;
  int64_t size = weight.last();
  forEachGroup(*in[0], size, [&](const double *x, int64_t group) {
    double scale = inverseRms(x, size, eps);
    for (int64_t i = 0; i < size; ++i)
      out[0].values[group * size + i] =
          x[i] * scale * (offset + weight.values[i]);
  });
  return out;
}

namespace {
struct Moments {
  Moments(const double *x, int64_t size, double eps) {
    double variance = 0;
    for (int64_t i = 0; i < size; ++i)
      mean += x[i] / size;
    for (int64_t i = 0; i < size; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / size;
    scale = 1 / std::sqrt(variance + eps);
  }
  double mean = 0, scale;
};
} // namespace

Tensors gtp::test::meaning(LayerNormOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &weight = *in[1];
  int64_t size = weight.last();
  forEachGroup(*in[0], size, [&](const double *x, int64_t group) {
    Moments moments(x, size, op.getEps().convertToDouble());
    for (int64_t i = 0; i < size; ++i)
      out[0].values[group * size + i] =
          (x[i] - moments.mean) * moments.scale * weight.values[i];
  });
  return out;
}

Tensors gtp::test::meaning(RmsNormGradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0], &weight = *in[2];
  double eps = op.getEps().convertToDouble();
  double offset = op.getUnitOffset() ? 1 : 0;
  int64_t size = weight.last();
  forEachGroup(*in[1], size, [&](const double *x, int64_t group) {
    double scale = inverseRms(x, size, eps), dot = 0;
    const double *grad = dy.values.data() + group * size;
    for (int64_t i = 0; i < size; ++i)
      dot += grad[i] * (offset + weight.values[i]) * x[i] * scale;
    for (int64_t i = 0; i < size; ++i) {
      out[0].values[group * size + i] =
          scale *
          (grad[i] * (offset + weight.values[i]) - x[i] * scale * dot / size);
      if (op.getDweight())
        out[1].values[i] += grad[i] * x[i] * scale;
    }
  });
  return out;
}

Tensors gtp::test::meaning(LayerNormGradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0], &weight = *in[2];
  int64_t size = weight.last();
  forEachGroup(*in[1], size, [&](const double *x, int64_t group) {
    Moments moments(x, size, op.getEps().convertToDouble());
    const double *grad = dy.values.data() + group * size;
    double mean = 0, dot = 0;
    auto normed = [&](int64_t i) {
      return (x[i] - moments.mean) * moments.scale;
    };
    for (int64_t i = 0; i < size; ++i) {
      mean += grad[i] * weight.values[i] / size;
      dot += grad[i] * weight.values[i] * normed(i) / size;
    }
    for (int64_t i = 0; i < size; ++i) {
      out[0].values[group * size + i] =
          moments.scale * (grad[i] * weight.values[i] - mean - normed(i) * dot);
      if (op.getDweight())
        out[1].values[i] += grad[i] * normed(i);
    }
  });
  return out;
}
