//===- KernelCasesActivation.cpp - Activations and products of elements ---===//

#include "KernelCases.h"

#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

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

} // namespace

const KernelCases &gtp::test::activationCases() {
  static const KernelCases cases = {
      {"gelu", [] { testGelu(false); }},
      {"gelu_grad", [] { testGelu(true); }},
      {"mul", testMul},
      {"scale", testScale},
      {"softcap", [] { testSoftcap(false); }},
      {"softcap_grad", [] { testSoftcap(true); }},
      {"swiglu", [] { testSwiglu(false); }},
      {"swiglu_grad", [] { testSwiglu(true); }},
  };
  return cases;
}
