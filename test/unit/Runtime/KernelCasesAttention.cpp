//===- KernelCasesAttention.cpp - Attention and what positions do to it ---===//

#include "KernelCases.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

void testRope() {
  constexpr uint64_t length = 5, heads = 3, head = 6;
  Tensor x = randomTensor({2, length, heads * head}, 10);
  // The second turns a part of each head only.
  for (const std::vector<double> &frequencies :
       {std::vector<double>{1, 0.37, 0.011}, std::vector<double>{1, 0.37}})
    for (int variant : {0, 1, 2, 3}) {
      bool inverse = variant % 2, packed = variant > 1;
      Tensor starts = documents(2, packed ? length : 1);
      uint64_t half = frequencies.size();
      Tensor y = x;
      for (uint64_t row = 0; row < x.rows(); ++row)
        for (uint64_t h = 0; h < heads; ++h)
          for (uint64_t i = 0; i < half; ++i) {
            double position = static_cast<double>(row % length) -
                              (packed ? starts.values[row] : 0);
            double a = position * frequencies[i] * (inverse ? -1 : 1);
            double low = x.at(row, h * head + i);
            double high = x.at(row, h * head + i + half);
            y.at(row, h * head + i) = low * std::cos(a) - high * std::sin(a);
            y.at(row, h * head + i + half) =
                high * std::cos(a) + low * std::sin(a);
          }
      KernelCase test("rope");
      test.in(x).out(y);
      if (packed)
        test.in(starts, pb::I32);
      test.integer("head_dim", head)
          .integer("inverse", inverse)
          .constant("frequencies", frequencies)
          .check();
    }
}

struct AttentionShape {
  uint64_t batch, length, heads, kvHeads, head;
  bool causal;
  uint64_t window = 0;
  double softcap = 0;
  bool packed = false; ///< several documents a sequence
};

/// Returns out, or lse if asked.
Tensor attention(const AttentionShape &s, double scale,
                 const std::vector<Tensor> &in, bool wantLse) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  Tensor out(q.dims), lse({s.batch, s.heads, s.length});
  Tensor starts = documents(s.batch, s.length);
  for (uint64_t b = 0; b < s.batch; ++b)
    for (uint64_t h = 0; h < s.heads; ++h)
      for (uint64_t i = 0; i < s.length; ++i) {
        uint64_t kv = h / (s.heads / s.kvHeads), row = b * s.length + i;
        std::vector<double> p;
        double sum = 0;
        uint64_t first = s.window && i >= s.window ? i + 1 - s.window : 0;
        if (s.packed)
          first = std::max(first, static_cast<uint64_t>(starts.at(b, i)));
        for (uint64_t j = first; j < (s.causal ? i + 1 : s.length); ++j) {
          double dot = 0;
          for (uint64_t d = 0; d < s.head; ++d)
            dot += q.at(row, h * s.head + d) *
                   k.at(b * s.length + j, kv * s.head + d);
          double score = scale * dot;
          if (s.softcap > 0)
            score = s.softcap * std::tanh(score / s.softcap);
          p.push_back(std::exp(score));
          sum += p.back();
        }
        for (uint64_t j = 0; j < p.size(); ++j)
          for (uint64_t d = 0; d < s.head; ++d)
            out.at(row, h * s.head + d) +=
                p[j] / sum * v.at(b * s.length + first + j, kv * s.head + d);
        lse.at(b * s.heads + h, i) = std::log(sum);
      }
  return wantLse ? lse : out;
}

void testAttention(bool gradient) {
  const double scale = 0.3;
  // The last ones are longer than a block of query rows.
  for (AttentionShape s : {AttentionShape{2, 5, 6, 2, 3, true},
                           AttentionShape{1, 4, 3, 3, 2, false},
                           AttentionShape{1, 1, 1, 1, 1, true},
                           AttentionShape{2, 5, 4, 2, 3, true, 3, 0},
                           AttentionShape{1, 4, 2, 2, 3, true, 0, 0.7},
                           AttentionShape{1, 67, 2, 1, 1, true, 1, 0},
                           AttentionShape{1, 67, 2, 1, 1, true, 20, 0.5},
                           AttentionShape{2, 9, 4, 2, 3, true, 0, 0, true},
                           AttentionShape{2, 9, 2, 2, 3, true, 2, 0.7, true},
                           AttentionShape{1, 67, 2, 1, 1, true, 0, 0, true},
                           AttentionShape{1, 67, 2, 1, 1, true}}) {
    if (gradient && s.length > 60)
      s.length = 66;
    Tensor q = randomTensor({s.batch, s.length, s.heads * s.head}, 11);
    Tensor k = randomTensor({s.batch, s.length, s.kvHeads * s.head}, 12);
    Tensor v = randomTensor(k.dims, 13), dout = randomTensor(q.dims, 14);
    for (double &value : q.values)
      value *= 4;
    auto forward = [&](const std::vector<Tensor> &in) {
      return attention(s, scale, in, false);
    };
    Tensor out = forward({q, k, v});
    Tensor lse = attention(s, scale, {q, k, v}, true);
    KernelCase test(gradient ? "attention_grad" : "attention");
    if (gradient)
      test.in(dout).in(q).in(k).in(v).in(out).in(lse);
    else
      test.in(q).in(k).in(v).out(out).out(lse);
    for (size_t which = 0; gradient && which < 3; ++which)
      test.out(differentiate(forward, {q, k, v}, which, dout));
    test.scratch(s.length * s.length * (gradient ? 8 : 4));
    if (s.packed)
      test.in(documents(s.batch, s.length), pb::I32);
    test.integer("heads", static_cast<int64_t>(s.heads))
        .integer("kv_heads", static_cast<int64_t>(s.kvHeads))
        .real("scale", scale)
        .integer("causal", s.causal);
    if (s.window)
      test.integer("window", static_cast<int64_t>(s.window));
    if (s.softcap > 0)
      test.real("softcap", s.softcap);
    test.check();
  }
}

} // namespace

const KernelCases &gtp::test::attentionCases() {
  static const KernelCases cases = {
      {"attention", [] { testAttention(false); }},
      {"attention_grad", [] { testAttention(true); }},
      {"rope", testRope},
  };
  return cases;
}
