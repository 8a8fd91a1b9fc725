//===- KernelsTest.cpp - Every kernel computes its meaning ----------------===//
//
// References are written from the registry's text, in double and without care
// for speed; gradients are finite differences of forward references. Each
// backend has a program of these tests.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "KernelHarness.h"

#include "gtp/Support/BFloat16.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

using namespace gtp;
using namespace gtp::test;

namespace {

using Forward = std::function<Tensor(const std::vector<Tensor> &)>;

/// d(sum(dy * forward(inputs))) / d(inputs[which]), by central differences.
Tensor differentiate(const Forward &forward, std::vector<Tensor> inputs,
                     size_t which, const Tensor &dy) {
  Tensor gradient(inputs[which].dims);
  auto value = [&] {
    Tensor y = forward(inputs);
    double sum = 0;
    for (size_t i = 0; i < y.values.size(); ++i)
      sum += dy.values[i] * y.values[i];
    return sum;
  };
  constexpr double step = 1e-4;
  for (size_t i = 0; i < gradient.values.size(); ++i) {
    double &x = inputs[which].values[i];
    double middle = x;
    x = middle + step;
    double above = value();
    x = middle - step;
    gradient.values[i] = (above - value()) / (2 * step);
    x = middle;
  }
  return gradient;
}

Tensor map(const Tensor &x, const std::function<double(size_t)> &f) {
  Tensor y(x.dims);
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] = f(i);
  return y;
}

Tensor scalar(double value) { return Tensor({}, value); }

/// Where documents of odd and even lengths, 1 among them, start; other ones in
/// each of `batch` sequences.
Tensor documents(uint64_t batch, uint64_t length) {
  Tensor starts({batch, length});
  for (uint64_t b = 0; b < batch; ++b)
    for (uint64_t t = 1; t < length; ++t) {
      bool begins = (t * t + b) % 7 < 2;
      starts.at(b, t) = begins ? static_cast<double>(t) : starts.at(b, t - 1);
    }
  return starts;
}

//===-- linear ------------------------------------------------------------===//

Tensor linear(const std::vector<Tensor> &in) {
  const Tensor &x = in[0], &w = in[1];
  Dims dims = x.dims;
  dims.back() = w.dims[0];
  Tensor y(dims);
  for (uint64_t row = 0; row < x.rows(); ++row)
    for (uint64_t n = 0; n < w.dims[0]; ++n)
      for (uint64_t k = 0; k < w.dims[1]; ++k)
        y.at(row, n) += x.at(row, k) * w.at(n, k);
  return y;
}

void testLinear(const std::string &name) {
  for (auto [batch, length, k, n] :
       {std::array<uint64_t, 4>{2, 3, 7, 5}, {1, 1, 1, 1}, {3, 5, 33, 17}}) {
    Tensor x = randomTensor({batch, length, k}, 1);
    Tensor w = randomTensor({n, k}, 2);
    Tensor dy = randomTensor({batch, length, n}, 3);
    KernelCase test(name);
    if (name == "linear")
      test.in(x).in(w).out(linear({x, w})).check();
    else if (name == "linear_dgrad")
      test.in(dy).in(w).out(differentiate(linear, {x, w}, 0, dy)).check();
    else
      test.in(dy).in(x).out(differentiate(linear, {x, w}, 1, dy)).check();
  }
}

//===-- rms_norm, swiglu, rope --------------------------------------------===//

Tensor rmsNorm(const std::vector<Tensor> &in) {
  const Tensor &x = in[0], &weight = in[1];
  uint64_t group = weight.values.size();
  Tensor y(x.dims);
  for (size_t start = 0; start < x.values.size(); start += group) {
    double sum = 0;
    for (size_t i = start; i < start + group; ++i)
      sum += x.values[i] * x.values[i];
    double r = 1 / std::sqrt(sum / static_cast<double>(group) + 1e-5);
    for (size_t i = 0; i < group; ++i)
      y.values[start + i] = x.values[start + i] * r * weight.values[i];
  }
  return y;
}

