//===- KernelCases.cpp - What cases of kernels share ----------------------===//

#include "KernelCases.h"

using namespace gtp::test;

Tensor gtp::test::differentiate(const Forward &forward,
                                std::vector<Tensor> inputs, size_t which,
                                const Tensor &dy) {
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

Tensor gtp::test::map(const Tensor &x, const std::function<double(size_t)> &f) {
  Tensor y(x.dims);
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] = f(i);
  return y;
}

Tensor gtp::test::scalar(double value) { return Tensor({}, value); }

Tensor gtp::test::documents(uint64_t batch, uint64_t length) {
  Tensor starts({batch, length});
  for (uint64_t b = 0; b < batch; ++b)
    for (uint64_t t = 1; t < length; ++t) {
      bool begins = (t * t + b) % 7 < 2;
      starts.at(b, t) = begins ? static_cast<double>(t) : starts.at(b, t - 1);
    }
  return starts;
}
