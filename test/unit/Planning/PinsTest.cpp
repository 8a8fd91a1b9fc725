//===- PinsTest.cpp - Gathers whose trigger is pinned by hand -------------===//

#include "TrainingStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace gtp::planning;

/// Pins of random gathers, under each kind of prefetch and under caps.
TEST(ScheduleProblem, PinsHold) {
  std::mt19937 random(7);
  int pins = 0, refused = 0;
  for (int round = 0; round < 300; ++round) {
    ScheduleProblem problem =
        randomProblem(random, 1 + random() % 30, random() % 12, random() % 8);
    for (Gather &gather : problem.gathers) {
      if (random() % 3 == 0)
        gather.pinned = int64_t(random() % (gather.firstUse + 1)) - 1;
      else if (random() % 4 == 0)
        gather.automatic = true;
    }
    ASSERT_TRUE(problem.check().isOk()) << problem.check().message();
    int64_t least = problem.minimalMemory().bytes;
    if (random() % 2)
      problem.capBytes = least + random() % 10;
    using Prefetch = ScheduleOptions::Prefetch;
    for (Prefetch prefetch :
         {Prefetch::Auto, Prefetch::Off, Prefetch::Distance}) {
      ScheduleOptions options;
      options.prefetch = prefetch;
      options.distance = 1 + random() % 3;
      auto schedule = problem.solve(options);
      // Only what is forced may need more than the cap.
      ASSERT_TRUE(schedule.isOk() || prefetch != Prefetch::Auto)
          << schedule.message() << "\n"
          << problem.print();
      if (!schedule.isOk())
        continue;
      gtp::Status status = problem.verify(*schedule);
      ASSERT_TRUE(status.isOk()) << status.message() << "\n"
                                 << problem.print(&*schedule);
      int64_t pinned = -1;
      for (uint32_t i : problem.gatherOrder()) {
        if (!problem.gathers[i].pinned)
          continue;
        ++pins;
        pinned = std::max(pinned, *problem.gathers[i].pinned);
        ASSERT_EQ(schedule->triggers[i], pinned);
        // Another trigger is a wrong schedule, whatever else holds.
        Schedule wrong = *schedule;
        wrong.triggers[i] += wrong.triggers[i] >= 0 ? -1 : 1;
        refused += problem.verify(wrong).message().find(
                       " is issued after operation ") != std::string::npos;
      }
      std::string text = problem.print(&*schedule);
      auto parsed = parseScheduleProblem(text);
      ASSERT_TRUE(parsed.isOk()) << parsed.message();
      EXPECT_EQ(parsed->problem.print(&parsed->schedule), text);
    }
  }
  EXPECT_GT(pins, 500);
  EXPECT_EQ(refused, pins);
}

TEST(ScheduleProblem, PinsCountMoreThanTheOptions) {
  ScheduleProblem problem = trainingStep(4, 400'000, 100'000);
  std::vector<uint32_t> order = problem.gatherOrder();
  ScheduleOptions off, two;
  off.prefetch = ScheduleOptions::Prefetch::Off;
  two.prefetch = ScheduleOptions::Prefetch::Distance;
  two.distance = 2;
  size_t at = order.size() / 2;
  // One gather at its use, and those behind it no sooner.
  problem.gathers[order[at]].pinned = problem.triggerAhead(order, at, 0);
  auto schedule = problem.solve(two);
  ASSERT_TRUE(schedule.isOk()) << schedule.message();
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t alone = problem.triggerAhead(order, i, 2);
    int64_t pinned = *problem.gathers[order[at]].pinned;
    EXPECT_EQ(schedule->triggers[order[i]], i == at  ? pinned
                                            : i > at ? std::max(alone, pinned)
                                                     : alone);
  }
  // One early gather, and those ahead of it no later.
  problem.gathers[order[at]].pinned = problem.triggerAhead(order, at, 3);
  schedule = problem.solve(off);
  ASSERT_TRUE(schedule.isOk()) << schedule.message();
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t alone = problem.triggerAhead(order, i, 0);
    int64_t pinned = *problem.gathers[order[at]].pinned;
    EXPECT_EQ(schedule->triggers[order[i]],
              i <= at ? std::min(alone, pinned) : alone);
  }
  // One that is left to the solver: no sooner than those ahead of it.
  problem.gathers[order[at]].pinned.reset();
  problem.gathers[order[at]].automatic = true;
  schedule = problem.solve(off);
  ASSERT_TRUE(schedule.isOk()) << schedule.message();
  EXPECT_EQ(schedule->triggers[order[at]], problem.triggerAhead(order, at, 1));

  problem.gathers[order[at]].pinned = 0;
  EXPECT_NE(problem.check().message().find("is pinned and automatic"),
            std::string::npos);
  problem.gathers[order[at]].automatic = false;
  problem.gathers[order[at]].pinned = problem.gathers[order[at]].firstUse;
  EXPECT_NE(problem.check().message().find("expected -1 (the start) or one "
                                           "before its first use"),
            std::string::npos);
}