void testRmsNorm(bool gradient) {
  for (auto [rows, groups, size] :
       {std::array<uint64_t, 3>{5, 1, 11}, {3, 4, 6}, {1, 1, 1}}) {
    Tensor x = randomTensor({1, rows, groups * size}, 4);
    Tensor weight = randomTensor({size}, 5);
    Tensor dy = randomTensor(x.dims, 6);
    if (!gradient)
      KernelCase("rms_norm")
          .in(x)
          .in(weight)
          .out(rmsNorm({x, weight}))
          .real("eps", 1e-5)
          .check();
    // A weight that is not trained has no gradient.
    for (bool trained : {true, false}) {
      if (!gradient)
        break;
      KernelCase test("rms_norm_grad");
      test.in(dy).in(x).in(weight).out(
          differentiate(rmsNorm, {x, weight}, 0, dy));
      if (trained)
        test.out(differentiate(rmsNorm, {x, weight}, 1, dy));
      test.real("eps", 1e-5).tolerance(5e-5).check();
    }
  }
}

Tensor layerNorm(const std::vector<Tensor> &in) {
  const Tensor &x = in[0], &weight = in[1];
  size_t group = weight.values.size();
  auto size = static_cast<double>(group);
  Tensor y(x.dims);
  for (size_t start = 0; start < x.values.size(); start += group) {
    double mean = 0, variance = 0;
    for (size_t i = start; i < start + group; ++i)
      mean += x.values[i] / size;
    for (size_t i = start; i < start + group; ++i)
      variance += (x.values[i] - mean) * (x.values[i] - mean) / size;
    for (size_t i = 0; i < group; ++i)
      y.values[start + i] = (x.values[start + i] - mean) /
                            std::sqrt(variance + 1e-5) * weight.values[i];
  }
  return y;
}

void testLayerNorm(bool gradient) {
  for (auto [rows, groups, size] :
       {std::array<uint64_t, 3>{5, 1, 11}, {3, 4, 6}}) {
    Tensor x = randomTensor({1, rows, groups * size}, 31);
    Tensor weight = randomTensor({size}, 32);
    Tensor dy = randomTensor(x.dims, 33);
    if (gradient)
      KernelCase("layer_norm_grad")
          .in(dy)
          .in(x)
          .in(weight)
          .out(differentiate(layerNorm, {x, weight}, 0, dy))
          .real("eps", 1e-5)
          .tolerance(5e-5)
          .check();
    KernelCase test(gradient ? "layer_norm_grad" : "layer_norm");
    if (gradient)
      test.in(dy)
          .in(x)
          .in(weight)
          .out(differentiate(layerNorm, {x, weight}, 0, dy))
          .out(differentiate(layerNorm, {x, weight}, 1, dy))
          .tolerance(5e-5);
    else
      test.in(x).in(weight).out(layerNorm({x, weight}));
    test.real("eps", 1e-5).check();
  }
}

/// rms_norm whose weight counts from 1.
void testUnitOffset(bool gradient) {
  Tensor x = randomTensor({1, 3, 12}, 34), weight = randomTensor({6}, 35);
  Tensor dy = randomTensor(x.dims, 36);
  auto forward = [](std::vector<Tensor> in) {
    for (double &value : in[1].values)
      value += 1;
    return rmsNorm(in);
  };
  KernelCase test(gradient ? "rms_norm_grad" : "rms_norm");
  if (gradient)
    test.in(dy)
        .in(x)
        .in(weight)
        .out(differentiate(forward, {x, weight}, 0, dy))
        .out(differentiate(forward, {x, weight}, 1, dy))
        .tolerance(5e-5);
  else
    test.in(x).in(weight).out(forward({x, weight}));
  test.real("eps", 1e-5).integer("unit_offset", 1).check();
}

//===-- biases, positions -------------------------------------------------===//

