//===- KernelCasesNorm.cpp - Norms ----------------------------------------===//

#include "KernelCases.h"

#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

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

} // namespace

const KernelCases &gtp::test::normCases() {
  static const KernelCases cases = {
      {"layer_norm", [] { testLayerNorm(false); }},
      {"layer_norm_grad", [] { testLayerNorm(true); }},
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
  };
  return cases;
}
