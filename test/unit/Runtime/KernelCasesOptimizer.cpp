//===- KernelCasesOptimizer.cpp - Gradient norm, clipping, updates --------===//

#include "KernelCases.h"

#include "gtp/Support/BFloat16.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

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

} // namespace

const KernelCases &gtp::test::optimizerCases() {
  static const KernelCases cases = {
      {"adamw",
       [] {
         testOptimizer(true);
         testNarrowStates(true);
       }},
      {"adamw_split", [] { testSplitMaster(true); }},
      {"clip_scale", testClipScale},
      {"sgd",
       [] {
         testOptimizer(false);
         testNarrowStates(false);
       }},
      {"sgd_split", [] { testSplitMaster(false); }},
      {"sum_squares", testSumSquares},
  };
  return cases;
}