/// x plus a table whose elements repeat, from the start of each document if
/// there are any.
Tensor addTable(const std::vector<Tensor> &in, size_t period,
                const Tensor *starts) {
  uint64_t columns = in[0].columns();
  return map(in[0], [&](size_t i) {
    size_t element = i % period;
    if (starts)
      element -= static_cast<size_t>(starts->values[i / columns]) * columns;
    return in[0].values[i] + in[1].values[element];
  });
}

void testTable(const std::string &name) {
  Tensor x = randomTensor({3, 4, 5}, 37), dy = randomTensor(x.dims, 38);
  bool bias = name == "add_bias" || name == "bias_grad";
  // The table has rows that no position uses.
  Tensor table = randomTensor(bias ? Dims{5} : Dims{6, 5}, 39);
  Tensor starts = documents(3, 4);
  for (const Tensor *given : {static_cast<const Tensor *>(nullptr),
                              const_cast<const Tensor *>(&starts)}) {
    if (given && bias)
      continue;
    auto forward = [&](const std::vector<Tensor> &in) {
      return addTable(in, bias ? 5 : 20, given);
    };
    KernelCase test(name);
    if (name == "bias_grad" || name == "positions_grad")
      test.in(dy).out(differentiate(forward, {x, table}, 1, dy));
    else
      test.in(x).in(table).out(forward({x, table}));
    if (given)
      test.in(starts, pb::I32);
    test.check();
  }
}

void testDocumentStarts() {
  // HostPlan's separator is 3: at the start, at the end, and in a row.
  Tensor tokens({3, 6}), starts({3, 6});
  tokens.values = {3, 1, 2, 3, 5, 3, 1, 3, 3, 3, 0, 2, 0, 0, 0, 0, 0, 0};
  starts.values = {0, 1, 1, 1, 4, 4, 0, 0, 2, 3, 4, 4, 0, 0, 0, 0, 0, 0};
  KernelCase("document_starts")
      .in(tokens, pb::I32)
      .out(starts, pb::I32)
      .integer("separator", 3)
      .check();
}

//===-- gelu, softcap, products -------------------------------------------===//

double gaussian(double x, bool approximate) {
  if (approximate)
    return (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) /
           2;
  return (1 + std::erf(x / std::sqrt(2.0))) / 2;
}

/// A kernel of one input, or its gradient.
void testUnary(const std::string &name, bool gradient,
               const std::function<double(double)> &f,
               const std::function<void(KernelCase &)> &configure) {
  Tensor x = randomTensor({2, 3, 13}, 40);
  for (double &value : x.values)
    value *= 6;
  Tensor dy = randomTensor(x.dims, 41);
  auto forward = [&](const std::vector<Tensor> &in) {
    return map(in[0], [&](size_t i) { return f(in[0].values[i]); });
  };
  KernelCase test(name);
  if (gradient)
    test.in(dy).in(x).out(differentiate(forward, {x}, 0, dy));
  else
    test.in(x).out(forward({x}));
  configure(test);
  test.check();
}

void testGelu(bool gradient) {
  for (bool approximate : {false, true})
    testUnary(
        gradient ? "gelu_grad" : "gelu", gradient,
        [=](double x) { return x * gaussian(x, approximate); },
        [=](KernelCase &test) { test.integer("approximate", approximate); });
}

void testSoftcap(bool gradient) {
  testUnary(
      gradient ? "softcap_grad" : "softcap", gradient,
      [](double x) { return 2.5 * std::tanh(x / 2.5); },
      [](KernelCase &test) { test.real("cap", 2.5); });
}

void testScale() {
  testUnary(
      "scale", false, [](double x) { return -1.75 * x; },
      [](KernelCase &test) { test.real("factor", -1.75); });
}

void testMul() {
  Tensor a = randomTensor({2, 3, 5}, 42), b = randomTensor(a.dims, 43);
  KernelCase("mul")
      .in(a)
      .in(b)
      .out(map(a, [&](size_t i) { return a.values[i] * b.values[i]; }))
      .check();
}

Tensor swiglu(const std::vector<Tensor> &in) {
  return map(in[0], [&](size_t i) {
    double gate = in[0].values[i];
    return gate / (1 + std::exp(-gate)) * in[1].values[i];
  });
}

