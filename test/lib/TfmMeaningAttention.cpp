//===- TfmMeaningAttention.cpp - Attention and its gradient in float64 ----===//

#include "TfmMeaning.h"

#include <cmath>

using namespace mlir;
using namespace gtp::tfm;
using namespace gtp::test;

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

Tensors gtp::test::meaning(AttentionOp op, Operands in) {
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

Tensors gtp::test::meaning(AttentionGradOp op, Operands in) {
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
