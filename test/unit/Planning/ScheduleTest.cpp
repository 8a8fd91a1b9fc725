//===- ScheduleTest.cpp - Schedules are legal, priced right and good ------===//

#include "TrainingStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>

using namespace gtp::planning;

/// The least step under the cap over all schedules; -1 when there is none.
static int64_t bestByBruteForce(const ScheduleProblem &problem) {
  int64_t best = -1;
  Schedule schedule;
  schedule.triggers.resize(problem.gathers.size());
  schedule.releases.resize(problem.reductions.size());
  std::vector<uint32_t> gathers = problem.gatherOrder();
  std::vector<uint32_t> reductions = problem.reductionOrder();
  std::function<void(size_t)> release = [&](size_t i) {
    if (i == reductions.size()) {
      Timeline timeline = problem.simulate(schedule);
      Schedule claimed = schedule;
      claimed.stepNs = timeline.stepNs;
      // Cheaper than the cap's own check: ask verify(), and look at what it
      // says.
      gtp::Status status = problem.verify(claimed);
      if (!status.isOk() &&
          status.message().find("above the cap") != std::string::npos)
        return;
      if (best < 0 || timeline.stepNs < best)
        best = timeline.stepNs;
      return;
    }
    const Reduction &reduction = problem.reductions[reductions[i]];
    int64_t first = int64_t(reduction.producer) + 1;
    if (i)
      first = std::max(first, schedule.releases[reductions[i - 1]]);
    for (int64_t r = first; r <= int64_t(reduction.consumer); ++r) {
      schedule.releases[reductions[i]] = r;
      release(i + 1);
    }
  };
  std::function<void(size_t)> trigger = [&](size_t i) {
    if (i == gathers.size())
      return release(0);
    const Gather &gather = problem.gathers[gathers[i]];
    for (int64_t t = i ? schedule.triggers[gathers[i - 1]] : -1;
         t < int64_t(gather.firstUse); ++t) {
      schedule.triggers[gathers[i]] = t;
      trigger(i + 1);
    }
  };
  trigger(0);
  return best;
}

TEST(ScheduleProblem, SmallOnesAgainstAllSchedules) {
  std::mt19937 random(1);
  int64_t achieved = 0, optimum = 0, bound = 0;
  for (int round = 0; round < 300; ++round) {
    ScheduleProblem problem =
        randomProblem(random, 2 + random() % 5, random() % 4, random() % 3);
    int64_t least = problem.minimalMemory().bytes;
    if (random() % 2)
      problem.capBytes = std::max<int64_t>(0, least - 2 + random() % 12);
    ASSERT_TRUE(problem.check().isOk()) << problem.check().message();
    int64_t best = bestByBruteForce(problem);
    auto schedule = problem.solve();
    ASSERT_EQ(schedule.isOk(), best >= 0) << problem.print();
    ASSERT_EQ(schedule.isOk(), problem.capBytes >= least);
    if (!schedule.isOk())
      continue;
    gtp::Status status = problem.verify(*schedule);
    ASSERT_TRUE(status.isOk()) << status.message() << "\n"
                               << problem.print(&*schedule);
    ASSERT_LE(schedule->lowerBoundNs, best) << problem.print(&*schedule);
    ASSERT_LE(best, schedule->stepNs);
    achieved += schedule->stepNs;
    optimum += best;
    bound += schedule->lowerBoundNs;
  }
  std::printf("achieved %.3f of the optimum, bound %.3f\n",
              double(achieved) / optimum, double(bound) / optimum);
  EXPECT_LE(achieved, optimum + optimum / 25);
}

TEST(ScheduleProblem, LargerOnesVerify) {
  std::mt19937 random(2);
  for (int round = 0; round < 150; ++round) {
    ScheduleProblem problem =
        randomProblem(random, 1 + random() % 60, random() % 20, random() % 20);
    for (int64_t spare : {0, 5, 30, 1000}) {
      problem.capBytes = problem.minimalMemory().bytes + spare;
      auto schedule = problem.solve();
      ASSERT_TRUE(schedule.isOk()) << schedule.message();
      gtp::Status status = problem.verify(*schedule);
      ASSERT_TRUE(status.isOk()) << status.message() << "\n"
                                 << problem.print(&*schedule);
    }
    problem.capBytes = problem.minimalMemory().bytes - 1;
    if (problem.capBytes >= 0)
      EXPECT_FALSE(problem.solve().isOk());
  }
}