void testSwiglu(bool gradient) {
  Tensor gate = randomTensor({2, 3, 13}, 7), up = randomTensor(gate.dims, 8);
  for (double &value : gate.values)
    value *= 20;
  gate.values[0] = 200;
  gate.values[1] = -200;
  Tensor dy = randomTensor(gate.dims, 9);
  if (!gradient)
    KernelCase("swiglu").in(gate).in(up).out(swiglu({gate, up})).check();
  else
    KernelCase("swiglu_grad")
        .in(dy)
        .in(gate)
        .in(up)
        .out(differentiate(swiglu, {gate, up}, 0, dy))
        .out(differentiate(swiglu, {gate, up}, 1, dy))
        .check();
}

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

//===-- attention ---------------------------------------------------------===//

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

//===-- embedding, loss ---------------------------------------------------===//

void testEmbedding(bool gradient) {
  Tensor table = randomTensor({7, 5}, 15), dy = randomTensor({2, 4, 5}, 16);
  Tensor ids({2, 4});
  ids.values = {0, 6, 3, 3, 3, 6, 1, 0};
  auto forward = [&](const std::vector<Tensor> &in) {
    Tensor out({2, 4, 5});
    for (uint64_t row = 0; row < 8; ++row)
      for (uint64_t i = 0; i < 5; ++i)
        out.at(row, i) = in[0].at(static_cast<uint64_t>(ids.values[row]), i);
    return out;
  };
  if (!gradient)
    KernelCase("embedding")
        .in(ids, pb::I32)
        .in(table)
        .out(forward({table}))
        .tolerance(0)
        .check();
  else
    KernelCase("embedding_grad")
        .in(dy)
        .in(ids, pb::I32)
        .out(differentiate(forward, {table}, 0, dy))
        .check();
}

void testCrossEntropy(bool gradient) {
  Tensor logits = randomTensor({2, 3, 11}, 17), labels({2, 3});
  for (double &value : logits.values)
    value *= 30;
  for (const std::vector<double> &choice :
       {std::vector<double>{0, 10, -100, 4, 4, -100},
        std::vector<double>(6, -100)}) {
    labels.values = choice;
    for (double count : {0.0, 1.0, 9.0}) {
      auto forward = [&](const std::vector<Tensor> &in) {
        double total = 0;
        for (uint64_t row = 0; row < 6; ++row) {
          if (labels.values[row] == -100)
            continue;
          double sum = 0;
          for (uint64_t i = 0; i < 11; ++i)
            sum += std::exp(in[0].at(row, i));
          total += std::log(sum) -
                   in[0].at(row, static_cast<uint64_t>(labels.values[row]));
        }
        return scalar(total / std::max(1.0, count));
      };
      if (!gradient)
        KernelCase("cross_entropy")
            .in(logits)
            .in(labels, pb::I32)
            .in(scalar(count), pb::I64)
            .out(forward({logits}))
            .check();
      else
        KernelCase("cross_entropy_grad")
            .in(logits)
            .in(labels, pb::I32)
            .in(scalar(count), pb::I64)
            .in(scalar(0.5))
            .out(differentiate(forward, {logits}, 0, scalar(0.5)))
            .check();
    }
  }
}

/// The mean over sequences of their means: the second has no counted label.
void testSequenceMean(bool gradient) {
  if (!isComplete())
    return;
  Tensor logits = randomTensor({4, 3, 5}, 18), labels({4, 3});
  labels.values = {0, 4, -100, -100, -100, -100, 1, 2, 3, -100, 0, -100};
  const double counted[] = {2, 0, 3, 1};
  auto forward = [&](const std::vector<Tensor> &in) {
    double total = 0;
    for (uint64_t row = 0; row < 12; ++row) {
      if (labels.values[row] == -100)
        continue;
      double sum = 0;
      for (uint64_t i = 0; i < 5; ++i)
        sum += std::exp(in[0].at(row, i));
      total += (std::log(sum) -
                in[0].at(row, static_cast<uint64_t>(labels.values[row]))) /
               counted[row / 3];
    }
    return scalar(total / 3);
  };
  KernelCase test(gradient ? "cross_entropy_grad" : "cross_entropy");
  test.in(logits).in(labels, pb::I32).in(scalar(3), pb::I64);
  if (gradient)
    test.in(scalar(0.5)).out(differentiate(forward, {logits}, 0, scalar(0.5)));
  else
    test.out(forward({logits}));
  test.integer("sequence_mean", 1).check();
}

