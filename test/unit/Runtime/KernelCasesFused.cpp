//===- KernelCasesFused.cpp - Kernels that do the work of several ---------===//
//
// References in double are those of the parts one after the other. That values
// between them are rounded shows where they are bfloat16: on the host, which
// runs the parts, in test/Run/fusion.py. One that rounds only once rounds what
// it gives in float32.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "KernelCases.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

Tensor sum(const Tensor &a, const Tensor &b) {
  return map(a, [&](size_t i) { return a.values[i] + b.values[i]; });
}

/// A norm of groups of the weight's size, whose weight counts from `offset`.
Tensor norm(const std::vector<Tensor> &in, bool centered, double offset) {
  const Tensor &x = in[0], &weight = in[1];
  size_t group = weight.values.size();
  auto size = static_cast<double>(group);
  Tensor y(x.dims);
  for (size_t start = 0; start < x.values.size(); start += group) {
    double mean = 0, squares = 0;
    for (size_t i = start; i < start + group; ++i)
      mean += centered ? x.values[i] / size : 0;
    for (size_t i = start; i < start + group; ++i)
      squares += (x.values[i] - mean) * (x.values[i] - mean) / size;
    for (size_t i = 0; i < group; ++i)
      y.values[start + i] = (x.values[start + i] - mean) /
                            std::sqrt(squares + 1e-5) *
                            (offset + weight.values[i]);
  }
  return y;
}

/// Sizes that registers of a GPU hold in packs of 16 bytes, and others.
const std::array<uint64_t, 3> kShapes[] = {
    {5, 1, 11}, {3, 4, 6}, {7, 1, 256}, {3, 2, 1032}};

void testAddNorm(const std::string &name, bool centered) {
  for (auto [rows, groups, size] : kShapes)
    for (int64_t offset : {0, 1}) {
      if (centered && offset)
        continue;
      Tensor a = randomTensor({1, rows, groups * size}, 41);
      Tensor b = randomTensor(a.dims, 42), weight = randomTensor({size}, 43);
      KernelCase test(name);
      test.in(a).in(b).in(weight).out(sum(a, b)).out(
          norm({sum(a, b), weight}, centered, static_cast<double>(offset)));
      test.real("eps", 1e-5);
      if (offset)
        test.integer("unit_offset", offset);
      test.check();
    }
}

void testNormGradAdd(const std::string &name, bool centered) {
  auto forward = [&](const std::vector<Tensor> &in) {
    return norm(in, centered, 0);
  };
  for (auto [rows, groups, size] : kShapes)
    // A weight that is not trained has no gradient.
    for (bool trained : {true, false}) {
      Tensor x = randomTensor({1, rows, groups * size}, 44);
      Tensor weight = randomTensor({size}, 45), dy = randomTensor(x.dims, 46);
      Tensor residual = randomTensor(x.dims, 47);
      if (x.values.size() > 256 && !trained)
        continue; // differences of so many take long
      KernelCase test(name);
      test.in(dy).in(x).in(weight).in(residual).out(
          sum(residual, differentiate(forward, {x, weight}, 0, dy)));
      if (trained)
        test.out(differentiate(forward, {x, weight}, 1, dy));
      test.real("eps", 1e-5).tolerance(5e-5).check();
    }
}

void testBiasGelu() {
  for (bool approximate : {false, true})
    for (uint64_t columns : {5, 64}) {
      Tensor x = randomTensor({2, 3, columns}, 48);
      Tensor bias = randomTensor({columns}, 49);
      Tensor before = map(x, [&](size_t i) {
        return 3 * x.values[i] + bias.values[i % columns];
      });
      for (double &value : x.values)
        value *= 3;
      Tensor after = map(before, [&](size_t i) {
        double v = before.values[i];
        double inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
        return v *
               (1 + (approximate ? std::tanh(inner) : std::erf(v / M_SQRT2))) /
               2;
      });
      KernelCase("bias_gelu")
          .in(x)
          .in(bias)
          .out(before)
          .out(after)
          .integer("approximate", approximate)
          .check();
    }
}