/// Without contention the timeline is the longest path through the waits.
TEST(ScheduleProblem, TimelineIsTheLongestPath) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    ScheduleProblem problem =
        randomProblem(random, 1 + random() % 20, random() % 10, random() % 10);
    problem.sharedLinkPermille = 1000;
    for (Gather &gather : problem.gathers)
      gather.cost.contentionNs = gather.cost.slowdownPermille = 0;
    for (Reduction &reduction : problem.reductions)
      reduction.cost.contentionNs = reduction.cost.slowdownPermille = 0;
    for (ComputeOp &op : problem.ops)
      op.crowdedPermille = 0;
    auto schedule = problem.solve();
    ASSERT_TRUE(schedule.isOk());
    Timeline timeline = problem.simulate(*schedule);

    std::vector<int64_t> gatherEnd(problem.gathers.size(), -1);
    std::vector<int64_t> reductionEnd(problem.reductions.size(), -1);
    std::vector<int64_t> opEnd(problem.ops.size());
    std::vector<uint32_t> gathers = problem.gatherOrder();
    std::vector<uint32_t> reductions = problem.reductionOrder();
    size_t nextGather = 0, nextReduction = 0;
    int64_t gatherFree = 0, reduceFree = 0, computeFree = 0;
    for (int64_t op = -1; op < int64_t(problem.ops.size()); ++op) {
      if (op >= 0) {
        for (size_t g = 0; g < gatherEnd.size(); ++g)
          if (problem.gathers[g].firstUse == op)
            computeFree = std::max(computeFree, gatherEnd[g]);
        for (size_t r = 0; r < reductionEnd.size(); ++r)
          if (schedule->releases[r] == op)
            computeFree = std::max(computeFree, reductionEnd[r]);
        EXPECT_EQ(timeline.compute[op].start, computeFree);
        computeFree += problem.ops[op].durationNs;
        EXPECT_EQ(timeline.compute[op].end, computeFree);
      }
      for (; nextGather < gathers.size() &&
             schedule->triggers[gathers[nextGather]] <= op;
           ++nextGather) {
        uint32_t g = gathers[nextGather];
        gatherFree = std::max(gatherFree, op < 0 ? 0 : computeFree) +
                     problem.gathers[g].cost.durationNs;
        gatherEnd[g] = gatherFree;
        EXPECT_EQ(timeline.gathers[g].end, gatherFree);
      }
      for (; nextReduction < reductions.size() &&
             problem.reductions[reductions[nextReduction]].producer <= op;
           ++nextReduction) {
        uint32_t r = reductions[nextReduction];
        reduceFree = std::max(reduceFree, computeFree) +
                     problem.reductions[r].cost.durationNs;
        reductionEnd[r] = reduceFree;
        EXPECT_EQ(timeline.reductions[r].end, reduceFree);
      }
    }
    EXPECT_EQ(schedule->stepNs,
              std::max({computeFree, gatherFree, reduceFree}));
    EXPECT_EQ(schedule->contentionNs, 0);
  }
}

/// 1000 ns of compute beside a 1000 ns gather that costs it 100 ns.
TEST(ScheduleProblem, ContentionIsAdded) {
  auto parsed =
      parseScheduleProblem("schedule\n"
                           "op 0 ns=2000\n"
                           "op 1 ns=10\n"
                           "gather 0 bytes=1 ns=1000 contention=100 first=1 "
                           "last=1\n"
                           "solution step=0 compute=0 stall=0 contention=0 "
                           "lower_bound=0 peak=0 gathered_peak=0 "
                           "gradient_peak=0\n"
                           "trigger 0 -1\n");
  ASSERT_TRUE(parsed.isOk()) << parsed.message();
  Timeline timeline = parsed->problem.simulate(parsed->schedule);
  EXPECT_NEAR(timeline.compute[0].end, 2100, 1);
  EXPECT_NEAR(timeline.contentionNs, 100, 1);
  EXPECT_EQ(timeline.stallNs, 0);
  EXPECT_EQ(timeline.gathers[0].end, 1000);
}