void testCountLabels() {
  Tensor labels({2, 2, 3});
  labels.values = {-100, 3, 0, -100, -100, -100, 1, 1, -100, 2, 0, -100};
  for (bool sequences : {false, true}) {
    if (sequences && !isComplete())
      continue;
    KernelCase("count_labels")
        .in(labels, pb::I32)
        .out(scalar(sequences ? 3 : 6), pb::I64)
        .integer("sequences", sequences)
        .tolerance(0)
        .check();
  }
}

//===-- sums, casts, copies -----------------------------------------------===//

void testAdd() {
  for (pb::DType type : {pb::F32, pb::F64})
    for (size_t terms : {1, 2, 4}) {
      Tensor sum({3, 7});
      KernelCase test("add");
      for (size_t term = 0; term < terms; ++term) {
        Tensor x = randomTensor(sum.dims, 18 + term);
        sum = map(sum, [&](size_t i) { return sum.values[i] + x.values[i]; });
        test.in(x, type);
      }
      test.out(sum, type).check();
    }
}

void testCast() {
  Tensor x = randomTensor({3, 7}, 22);
  for (pb::DType from : {pb::F32, pb::F64})
    for (pb::DType to : {pb::F32, pb::F64})
      KernelCase("cast").in(x, from).out(x, to).tolerance(1e-7).check();
}

void testConcat() {
  Tensor a = randomTensor({2, 3, 4}, 23), b = randomTensor({2, 3, 1}, 24);
  Tensor out({2, 3, 9});
  for (uint64_t row = 0; row < 6; ++row)
    for (uint64_t i = 0; i < 9; ++i)
      out.at(row, i) = i < 4   ? a.at(row, i)
                       : i < 5 ? b.at(row, 0)
                               : a.at(row, i - 5);
  KernelCase("concat").in(a).in(b).in(a).out(out).tolerance(0).check();
}

void testFull() {
  KernelCase("full")
      .out(Tensor({3, 5}, 1.5))
      .real("value", 1.5)
      .tolerance(0)
      .check();
  KernelCase("full")
      .out(Tensor({}, -7), pb::I64)
      .real("value", -7)
      .tolerance(0)
      .check();
}

void testKeepFirst() {
  Tensor x = randomTensor({3, 5}, 25);
  for (int64_t mask : {0, 1, 2, 3}) {
    KernelCase test("keep_first");
    test.in(x).out(x).integer("axes_mask", mask);
    // Coordinates are (0, 0), (0, 1), (0, 2), (1, 0), ...
    std::vector<Tensor> results = test.runOn({{"dp", 2}, {"gtp", 3}});
    for (uint64_t rank = 0; rank < 6; ++rank) {
      bool first =
          (!(mask & 1) || rank / 3 == 0) && (!(mask & 2) || rank % 3 == 0);
      EXPECT_EQ(results[rank].values, first ? x.values : Tensor(x.dims).values)
          << "rank " << rank << ", mask " << mask;
    }
  }
}

//===-- optimizer ---------------------------------------------------------===//

void testSumSquares() {
  Tensor x = randomTensor({3, 77}, 26);
  double sum = 0;
  for (double value : x.values)
    sum += value * value;
  KernelCase("sum_squares")
      .in(x)
      .out(scalar(sum), pb::F64)
      .tolerance(1e-13)
      .check();
}