void testLinearBias() {
  for (auto [batch, length, k, n] : {std::array<uint64_t, 4>{2, 3, 7, 5},
                                     {1, 1, 9, 3},
                                     {3, 5, 33, 17},
                                     {2, 4, 64, 24}}) {
    Tensor x = randomTensor({batch, length, k}, 51);
    Tensor w = randomTensor({n, k}, 52), bias = randomTensor({n}, 53);
    Tensor y({batch, length, n});
    for (uint64_t row = 0; row < y.rows(); ++row)
      for (uint64_t i = 0; i < n; ++i) {
        y.at(row, i) = bias.values[i];
        for (uint64_t j = 0; j < k; ++j)
          y.at(row, i) += x.at(row, j) * w.at(i, j);
      }
    // Without scratch, and with enough for sums in parts.
    for (uint64_t scratch : {0, 1 << 20}) {
      KernelCase test("linear_bias");
      test.in(x).in(w).in(bias).out(y);
      if (scratch)
        test.scratch(scratch);
      test.check();
    }
  }
}

/// The product is 257, which bf16 would round to 256.
void testLinearBiasRoundsOnce() {
  Tensor x({3, 8}), w({8, 8}), bias({8}), y({3, 8});
  for (uint64_t row = 0; row < 3; ++row)
    x.at(row, 0) = x.at(row, 1) = 1;
  for (uint64_t i = 0; i < 8; ++i) {
    w.at(i, 0) = 256;
    w.at(i, 1) = 1;
    bias.values[i] = -130;
    y.at(0, i) = y.at(1, i) = y.at(2, i) = 127;
  }
  const pb::DType type = pb::BF16;
  KernelCase("linear_bias")
      .in(x, type)
      .in(w, type)
      .in(bias, type)
      .out(y, type)
      .tolerance(0)
      .check();
}

void testCrossEntropyInPlace() {
  Tensor labels({2, 3});
  labels.values = {0, 10, -100, 4, 4, -100};
  for (bool mean : {false, true})
    for (uint64_t classes : {11, 96}) {
      Tensor logits = randomTensor({2, 3, classes}, 50);
      for (double &value : logits.values)
        value *= 30;
      const double count = mean ? 2 : 4;
      auto forward = [&](const std::vector<Tensor> &in) {
        double total = 0;
        for (uint64_t row = 0; row < 6; ++row) {
          if (labels.values[row] == -100)
            continue;
          double exponentials = 0;
          for (uint64_t i = 0; i < classes; ++i)
            exponentials += std::exp(in[0].at(row, i));
          double term =
              std::log(exponentials) -
              in[0].at(row, static_cast<uint64_t>(labels.values[row]));
          // Each of the two sequences has two labels.
          total += mean ? term / 2 : term;
        }
        return scalar(total / count);
      };
      KernelCase test("cross_entropy_in_place");
      test.inOut(logits, differentiate(forward, {logits}, 0, scalar(0.5)))
          .in(labels, pb::I32)
          .in(scalar(count), pb::I64)
          .in(scalar(0.5))
          .out(forward({logits}));
      if (mean)
        test.integer("sequence_mean", 1);
      test.check();
    }
}

} // namespace

const KernelCases &gtp::test::fusedCases() {
  static const KernelCases cases = {
      {"add_layer_norm", [] { testAddNorm("add_layer_norm", true); }},
      {"add_rms_norm", [] { testAddNorm("add_rms_norm", false); }},
      {"bias_gelu", testBiasGelu},
      {"cross_entropy_in_place", testCrossEntropyInPlace},
      {"layer_norm_grad_add",
       [] { testNormGradAdd("layer_norm_grad_add", true); }},
      {"linear_bias",
       [] {
         testLinearBias();
         testLinearBiasRoundsOnce();
       }},
      {"rms_norm_grad_add",
       [] { testNormGradAdd("rms_norm_grad_add", false); }},
  };
  return cases;
}