/// A reduction of 1000 ns that takes multiprocessors from compute of 2000 ns.
TEST(ScheduleProblem, CrowdedComputeIsSlower) {
  auto end = [](const std::string &operation, const std::string &reduction) {
    auto parsed = parseScheduleProblem(
        "schedule\n"
        "op 0 ns=10\n"
        "op 1 ns=2000" +
        operation + "\nreduction 0 bytes=1 ns=1000" + reduction +
        " producer=0 consumer=2\n"
        "solution step=0 compute=0 stall=0 contention=0 lower_bound=0 peak=0 "
        "gathered_peak=0 gradient_peak=0\n"
        "release 0 2\n");
    EXPECT_TRUE(parsed.isOk()) << parsed.message();
    return double(parsed->problem.simulate(parsed->schedule).compute[1].end);
  };
  EXPECT_NEAR(end(" crowded=1000", " holds=1"), 10 + 2500, 1);
  // The larger of both losses counts.
  EXPECT_NEAR(end(" crowded=1000", " contention=100 holds=1"), 10 + 2500, 1);
  EXPECT_NEAR(end(" crowded=1000", " contention=700 holds=1"), 10 + 2700, 1);
  EXPECT_NEAR(end("", " contention=100 holds=1"), 10 + 2100, 1);
  EXPECT_NEAR(end(" crowded=1000", " contention=100"), 10 + 2100, 1);
}

static const std::string kProblem =
    "schedule cap=100 shared_link=1000\n"
    "op 0 ns=10\n"
    "op 1 ns=10 name=mlp\n"
    "op 2 ns=10\n"
    "op 3 ns=10\n"
    "gather 0 bytes=30 ns=5 first=1 last=1 name=w0\n"
    "gather 1 bytes=40 ns=5 first=2 last=3 name=w1\n"
    "reduction 0 bytes=20 ns=8 producer=1 consumer=4 name=g0\n"
    "reduction 1 bytes=20 ns=8 producer=2 consumer=3 name=g1\n"
    "base 1 20\n"
    "base 5 30\n";

static std::string verifyText(const std::string &decisions) {
  auto parsed = parseScheduleProblem(
      kProblem +
      "solution step=0 compute=0 stall=0 contention=0 "
      "lower_bound=0 peak=0 gathered_peak=0 gradient_peak=0\n" +
      decisions);
  if (!parsed.isOk())
    return parsed.message();
  return parsed->problem.verify(parsed->schedule).message();
}

TEST(ScheduleProblem, WrongSchedulesAreNamed) {
  EXPECT_EQ(
      verifyText("trigger 0 1\ntrigger 1 1\nrelease 0 3\nrelease 1 3\n"),
      "gather 0 (w0) is issued after operation 1, but its first use is 1");
  EXPECT_EQ(verifyText("trigger 0 0\ntrigger 1 -1\nrelease 0 3\nrelease 1 3\n"),
            "gather 1 (w1) is issued after operation -1, before the gather "
            "ahead of it on the stream, 0");
  EXPECT_EQ(verifyText("trigger 0 0\ntrigger 1 1\nrelease 0 1\nrelease 1 3\n"),
            "reduction 0 (g0) is awaited before operation 1, expected 2 to 4");
  EXPECT_EQ(verifyText("trigger 0 0\ntrigger 1 1\nrelease 0 3\nrelease 1 4\n"),
            "reduction 1 (g1) is awaited before operation 4, expected 3 to 3");
  EXPECT_EQ(verifyText("trigger 0 0\ntrigger 1 1\nrelease 0 4\nrelease 1 3\n"),
            "reduction 1 (g1) is awaited before operation 3, sooner than the "
            "reduction ahead of it on the stream, 4");
  EXPECT_EQ(verifyText("trigger 0 -1\ntrigger 1 -1\nrelease 0 3\nrelease 1 "
                       "3\n"),
            "at operation 1 110 bytes are live (base 20, gathered weights 70, "
            "full gradients 20), above the cap of 100");
  EXPECT_EQ(verifyText("trigger 0 0\n"),
            "schedule has 1 triggers and 0 releases, expected 2 and 2");
  EXPECT_EQ(verifyText("trigger 0 -1\ntrigger 1 1\nrelease 0 2\nrelease 1 "
                       "3\n"),
            "step_ns is claimed as 0, found 56");
}

