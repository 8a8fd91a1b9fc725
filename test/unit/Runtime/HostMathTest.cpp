//===- HostMathTest.cpp - What the host's kernels are made of -------------===//

#include "Blas.h"
#include "VectorMath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

using namespace gtp::rt::host;

namespace {

TEST(HostMath, FastExpIsWithinTwoUlp) {
  double worst = 0;
  for (float x = -87; x < 88; x += 0.0007f) {
    double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(fastExp(x)) - exact) /
                                exact);
  }
  EXPECT_LT(worst, 2.4e-7);
}

TEST(HostMath, FastExpAtTheEnds) {
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fastExp(0), 1);
  EXPECT_EQ(fastExp(-0.0f), 1);
  EXPECT_EQ(fastExp(-88), 0);
  EXPECT_EQ(fastExp(-infinity), 0);
  EXPECT_EQ(fastExp(1000), fastExp(88));
  EXPECT_TRUE(std::isfinite(fastExp(infinity)));
  EXPECT_TRUE(std::isnan(fastExp(std::nanf(""))));
}

TEST(HostMath, SumsAndMaximaOfAllLengths) {
  for (uint64_t length = 1; length < 40; ++length) {
    std::vector<float> x, y;
    double squares = 0, products = 0;
    float most = -1e9f;
    for (uint64_t i = 0; i < length; ++i) {
      x.push_back(static_cast<float>(i * 37 % 29) - 14.5f);
      y.push_back(static_cast<float>(i * 11 % 23) - 3);
      squares += static_cast<double>(x[i]) * x[i];
      products += static_cast<double>(x[i]) * y[i];
      most = std::max(most, x[i]);
    }
    // Small halves: exact in any order.
    EXPECT_EQ(sumSquares(x.data(), length), squares);
    EXPECT_EQ(dot(x.data(), y.data(), length), products);
    EXPECT_EQ(maximum(x.data(), length), most);
  }
}

/// A BLAS that may not be called from several threads mixes up their buffers.
TEST(HostMath, ProductsOfSeveralThreadsDoNotMix) {
  ASSERT_TRUE(prepareBlas().isOk());
  constexpr uint64_t size = 48;
  std::vector<float> a(size * size), b(size * size), expected(size * size);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    b[i] = static_cast<float>(i * 53 % 97) / 48 - 1;
  }
  multiply(size, size, size, 1, {a.data(), size}, {b.data(), size, true}, false,
           expected.data(), size);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, factor = static_cast<float>(1 << thread)] {
      std::vector<float> out(size * size);
      for (int time = 0; time < 2000; ++time) {
        multiply(size, size, size, factor, {a.data(), size},
                 {b.data(), size, true}, false, out.data(), size);
        for (size_t i = 0; i < out.size(); ++i)
          if (out[i] != factor * expected[i]) {
            ADD_FAILURE() << "element " << i << " of product " << time;
            return;
          }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(HostMath, EmptySumsAreZero) {
  float out[] = {3, 3};
  multiply(1, 2, 0, 1, {out, 1}, {out, 2}, true, out, 2);
  EXPECT_EQ(out[0], 3);
  multiply(1, 2, 0, 1, {out, 1}, {out, 2}, false, out, 2);
  EXPECT_EQ(out[1], 0);
}

} // namespace