void testClipScale() {
  for (double most : {0.0, 1.0, 100.0}) {
    double norm = std::sqrt(50.0);
    double scale = most == 0 ? 1 : std::min(1.0, most / (norm + 1e-6));
    KernelCase("clip_scale")
        .in(scalar(50), pb::F64)
        .out(scalar(norm))
        .out(scalar(scale))
        .real("max_norm", most)
        .tolerance(1e-7)
        .check();
    // The last is finite, and its square root in float32 is not.
    for (double sum : {double(NAN), double(INFINITY), 1e100})
      KernelCase("clip_scale")
          .in(scalar(sum), pb::F64)
          .out(scalar(std::isnan(sum) ? NAN : INFINITY))
          .out(scalar(NAN))
          .real("max_norm", most)
          .check();
  }
}

/// Step 3 of lr 0.01, decay 0.1, betas 0.9 and 0.95.
Tensor hyperParameters() {
  Tensor hyper({8});
  hyper.values = {
      0.01, 0.1, 0.9, 0.95, 1e-6, 1 - std::pow(0.9, 3), 1 - std::pow(0.95, 3),
      0};
  return hyper;
}

void testOptimizer(bool adam) {
  Tensor w = randomTensor({3, 7}, 27), grad = randomTensor(w.dims, 28);
  Tensor m = randomTensor(w.dims, 29), v = randomTensor(w.dims, 30);
  for (double &value : v.values)
    value = std::fabs(value);
  const std::vector<double> h = hyperParameters().values;
  for (bool decay : {false, true})
    for (bool publishes : {false, true}) {
      double scale = 0.25, rate = decay ? h[1] : 0;
      Tensor newM = map(w, [&](size_t i) {
        return h[2] * m.values[i] + (1 - h[2]) * scale * grad.values[i];
      });
      Tensor newV = map(w, [&](size_t i) {
        double g = scale * grad.values[i];
        return h[3] * v.values[i] + (1 - h[3]) * g * g;
      });
      Tensor newW = map(w, [&](size_t i) {
        double step = adam ? newM.values[i] / h[5] /
                                 (std::sqrt(newV.values[i] / h[6]) + h[4])
                           : scale * grad.values[i];
        return w.values[i] - h[0] * (step + rate * w.values[i]);
      });
      KernelCase test(adam ? "adamw" : "sgd");
      test.inOut(w, newW);
      if (adam)
        test.inOut(m, newM).inOut(v, newV);
      test.in(grad).in(hyperParameters()).in(scalar(scale));
      if (publishes)
        test.out(newW);
      test.integer("decay", decay).tolerance(1e-6).check();

      // A scale that is not a number leaves everything as it is, to the bit.
      KernelCase skipped(adam ? "adamw" : "sgd");
      skipped.inOut(w, w);
      if (adam)
        skipped.inOut(m, m).inOut(v, v);
      skipped.in(Tensor(w.dims, NAN)).in(Tensor({8}, 0.5)).in(scalar(NAN));
      if (publishes)
        skipped.out(w);
      skipped.integer("decay", decay).tolerance(0).check();
    }
}

/// A bfloat16 and what is left of a float32, as two tensors.
std::pair<Tensor, Tensor> halves(const Tensor &x) {
  Tensor high(x.dims), low(x.dims);
  for (size_t i = 0; i < x.values.size(); ++i) {
    SplitFloat split(static_cast<float>(x.values[i]));
    high.values[i] = split.high;
    low.values[i] = split.low;
  }
  return {high, low};
}