TEST(ScheduleProblem, EachPredictionIsChecked) {
  auto parsed = parseScheduleProblem(kProblem);
  ASSERT_TRUE(parsed.isOk()) << parsed.message();
  const ScheduleProblem &problem = parsed->problem;
  auto schedule = problem.solve();
  ASSERT_TRUE(schedule.isOk()) << schedule.message();
  ASSERT_TRUE(problem.verify(*schedule).isOk());
  for (int64_t Schedule::*value :
       {&Schedule::stepNs, &Schedule::computeNs, &Schedule::stallNs,
        &Schedule::contentionNs, &Schedule::lowerBoundNs, &Schedule::peakBytes,
        &Schedule::gatheredPeakBytes, &Schedule::gradientPeakBytes}) {
    Schedule wrong = *schedule;
    wrong.*value += 1;
    EXPECT_NE(problem.verify(wrong).message().find("is claimed as"),
              std::string::npos);
  }
}

TEST(ScheduleProblem, ACapThatCannotBeMetIsExplained) {
  auto parsed = parseScheduleProblem(kProblem);
  ASSERT_TRUE(parsed.isOk());
  ScheduleProblem problem = parsed->problem;
  problem.capBytes = 50;
  EXPECT_EQ(problem.solve().message(),
            "a cap of 50 bytes cannot be met: any schedule needs 90 bytes at "
            "operation 2: activations and state 30, gathered weights 40, full "
            "gradients 20; the largest part is gathered weights");
  problem.capBytes = 90;
  EXPECT_TRUE(problem.solve().isOk());
  ScheduleOptions options;
  options.prefetch = ScheduleOptions::Prefetch::Distance;
  options.distance = 2;
  EXPECT_EQ(problem.solve(options).message(),
            "a cap of 90 bytes is exceeded by prefetch distance 2, which needs "
            "110; with automatic prefetch 90 can do");
}

TEST(ScheduleProblem, CheckNamesWhatIsWrong) {
  auto check = [](const std::string &lines) {
    auto parsed =
        parseScheduleProblem("schedule\nop 0 ns=1\nop 1 ns=1\n" + lines);
    return parsed.isOk() ? parsed->problem.solve().message() : parsed.message();
  };
  EXPECT_EQ(check(""), "");
  EXPECT_EQ(check("gather 0 bytes=1 ns=1 first=1 last=0\n"),
            "gather 0 is used from operation 1 to 0 of 2");
  EXPECT_EQ(check("gather 0 bytes=1 ns=1 first=1 last=2\n"),
            "gather 0 is used from operation 1 to 2 of 2");
  EXPECT_EQ(check("reduction 0 bytes=1 ns=1 producer=1 consumer=1 name=x\n"),
            "reduction 0 (x) is produced by operation 1 and consumed by 1 of "
            "2");
  EXPECT_EQ(check("gather 0 bytes=1 ns=2000000000000 first=1 last=1\n"),
            "gather 0: times must be from 0 to 1e12 ns");
  EXPECT_EQ(
      check("gather 0 bytes=1 ns=2 slowdown=2000000 first=1 last=1 name=w\n"),
      "gather 0 (w): slowdown must be from 0 to 1000000 permille");
  EXPECT_EQ(check("op 2 ns=1 crowded=2000000 name=x\n"),
            "operation 2 (x): crowded must be from 0 to 1000000 permille");
  EXPECT_EQ(check("base 5 1\n"), "base profile has a point 5, expected 0 to 4");
  EXPECT_EQ(check("base 1 -1\n"), "base profile holds -1 bytes");
  EXPECT_EQ(check("gather 0 bytes=1 first=1 last=1\n"),
            "line 4: 'gather' needs 'ns='");
}

TEST(ScheduleProblem, TextRoundTrips) {
  std::mt19937 random(6);
  for (int round = 0; round < 30; ++round) {
    ScheduleProblem problem = randomProblem(random, 8, 4, 4);
    auto schedule = problem.solve();
    ASSERT_TRUE(schedule.isOk());
    std::string text = problem.print(&*schedule);
    auto parsed = parseScheduleProblem(text);
    ASSERT_TRUE(parsed.isOk()) << parsed.message();
    EXPECT_EQ(parsed->problem.print(&parsed->schedule), text);
    gtp::Status status = parsed->problem.verify(parsed->schedule);
    EXPECT_TRUE(status.isOk()) << status.message();
  }
}

