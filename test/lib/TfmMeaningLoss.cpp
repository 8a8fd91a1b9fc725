//===- TfmMeaningLoss.cpp - Loss, clipping and optimizers in float64 ------===//

#include "TfmMeaning.h"

#include <cmath>

using namespace mlir;
using namespace gtp::tfm;
using namespace gtp::test;

/// A label that is counted.
static bool counts(double label) { return label != -100; }

static double logSumExp(const double *logits, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += std::exp(logits[i]);
  return std::log(sum);
}

/// By what the term of a row is divided: 1, or the counted labels of its
/// sequence.
static double labelsBeside(const Tensor &labels, int64_t row, bool sequence) {
  const double *first = labels.row(row / labels.last());
  return sequence ? double(std::count_if(first, first + labels.last(), counts))
                  : 1.0;
}

Tensors gtp::test::meaning(CrossEntropyOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &logits = *in[0];
  for (auto [row, label] : llvm::enumerate(in[1]->values))
    if (counts(label))
      out[0].values[0] += (logSumExp(logits.row(row), logits.last()) -
                           logits.row(row)[static_cast<int64_t>(label)]) /
                          labelsBeside(*in[1], row, op.getSequenceMean());
  out[0].values[0] /= std::max(1.0, in[2]->values[0]);
  return out;
}

Tensors gtp::test::meaning(CrossEntropyGradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &logits = *in[0];
  double scale = in[3]->values[0] / std::max(1.0, in[2]->values[0]);
  for (auto [row, label] : llvm::enumerate(in[1]->values)) {
    if (!counts(label))
      continue;
    double lse = logSumExp(logits.row(row), logits.last());
    for (int64_t i = 0; i < logits.last(); ++i)
      out[0].row(row)[i] =
          scale * (std::exp(logits.row(row)[i] - lse) - (i == label ? 1 : 0)) /
          labelsBeside(*in[1], row, op.getSequenceMean());
  }
  return out;
}

Tensors gtp::test::meaning(CountLabelsOp op, Operands in) {
  const Tensor &labels = *in[0];
  int64_t size = labels.values.size(), count = 0;
  int64_t group = op.getSequences() ? labels.last() : 1;
  for (int64_t row = 0; row < size; row += group)
    count +=
        std::any_of(&labels.values[row], &labels.values[row] + group, counts);
  return {Tensor({}, double(count))};
}

Tensors gtp::test::meaning(SumSquaresOp op, Operands in) {
  Tensors out = zeros(op);
  for (double value : in[0]->values)
    out[0].values[0] += value * value;
  return out;
}

Tensors gtp::test::meaning(ClipScaleOp op, Operands in) {
  Tensors out = zeros(op);
  double norm = std::sqrt(in[0]->values[0]);
  double limit = op.getMaxNorm().convertToDouble();
  out[0].values[0] = norm;
  out[1].values[0] = limit == 0 ? 1 : std::min(1.0, limit / (norm + 1e-6));
  return out;
}

Tensors gtp::test::meaning(AdamwOp op, Operands in) {
  Tensors out = zeros(op);
  const std::vector<double> &hyper = in[4]->values;
  for (size_t i = 0; i < in[0]->values.size(); ++i) {
    double w = in[0]->values[i], g = in[5]->values[0] * in[3]->values[i];
    double m = hyper[2] * in[1]->values[i] + (1 - hyper[2]) * g;
    double v = hyper[3] * in[2]->values[i] + (1 - hyper[3]) * g * g;
    double update = m / hyper[5] / (std::sqrt(v / hyper[6]) + hyper[4]);
    if (op.getDecay())
      update += hyper[1] * w;
    out[0].values[i] = w - hyper[0] * update;
    out[1].values[i] = m;
    out[2].values[i] = v;
    if (op.getCompute())
      out[3].values[i] = out[0].values[i];
  }
  return out;
}

Tensors gtp::test::meaning(SgdOp op, Operands in) {
  Tensors out = zeros(op);
  const std::vector<double> &hyper = in[2]->values;
  for (size_t i = 0; i < in[0]->values.size(); ++i) {
    double w = in[0]->values[i];
    double update = in[3]->values[0] * in[1]->values[i];
    if (op.getDecay())
      update += hyper[1] * w;
    out[0].values[i] = w - hyper[0] * update;
    if (op.getCompute())
      out[1].values[i] = out[0].values[i];
  }
  return out;
}