/// A master in halves goes the way of a whole one, to the bit: its high half is
/// what that publishes.
void testSplitMaster(bool adam) {
  if (!isComplete())
    return;
  Tensor w = randomTensor({3, 700}, 41), grad = randomTensor(w.dims, 42);
  // Ties between two bfloat16s, of both kinds.
  w.values[0] = 1 + 1.0 / 256;
  w.values[1] = -1 - 3.0 / 256;
  grad.values[0] = grad.values[1] = 0;
  for (bool skips : {false, true}) {
    Tensor m = randomTensor(w.dims, 43), v = randomTensor(w.dims, 44);
    for (double &value : v.values)
      value = std::fabs(value);
    m.values[0] = m.values[1] = 0;
    auto call = [&](KernelCase &test) -> KernelCase & {
      if (adam)
        test.inOut(m, m).inOut(v, v);
      return test.in(grad)
          .in(hyperParameters())
          .in(scalar(skips ? NAN : 0.25))
          .integer("decay", 0);
    };
    KernelCase whole(adam ? "adamw" : "sgd");
    whole.inOut(w, w);
    call(whole).out(w, pb::BF16);
    std::vector<Tensor> expected = whole.results();
    auto [high, low] = halves(expected[0]);
    EXPECT_EQ(expected.back().values, high.values);
    EXPECT_EQ(expected[0].values == w.values, skips);

    auto [oldHigh, oldLow] = halves(w);
    KernelCase split(adam ? "adamw_split" : "sgd_split");
    split.inOut(oldHigh, oldHigh, pb::BF16).inOut(oldLow, oldLow, pb::I16);
    std::vector<Tensor> found = call(split).results();
    EXPECT_EQ(found[0].values, high.values);
    EXPECT_EQ(found[1].values, low.values);
    for (size_t i = 1; adam && i <= 2; ++i)
      EXPECT_EQ(found[i + 1].values, expected[i].values) << "moment " << i;
  }
}

/// bfloat16 masters and moments: what float32 ones become, rounded.
void testNarrowStates(bool adam) {
  if (!isComplete())
    return;
  Tensor w = randomTensor({3, 70}, 45), grad = randomTensor(w.dims, 46);
  Tensor m = randomTensor(w.dims, 47), v = randomTensor(w.dims, 48);
  for (Tensor *x : {&w, &m, &v})
    for (double &value : x->values)
      value = BFloat16(x == &v ? std::fabs(value) : value);
  auto results = [&](pb::DType type) {
    KernelCase test(adam ? "adamw" : "sgd");
    test.inOut(w, w, type);
    if (adam)
      test.inOut(m, m, type).inOut(v, v, type);
    return test.in(grad)
        .in(hyperParameters())
        .in(scalar(0.25))
        .integer("decay", 1)
        .results();
  };
  std::vector<Tensor> narrow = results(pb::BF16), wide = results(pb::F32);
  for (size_t i = 0; i < (adam ? 3 : 1); ++i)
    for (size_t e = 0; e < w.values.size(); ++e)
      ASSERT_EQ(narrow[i].values[e], BFloat16(wide[i].values[e]))
          << "operand " << i << ", element " << e;
}

const std::map<std::string, std::function<void()>> cases = {
    {"adamw",
     [] {
       testOptimizer(true);
       testNarrowStates(true);
     }},
    {"adamw_split", [] { testSplitMaster(true); }},
    {"add", testAdd},
    {"add_bias", [] { testTable("add_bias"); }},
    {"add_positions", [] { testTable("add_positions"); }},
    {"attention", [] { testAttention(false); }},
    {"attention_grad", [] { testAttention(true); }},
    {"bias_grad", [] { testTable("bias_grad"); }},
    {"cast", testCast},
    {"clip_scale", testClipScale},
    {"concat", testConcat},
    {"count_labels", testCountLabels},
    {"cross_entropy",
     [] {
       testCrossEntropy(false);
       testSequenceMean(false);
     }},
    {"cross_entropy_grad",
     [] {
       testCrossEntropy(true);
       testSequenceMean(true);
     }},
    {"document_starts", testDocumentStarts},
    {"embedding", [] { testEmbedding(false); }},
    {"embedding_grad", [] { testEmbedding(true); }},
    {"full", testFull},
    {"gelu", [] { testGelu(false); }},
    {"gelu_grad", [] { testGelu(true); }},
    {"keep_first", testKeepFirst},
    {"layer_norm", [] { testLayerNorm(false); }},
    {"layer_norm_grad", [] { testLayerNorm(true); }},
    {"linear", [] { testLinear("linear"); }},
    {"linear_dgrad", [] { testLinear("linear_dgrad"); }},
    {"linear_wgrad", [] { testLinear("linear_wgrad"); }},
    {"mul", testMul},
    {"positions_grad", [] { testTable("positions_grad"); }},
    {"rms_norm",
     [] {
       testRmsNorm(false);
       testUnitOffset(false);
     }},
    {"rms_norm_grad",
     [] {
       testRmsNorm(true);
       testUnitOffset(true);
     }},
    {"rope", testRope},
    {"scale", testScale},
    {"sgd",
     [] {
       testOptimizer(false);
       testNarrowStates(false);
     }},
    {"sgd_split", [] { testSplitMaster(false); }},
    {"softcap", [] { testSoftcap(false); }},
    {"softcap_grad", [] { testSoftcap(true); }},
    {"sum_squares", testSumSquares},
    {"swiglu", [] { testSwiglu(false); }},
    {"swiglu_grad", [] { testSwiglu(true); }},
};