TEST(ScheduleProblem, ForcedPrefetch) {
  ScheduleProblem problem = trainingStep(4, 400'000, 100'000);
  ScheduleOptions options;
  options.prefetch = ScheduleOptions::Prefetch::Off;
  auto off = problem.solve(options);
  ASSERT_TRUE(off.isOk());
  ASSERT_TRUE(problem.verify(*off).isOk()) << problem.verify(*off).message();
  for (size_t i = 0; i < problem.gathers.size(); ++i)
    EXPECT_EQ(off->triggers[i], int64_t(problem.gathers[i].firstUse) - 1);
  int64_t previousStep = off->stepNs, previousPeak = off->gatheredPeakBytes;
  options.prefetch = ScheduleOptions::Prefetch::Distance;
  for (uint32_t distance : {1, 2, 3}) {
    options.distance = distance;
    auto schedule = problem.solve(options);
    ASSERT_TRUE(schedule.isOk());
    gtp::Status status = problem.verify(*schedule);
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_LE(schedule->stepNs, previousStep);
    EXPECT_GE(schedule->gatheredPeakBytes, previousPeak);
    previousStep = schedule->stepNs;
    previousPeak = schedule->gatheredPeakBytes;
  }
}

/// Planned on prices, played with slower collectives: the lead absorbs it.
TEST(ScheduleProblem, LeadIsRobust) {
  ScheduleProblem problem = trainingStep(16, 250'000, 100'000);
  auto schedule = problem.solve();
  ASSERT_TRUE(schedule.isOk());
  for (int64_t percent : {100, 120, 140}) {
    ScheduleProblem slower = problem;
    for (Gather &gather : slower.gathers)
      gather.cost.durationNs = gather.cost.durationNs * percent / 100;
    for (Reduction &reduction : slower.reductions)
      reduction.cost.durationNs = reduction.cost.durationNs * percent / 100;
    // Waits for the first weight and the last gradient cannot be hidden.
    Schedule early = *schedule;
    early.triggers.assign(early.triggers.size(), -1);
    early.releases.assign(early.releases.size(), problem.ops.size());
    int64_t stall = slower.simulate(*schedule).stallNs;
    int64_t unavoidable = slower.simulate(early).stallNs;
    std::printf("collectives at %lld %%: stall %.3f ms, %.3f unavoidable\n",
                static_cast<long long>(percent), stall / 1e6,
                unavoidable / 1e6);
    EXPECT_LE(stall - unavoidable, schedule->computeNs / 200);
  }
}

TEST(ScheduleProblem, EightyLayers) {
  auto ms = [](auto duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration)
        .count();
  };
  // From well hidden to link-bound: weights of 26 units, compute of 6.5.
  for (int64_t gatherNs : {100'000, 400'000, 800'000, 1'600'000}) {
    ScheduleProblem problem = trainingStep(80, gatherNs, 100'000);
    auto start = std::chrono::steady_clock::now();
    auto schedule = problem.solve();
    auto end = std::chrono::steady_clock::now();
    ASSERT_TRUE(schedule.isOk()) << schedule.message();
    ASSERT_TRUE(problem.verify(*schedule).isOk());
    std::string rivals;
    for (uint32_t distance : {1, 2, 3}) {
      ScheduleOptions options;
      options.prefetch = ScheduleOptions::Prefetch::Distance;
      options.distance = distance;
      auto rival = problem.solve(options);
      ASSERT_TRUE(rival.isOk());
      EXPECT_LE(schedule->stepNs, rival->stepNs + rival->stepNs / 500);
      char text[128];
      std::snprintf(text, sizeof text, "; d%u %.3f ms, %lld MiB", distance,
                    rival->stepNs / 1e6,
                    static_cast<long long>(rival->gatheredPeakBytes >> 20));
      rivals += text;
    }
    std::printf("gather %lld us: step %.3f ms, bound %.3f, stall %.3f, "
                "contention %.3f, gathered %lld MiB, gradients %lld MiB, "
                "solved in %lld ms%s\n",
                static_cast<long long>(gatherNs / 1000), schedule->stepNs / 1e6,
                schedule->lowerBoundNs / 1e6, schedule->stallNs / 1e6,
                schedule->contentionNs / 1e6,
                static_cast<long long>(schedule->gatheredPeakBytes >> 20),
                static_cast<long long>(schedule->gradientPeakBytes >> 20),
                static_cast<long long>(ms(end - start)), rivals.c_str());
  }
}
