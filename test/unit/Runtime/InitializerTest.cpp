//===- InitializerTest.cpp ------------------------------------------------===//

#include "gtp-rt/Initializer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace gtp::rt;

static std::vector<float> values(uint64_t seed, const char *name,
                                 uint64_t begin, uint64_t count) {
  std::vector<float> result(count);
  initializeNormal(seed, name, 0.02, begin, count, result.data());
  return result;
}

TEST(Initializer, AnyPieceEqualsThePieceOfTheWhole) {
  std::vector<float> whole = values(7, "a.weight", 0, 64);
  for (uint64_t begin = 0; begin < 9; ++begin)
    for (uint64_t count = 0; count < 9; ++count)
      EXPECT_EQ(values(7, "a.weight", begin, count),
                std::vector<float>(&whole[begin], &whole[begin + count]));
}

TEST(Initializer, SeedAndNameBothMatter) {
  EXPECT_NE(values(0, "a.weight", 0, 8), values(1, "a.weight", 0, 8));
  EXPECT_NE(values(0, "a.weight", 0, 8), values(0, "b.weight", 0, 8));
}

// From a second implementation of the formula; a change here changes every run
// that starts without weights.
TEST(Initializer, ValuesAreAContract) {
  std::vector<float> found = values(0, "model.embed_tokens.weight", 0, 4);
  EXPECT_FLOAT_EQ(found[0], -0.015726277604699135f);
  EXPECT_FLOAT_EQ(found[1], -0.021630240604281425f);
  EXPECT_FLOAT_EQ(found[2], 0.010316289961338043f);
  EXPECT_FLOAT_EQ(found[3], 0.0025292530190199614f);
  found =
      values(3, "model.layers.0.self_attn.q_proj.weight", uint64_t(1) << 33, 2);
  EXPECT_FLOAT_EQ(found[0], -0.0015326652210205793f);
  EXPECT_FLOAT_EQ(found[1], 0.005715243052691221f);
}

TEST(Initializer, IsNormal) {
  constexpr uint64_t kCount = 1 << 20;
  std::vector<float> sample = values(3, "w", 0, kCount);
  double sum = 0, squares = 0, fourth = 0;
  for (float value : sample) {
    ASSERT_TRUE(std::isfinite(value));
    double x = value / 0.02;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.005);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.05);
}