TEST(Kernels, EveryKernelOfTheRegistryHasACase) {
  for (const plan::KernelSpec &kernel : plan::kernelRegistry())
    EXPECT_TRUE(cases.count(std::string(kernel.name)))
        << "kernel " << kernel.name << " has no conformance case";
}

class Kernel : public testing::TestWithParam<std::string> {};

TEST_P(Kernel, ComputesItsMeaning) {
  if (std::string reason = whyNotHere(); !reason.empty())
    GTEST_SKIP() << reason;
  cases.at(GetParam())();
}

std::vector<std::string> caseNames() {
  std::vector<std::string> names;
  for (const auto &[name, test] : cases)
    names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, Kernel, testing::ValuesIn(caseNames()),
                         [](const testing::TestParamInfo<std::string> &info) {
                           return info.param;
                         });

TEST(Kernels, OutOfRangeIdsAreErrors) {
  if (std::string reason = whyNotHere(); !reason.empty())
    GTEST_SKIP() << reason;
  HostPlan plan;
  uint32_t ids = plan.buffer(8, pb::Buffer::INPUT);
  uint32_t table = plan.buffer(48, pb::Buffer::PERSISTENT);
  uint32_t out = plan.buffer(32);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "embedding",
              {operand(ids, pb::I32, {2}), operand(table, pb::F32, {3, 4}),
               operand(out, pb::F32, {2, 4})});
  for (int32_t id : {-1, 3}) {
    auto backend = backendUnderTest(plan.plan);
    write<int32_t>(*backend, 0, ids, {2, id});
    std::string message = backend->runStep(0, nullptr).message();
    EXPECT_NE(message.find("token id " + std::to_string(id) +
                           " at position 1 is outside the table's 3 rows"),
              std::string::npos)
        << message;
  }
}

/// Documents start at or before each of their tokens.
TEST(Kernels, OutOfRangeDocumentStartsAreErrors) {
  if (std::string reason = whyNotHere(); !reason.empty())
    GTEST_SKIP() << reason;
  HostPlan plan;
  uint32_t starts = plan.buffer(16, pb::Buffer::INPUT);
  uint32_t x = plan.buffer(32, pb::Buffer::PERSISTENT);
  uint32_t table = plan.buffer(16, pb::Buffer::PERSISTENT);
  uint32_t out = plan.buffer(32);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "add_positions",
              {operand(x, pb::F32, {2, 2, 2}), operand(table, pb::F32, {2, 2}),
               operand(out, pb::F32, {2, 2, 2}),
               operand(starts, pb::I32, {2, 2})});
  for (int32_t start : {-1, 2}) {
    auto backend = backendUnderTest(plan.plan);
    write<int32_t>(*backend, 0, starts, {0, 1, 0, start});
    std::string message = backend->runStep(0, nullptr).message();
    EXPECT_NE(message.find("the document of token 1 of a sequence starts at " +
                           std::to_string(start) +
                           ", expected an index from 0 to the token's"),
              std::string::npos)
        << message;
  }
}

} // namespace
