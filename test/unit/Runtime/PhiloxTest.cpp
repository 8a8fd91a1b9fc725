//===- PhiloxTest.cpp -----------------------------------------------------===//

#include "gtp-rt/Philox.h"

#include <gtest/gtest.h>

using namespace gtp::rt;

// The lines "philox4x32 10" of Random123's tests/kat_vectors.
TEST(Philox, AgreesWithThePublishedVectors) {
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, PutsTheLowWordOfAU64First) {
  auto block =
      philox2x64(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e);
  EXPECT_EQ(block[0], 0x94fdccebd16cfe09u);
  EXPECT_EQ(block[1], 0x24126ea15001e420u);
}
