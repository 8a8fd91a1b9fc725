//===- FiniteDifference.h - Gradients without calculus --------------------===//

#ifndef GTP_TEST_LIB_FINITEDIFFERENCE_H
#define GTP_TEST_LIB_FINITEDIFFERENCE_H

#include "TfmInterpreter.h"

#include <random>

namespace gtp::test {

/// Uniform in [-1, 1), the same on every platform.
inline double uniform(std::mt19937_64 &generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
}

inline void fillUniform(Tensor &tensor, std::mt19937_64 &generator) {
  for (double &value : tensor.values)
    value = uniform(generator);
}

/// Central differences of fourth order of `loss` with respect to `variable`,
/// which `loss` reads.
template <typename Loss>
Tensor finiteDifferences(Tensor &variable, Loss loss) {
  constexpr double step = 1e-3;
  Tensor result = variable;
  for (size_t i = 0; i < variable.values.size(); ++i) {
    double &value = variable.values[i];
    double saved = value;
    auto at = [&](double offset) {
      value = saved + offset;
      return loss();
    };
    result.values[i] =
        (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) /
        (12 * step);
    value = saved;
  }
  return result;
}

/// The largest difference, relative to the largest element of `expected`.
inline double relativeError(const Tensor &found, const Tensor &expected) {
  double error = 0, scale = 0;
  for (auto [a, b] : llvm::zip_equal(found.values, expected.values)) {
    error = std::max(error, std::abs(a - b));
    scale = std::max(scale, std::abs(b));
  }
  return scale == 0 ? error : error / scale;
}

} // namespace gtp::test

#endif // GTP_TEST_LIB_FINITEDIFFERENCE_H
