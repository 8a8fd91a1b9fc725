//===- BFloat16Test.cpp - Roundings, and the halves of a float32 ----------===//

#include "gtp/Support/BFloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace gtp;

namespace {

/// Every upper half with lower halves around the tie and the ends.
template <typename Check>
void forAllHalves(Check check) {
  for (uint32_t high = 0; high <= 0xffff; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(floatFromBits(high << 16 | low));
}

TEST(BFloat16, RoundsToNearestEven) {
  forAllHalves([](float value) {
    BFloat16 rounded(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(float(rounded)));
      return;
    }
    uint32_t bits = bitsOf(value), below = bits >> 16, low = bits & 0xffff;
    bool up = low > 0x8000 || (low == 0x8000 && (below & 1));
    ASSERT_EQ(rounded.raw(), below + up) << std::hex << bits;
  });
}

TEST(BFloat16, DoublesRoundOnce) {
  // 1 + 2^-8 is a tie; a little more, which float does not hold, is none.
  double tie = 1 + std::ldexp(1, -8), more = tie + std::ldexp(1, -40);
  EXPECT_EQ(float(BFloat16(tie)), 1);
  EXPECT_EQ(float(BFloat16(more)), 1 + std::ldexp(1, -7));
  EXPECT_EQ(float(BFloat16(-more)), -1 - std::ldexp(1, -7));
  double odd = 1 + 3 * std::ldexp(1, -8), less = odd - std::ldexp(1, -40);
  EXPECT_EQ(float(BFloat16(odd)), 1 + std::ldexp(1, -6));
  EXPECT_EQ(float(BFloat16(less)), 1 + std::ldexp(1, -7));
  EXPECT_EQ(float(BFloat16(1e300)), std::numeric_limits<float>::infinity());
  forAllHalves([](float value) {
    if (!std::isnan(value))
      ASSERT_EQ(BFloat16(double(value)).raw(), BFloat16(value).raw());
  });
}

TEST(BFloat16, HalvesAreTheFloat) {
  forAllHalves([](float value) {
    SplitFloat halves(value);
    float back = SplitFloat(halves.high, halves.low).join();
    if (std::isnan(value)) {
      ASSERT_EQ(bitsOf(back) & 0x7fffffff, 0x7fc00000u);
      return;
    }
    ASSERT_EQ(bitsOf(back), bitsOf(value));
    // The nearest, ties away from zero.
    uint32_t bits = bitsOf(value);
    ASSERT_EQ(halves.high.raw(), (bits >> 16) + ((bits & 0xffff) >= 0x8000));
  });
}

} // namespace
