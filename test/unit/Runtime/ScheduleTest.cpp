//===- ScheduleTest.cpp ---------------------------------------------------===//

#include "gtp-rt/Schedule.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace gtp::rt;

static double rate(const char *text, uint64_t step, uint64_t steps) {
  auto schedule = Schedule::parse(text);
  EXPECT_TRUE(schedule) << text;
  return schedule->rate(0.5, step, steps);
}

TEST(Schedule, WarmUpIsLinearAndReachesThePeak) {
  for (const char *text : {"const:4", "cosine:4,0.1", "linear:4,0.1"}) {
    EXPECT_EQ(rate(text, 1, 10), 0.125) << text;
    EXPECT_EQ(rate(text, 3, 10), 0.375) << text;
    EXPECT_EQ(rate(text, 4, 10), 0.5) << text;
  }
}

TEST(Schedule, AConstantStays) {
  EXPECT_EQ(rate("const", 1, 10), 0.5);
  EXPECT_EQ(rate("const", 10, 10), 0.5);
  EXPECT_EQ(rate("const:4", 5, 10), 0.5);
}

TEST(Schedule, ADecayEndsWithItsMinimumInTheLastStep) {
  EXPECT_NEAR(rate("cosine:4,0.1", 7, 10), 0.3, 1e-15);
  EXPECT_NEAR(rate("cosine:4,0.1", 5, 10),
              0.1 + 0.4 * (1 + std::cos(M_PI / 6)) / 2, 1e-15);
  EXPECT_NEAR(rate("cosine:4,0.1", 10, 10), 0.1, 1e-15);
  EXPECT_NEAR(rate("linear:0,0.1", 1, 10), 0.46, 1e-15);
  EXPECT_NEAR(rate("linear:4,0.1", 7, 10), 0.3, 1e-15);
  EXPECT_NEAR(rate("linear:4,0", 10, 10), 0, 1e-15);
  // A warm-up as long as the run leaves no decay.
  EXPECT_EQ(rate("cosine:10,0.1", 10, 10), 0.5);
}

TEST(Schedule, AnythingElseIsNotOne) {
  for (const char *text :
       {"", "step", "const:", "const:x", "const:-1", "const:1,2", "cosine",
        "cosine:", "cosine:10", "cosine:10,", "cosine:,0", "cosine:10,-1",
        "cosine:10,nan", "cosine:10,inf", "cosine:10,1,2", "cosine:1.5,0",
        "linear:18446744073709551616,0", "Linear:1,0"})
    EXPECT_FALSE(Schedule::parse(text)) << text;
}
