//===- TfmInterpreter.cpp - tfm programs in float64 -----------------------===//

#include "TfmInterpreter.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace gtp::tfm;
using namespace gtp::test;

using Tensors = SmallVector<Tensor>;
using Operands = ArrayRef<const Tensor *>;

int64_t Tensor::elementCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Zeros of the types of the op's results.
static Tensors zeros(Operation *op) {
  Tensors results;
  for (Value result : op->getResults())
    results.emplace_back(result);
  return results;
}

/// A label that is counted.
static bool counts(double label) { return label != -100; }

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

static Tensors embedding(EmbeddingOp op, Operands in) {
  Tensors out = zeros(op);
  for (auto [position, id] : llvm::enumerate(in[0]->values))
    std::copy_n(in[1]->row(id), in[1]->last(), out[0].row(position));
  return out;
}

/// `f(group of x, index of the group)` for groups of `size` features.
template <typename F>
static void forEachGroup(const Tensor &x, int64_t size, F f) {
  for (int64_t i = 0, end = x.values.size() / size; i < end; ++i)
    f(x.values.data() + i * size, i);
}

static double inverseRms(const double *x, int64_t size, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < size; ++i)
    squares += x[i] * x[i];
  return 1 / std::sqrt(squares / size + eps);
}

static Tensors rmsNorm(RmsNormOp op, Operands in) {
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

static Tensors layerNorm(LayerNormOp op, Operands in) {
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

static Tensors addBias(AddBiasOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < out[0].values.size(); ++i)
    out[0].values[i] = in[0]->values[i] + in[1]->values[i % in[1]->last()];
  return out;
}

static Tensors documentStarts(DocumentStartsOp op, Operands in) {
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

static Tensors addPositions(AddPositionsOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &x = *in[0];
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t i = 0; i < x.last(); ++i)
      out[0].row(r)[i] = x.row(r)[i] + in[1]->row(positionOf(x, r, in, 2))[i];
  return out;
}

static Tensors linear(LinearOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &x = *in[0], &w = *in[1];
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t n = 0; n < w.rows(); ++n)
      for (int64_t k = 0; k < w.last(); ++k)
        out[0].row(r)[n] += x.row(r)[k] * w.row(n)[k];
  return out;
}

static Tensors rope(RopeOp op, Operands in) {
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

namespace {
/// The index arithmetic of attention.
struct Heads {
  template <typename Attention>
  explicit Heads(Attention op, const Tensor &q)
      : batch(q.shape[0]), sequence(q.shape[1]), heads(op.getHeads()),
        group(heads / op.getKvHeads()), size(q.last() / heads),
        window(op.getWindow()), scale(op.getScale().convertToDouble()),
        softcap(op.getSoftcap().convertToDouble()), causal(op.getCausal()) {}

  int64_t batch, sequence, heads, group, size, window;
  double scale, softcap;
  bool causal;

  /// `starts`, if it is there, is an operand of the op.
  int64_t firstKey(int64_t b, int64_t t, Operands in, size_t starts) const {
    int64_t first = window ? std::max<int64_t>(0, t + 1 - window) : 0;
    if (starts >= in.size())
      return first;
    return std::max(first, int64_t(in[starts]->values[b * sequence + t]));
  }
  int64_t keys(int64_t t) const { return causal ? t + 1 : sequence; }
  double score(const double *query, const double *key) const {
    double score = scale * dot(query, key);
    return softcap ? softcap * std::tanh(score / softcap) : score;
  }
  /// d score / d (scale q k).
  double slope(double score) const {
    return softcap ? 1 - score * score / (softcap * softcap) : 1;
  }
  template <typename T>
  auto query(T &q, int64_t b, int64_t h, int64_t t) const {
    return q.row(b * sequence + t) + h * size;
  }
  template <typename T>
  auto key(T &k, int64_t b, int64_t h, int64_t s) const {
    return k.row(b * sequence + s) + h / group * size;
  }
  double dot(const double *a, const double *b) const {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += a[i] * b[i];
    return sum;
  }
  template <typename F>
  void forEachQuery(F f) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < sequence; ++t)
          f(b, h, t, (b * heads + h) * sequence + t);
  }
};
} // namespace

static Tensors attention(AttentionOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &q = *in[0], &k = *in[1], &v = *in[2];
  Heads heads(op, q);
  heads.forEachQuery([&](int64_t b, int64_t h, int64_t t, int64_t index) {
    double sum = 0;
    double *result = heads.query(out[0], b, h, t);
    for (int64_t s = heads.firstKey(b, t, in, 3); s < heads.keys(t); ++s) {
      double p =
          std::exp(heads.score(heads.query(q, b, h, t), heads.key(k, b, h, s)));
      sum += p;
      for (int64_t i = 0; i < heads.size; ++i)
        result[i] += p * heads.key(v, b, h, s)[i];
    }
    for (int64_t i = 0; i < heads.size; ++i)
      result[i] /= sum;
    out[1].values[index] = std::log(sum);
  });
  return out;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static Tensors swiglu(SwigluOp op, Operands in) {
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

static Tensors gelu(GeluOp op, Operands in) {
  return elementwise(op, in, [&](double x, double) {
    return x * gaussian(x, op.getApproximate());
  });
}

static Tensors geluGrad(GeluGradOp op, Operands in) {
  bool approximate = op.getApproximate();
  return elementwise(op, in, [&](double dy, double x) {
    return dy * (gaussian(x, approximate) + x * gaussianSlope(x, approximate));
  });
}

static Tensors softcap(SoftcapOp op, Operands in) {
  double cap = op.getCap().convertToDouble();
  return elementwise(
      op, in, [&](double x, double) { return cap * std::tanh(x / cap); });
}

static Tensors softcapGrad(SoftcapGradOp op, Operands in) {
  double cap = op.getCap().convertToDouble();
  return elementwise(op, in, [&](double dy, double x) {
    double t = std::tanh(x / cap);
    return dy * (1 - t * t);
  });
}

static Tensors scale(ScaleOp op, Operands in) {
  double factor = op.getFactor().convertToDouble();
  return elementwise(op, in, [&](double x, double) { return factor * x; });
}

static Tensors mul(MulOp op, Operands in) {
  return elementwise(op, in, [](double a, double b) { return a * b; });
}

static Tensors add(AddOp op, Operands in) {
  Tensors out = zeros(op);
  for (const Tensor *input : in)
    for (size_t i = 0; i < input->values.size(); ++i)
      out[0].values[i] += input->values[i];
  return out;
}

static Tensors split(SplitOp op, Operands in) {
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

static Tensors concat(ConcatOp op, Operands in) {
  Tensors out = zeros(op);
  for (int64_t r = 0; r < out[0].rows(); ++r) {
    double *next = out[0].row(r);
    for (const Tensor *piece : in)
      next = std::copy_n(piece->row(r), piece->last(), next);
  }
  return out;
}

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

static Tensors crossEntropy(CrossEntropyOp op, Operands in) {
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

//===----------------------------------------------------------------------===//
// Training step
//===----------------------------------------------------------------------===//

static Tensors embeddingGrad(EmbeddingGradOp op, Operands in) {
  Tensors out = zeros(op);
  for (auto [position, id] : llvm::enumerate(in[1]->values))
    for (int64_t i = 0; i < in[0]->last(); ++i)
      out[0].row(id)[i] += in[0]->row(position)[i];
  return out;
}

static Tensors rmsNormGrad(RmsNormGradOp op, Operands in) {
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

static Tensors layerNormGrad(LayerNormGradOp op, Operands in) {
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

static Tensors biasGrad(BiasGradOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < in[0]->values.size(); ++i)
    out[0].values[i % out[0].values.size()] += in[0]->values[i];
  return out;
}

static Tensors positionsGrad(PositionsGradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t i = 0; i < dy.last(); ++i)
      out[0].row(positionOf(dy, r, in, 1))[i] += dy.row(r)[i];
  return out;
}

static Tensors linearDgrad(LinearDgradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0], &w = *in[1];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < w.rows(); ++n)
      for (int64_t k = 0; k < w.last(); ++k)
        out[0].row(r)[k] += dy.row(r)[n] * w.row(n)[k];
  return out;
}

static Tensors linearWgrad(LinearWgradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dy = *in[0], &x = *in[1];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t n = 0; n < dy.last(); ++n)
      for (int64_t k = 0; k < x.last(); ++k)
        out[0].row(n)[k] += dy.row(r)[n] * x.row(r)[k];
  return out;
}

static Tensors attentionGrad(AttentionGradOp op, Operands in) {
  Tensors out = zeros(op);
  const Tensor &dout = *in[0], &q = *in[1], &k = *in[2], &v = *in[3];
  const Tensor &result = *in[4], &lse = *in[5];
  Heads heads(op, q);
  heads.forEachQuery([&](int64_t b, int64_t h, int64_t t, int64_t index) {
    const double *grad = heads.query(dout, b, h, t);
    const double *query = heads.query(q, b, h, t);
    double delta = heads.dot(grad, heads.query(result, b, h, t));
    for (int64_t s = heads.firstKey(b, t, in, 6); s < heads.keys(t); ++s) {
      const double *key = heads.key(k, b, h, s);
      double score = heads.score(query, key);
      double p = std::exp(score - lse.values[index]);
      double dp = heads.dot(grad, heads.key(v, b, h, s));
      double ds = p * (dp - delta) * heads.slope(score) * heads.scale;
      for (int64_t i = 0; i < heads.size; ++i) {
        heads.query(out[0], b, h, t)[i] += ds * key[i];
        heads.key(out[1], b, h, s)[i] += ds * query[i];
        heads.key(out[2], b, h, s)[i] += p * grad[i];
      }
    }
  });
  return out;
}

static Tensors swigluGrad(SwigluGradOp op, Operands in) {
  Tensors out = zeros(op);
  for (size_t i = 0; i < out[0].values.size(); ++i) {
    double dy = in[0]->values[i], gate = in[1]->values[i];
    double s = sigmoid(gate);
    out[0].values[i] = dy * in[2]->values[i] * s * (1 + gate * (1 - s));
    out[1].values[i] = dy * gate * s;
  }
  return out;
}

static Tensors crossEntropyGrad(CrossEntropyGradOp op, Operands in) {
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

static Tensors countLabels(CountLabelsOp op, Operands in) {
  const Tensor &labels = *in[0];
  int64_t size = labels.values.size(), count = 0;
  int64_t group = op.getSequences() ? labels.last() : 1;
  for (int64_t row = 0; row < size; row += group)
    count +=
        std::any_of(&labels.values[row], &labels.values[row] + group, counts);
  return {Tensor({}, double(count))};
}

static Tensors sumSquares(SumSquaresOp op, Operands in) {
  Tensors out = zeros(op);
  for (double value : in[0]->values)
    out[0].values[0] += value * value;
  return out;
}

static Tensors clipScale(ClipScaleOp op, Operands in) {
  Tensors out = zeros(op);
  double norm = std::sqrt(in[0]->values[0]);
  double limit = op.getMaxNorm().convertToDouble();
  out[0].values[0] = norm;
  out[1].values[0] = limit == 0 ? 1 : std::min(1.0, limit / (norm + 1e-6));
  return out;
}

static Tensors adamw(AdamwOp op, Operands in) {
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

static Tensors sgd(SgdOp op, Operands in) {
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

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

SmallVector<Tensor> gtp::test::interpret(Operation *op, Operands operands) {
  return llvm::TypeSwitch<Operation *, Tensors>(op)
      .Case([&](EmbeddingOp op) { return embedding(op, operands); })
      .Case([&](RmsNormOp op) { return rmsNorm(op, operands); })
      .Case([&](LayerNormOp op) { return layerNorm(op, operands); })
      .Case([&](DocumentStartsOp op) { return documentStarts(op, operands); })
      .Case([&](AddBiasOp op) { return addBias(op, operands); })
      .Case([&](AddPositionsOp op) { return addPositions(op, operands); })
      .Case([&](GeluOp op) { return gelu(op, operands); })
      .Case([&](SoftcapOp op) { return softcap(op, operands); })
      .Case([&](ScaleOp op) { return scale(op, operands); })
      .Case([&](MulOp op) { return mul(op, operands); })
      .Case([&](LayerNormGradOp op) { return layerNormGrad(op, operands); })
      .Case([&](BiasGradOp op) { return biasGrad(op, operands); })
      .Case([&](PositionsGradOp op) { return positionsGrad(op, operands); })
      .Case([&](GeluGradOp op) { return geluGrad(op, operands); })
      .Case([&](SoftcapGradOp op) { return softcapGrad(op, operands); })
      .Case([&](LinearOp op) { return linear(op, operands); })
      .Case([&](RopeOp op) { return rope(op, operands); })
      .Case([&](AttentionOp op) { return attention(op, operands); })
      .Case([&](SwigluOp op) { return swiglu(op, operands); })
      .Case([&](AddOp op) { return add(op, operands); })
      .Case([&](SplitOp op) { return split(op, operands); })
      .Case([&](ConcatOp op) { return concat(op, operands); })
      .Case([&](CastOp op) { return Tensors{*operands[0]}; })
      .Case([&](CrossEntropyOp op) { return crossEntropy(op, operands); })
      .Case([&](EmbeddingGradOp op) { return embeddingGrad(op, operands); })
      .Case([&](RmsNormGradOp op) { return rmsNormGrad(op, operands); })
      .Case([&](LinearDgradOp op) { return linearDgrad(op, operands); })
      .Case([&](LinearWgradOp op) { return linearWgrad(op, operands); })
      .Case([&](AttentionGradOp op) { return attentionGrad(op, operands); })
      .Case([&](SwigluGradOp op) { return swigluGrad(op, operands); })
      .Case(
          [&](CrossEntropyGradOp op) { return crossEntropyGrad(op, operands); })
      .Case([&](CountLabelsOp op) { return countLabels(op, operands); })
      .Case([&](SumSquaresOp op) { return sumSquares(op, operands); })
      .Case([&](ClipScaleOp op) { return clipScale(op, operands); })
      .Case([&](AdamwOp op) { return adamw(op, operands); })
      .Case([&](SgdOp op) { return sgd(op, operands); })
      .Case([&](FullOp op) {
        Tensors out = zeros(op);
        llvm::fill(out[0].values, op.getValue().convertToDouble());
        return out;
      })
      .Default([](Operation *op) {
        op->emitOpError("has no meaning in the test interpreter");
        return Tensors();
      });
}

LogicalResult Interpreter::runMicrobatches(MicrobatchesOp op) {
  for (Value result : op.getResults())
    values[result] = Tensor(result);
  Block &body = op.getBody().front();
  int64_t count = op.getMicrobatchCount();
  for (int64_t j = 0; j < count; ++j) {
    for (auto [argument, input] :
         llvm::zip_equal(body.getArguments(), op.getInputs())) {
      Tensor slice(argument);
      const Tensor &whole = values[input];
      std::copy_n(whole.values.begin() + j * slice.values.size(),
                  slice.values.size(), slice.values.begin());
      values[argument] = std::move(slice);
    }
    if (failed(run(body)))
      return failure();
    for (auto [result, yielded] : llvm::zip_equal(
             op.getResults(), body.getTerminator()->getOperands())) {
      const Tensor part = values[yielded];
      for (size_t i = 0; i < part.values.size(); ++i)
        values[result].values[i] += part.values[i];
    }
  }
  return success();
}

LogicalResult Interpreter::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto microbatches = dyn_cast<MicrobatchesOp>(op)) {
      if (failed(runMicrobatches(microbatches)))
        return failure();
      continue;
    }
    if (auto get = dyn_cast<GetOp>(op)) {
      values[get.getResult()] = parameters.lookup(get.getParameter());
      continue;
    }
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values.find(operand)->second);
    SmallVector<Tensor> results = interpret(&op, operands);
    if (results.size() != op.getNumResults())
      return failure();
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), results))
      values[result] = std::move(tensor);
  }
  return success();
}
