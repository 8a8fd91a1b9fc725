//===- StepProfileTest.cpp ------------------------------------------------===//

#include "gtp-rt/StepProfile.h"
#include "BigramPlan.h"
#include "TemporaryFolder.h"
#include "gtp-rt/TraceFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

namespace {

/// Every operation of the step, one after another, each `length` long.
std::vector<OperationTime> inOrder(const plan::pb::Plan &plan, int64_t length) {
  std::vector<OperationTime> times;
  int64_t now = 1000;
  for (const OperationTime &time : predictTimes(plan)) {
    times.push_back(time);
    times.back().startNs = now;
    times.back().endNs = now += length;
  }
  return times;
}

} // namespace

TEST(StepProfile, AStepIsComputeContentionAndStall) {
  plan::pb::Plan plan = makeBigramPlan();
  RunPlan run = *RunPlan::create(plan);
  StepProfile profile(run);
  int64_t compute = 0;
  std::vector<OperationTime> times = inOrder(plan, 10);
  for (const OperationTime &time : times) {
    const plan::pb::Region &region = plan.programs(0).regions(int(time.region));
    compute +=
        plan.streams(int(region.operations(int(time.operation)).stream()))
            .kind() == plan::pb::Stream::COMPUTE;
  }
  // The median of three, and of one.
  for (int64_t length : {30, 12, 14})
    ASSERT_TRUE(profile.add(Timing::AsPlanned, inOrder(plan, length)).isOk());
  ASSERT_TRUE(profile.add(Timing::OneByOne, times).isOk());
  StepProfile::Step step = profile.step();
  EXPECT_EQ(step.steps, 3u);
  EXPECT_EQ(step.stepNs, int64_t(times.size()) * 14);
  EXPECT_EQ(step.aloneNs, compute * 10);
  EXPECT_EQ(step.besideNs, compute * 14);
  EXPECT_EQ(step.contentionNs(), compute * 4);
  EXPECT_EQ(step.stallNs(), (int64_t(times.size()) - compute) * 14);
  EXPECT_NE(profile.summary().find("(median of 3)"), std::string::npos);
}

TEST(StepProfile, WhatKernelsTakeWithoutCollectivesAndBesideThem) {
  plan::pb::Plan plan = makeBigramPlan();
  plan.add_streams()->set_kind(plan::pb::Stream::GATHER);
  plan.add_communicators();
  for (auto kind : {plan::pb::Collective::ALL_GATHER,
                    plan::pb::Collective::REDUCE_SCATTER}) {
    plan::pb::Operation *operation =
        plan.mutable_programs(0)->mutable_regions(0)->add_operations();
    operation->set_stream(uint32_t(plan.streams_size()) - 1);
    operation->mutable_collective()->set_kind(kind);
  }
  RunPlan run = *RunPlan::create(plan);
  StepProfile profile(run);
  // Everything at once, each gather over the first 4 of 10 nanoseconds and each
  // other collective over the last 8.
  std::vector<OperationTime> times = predictTimes(plan);
  for (OperationTime &time : times) {
    const plan::pb::Operation &operation = plan.programs(0)
                                               .regions(int(time.region))
                                               .operations(int(time.operation));
    time.startNs = 100;
    time.endNs = 110;
    if (operation.has_collective()) {
      bool isGather =
          operation.collective().kind() == plan::pb::Collective::ALL_GATHER;
      time.startNs = isGather ? 100 : 102;
      time.endNs = isGather ? 104 : 110;
    }
  }
  ASSERT_TRUE(profile.add(Timing::AsPlanned, times).isOk());
  ASSERT_TRUE(profile.add(Timing::OneByOne, inOrder(plan, 7)).isOk());
  for (int64_t length : {8, 6, 9})
    ASSERT_TRUE(profile.addSustained(inOrder(plan, length)).isOk());
  for (int64_t ns : {90, 80, 85, 0}) {
    profile.addWhole(ns, /*withoutCollectives=*/false);
    profile.addWhole(ns - 20, /*withoutCollectives=*/true);
  }
  EXPECT_EQ(profile.step().untimedNs, 85);
  EXPECT_EQ(profile.step().withoutCollectivesNs, 65);
  TemporaryFolder folder;
  ASSERT_TRUE(profile.write(folder.path("p"), "here", false).isOk());
  auto measured = nlohmann::json::parse(TemporaryFolder::read(folder.path("p")))
                      .at("measured");
  EXPECT_EQ(measured.at("step").at("untimed_ns"), 85);
  EXPECT_EQ(measured.at("step").at("without_collectives_ns"), 65);
  for (const auto &kernel : measured.at("kernels")) {
    EXPECT_EQ(kernel.at("alone_ns"), 7);
    EXPECT_EQ(kernel.at("sustained_ns"), 8);
    EXPECT_EQ(kernel.at("beside_mean_ns"), 10);
    if (kernel.at("kernel") == "linear") {
      EXPECT_EQ(kernel.at("beside_gathers_ns"), 4);
      EXPECT_EQ(kernel.at("beside_reductions_ns"), 8);
    }
  }
  EXPECT_FALSE(measured.at("collectives").empty());
  for (const auto &collective : measured.at("collectives"))
    EXPECT_FALSE(collective.contains("sustained_ns"));
}

TEST(StepProfile, TimesOfAnotherPlanAreRefused) {
  plan::pb::Plan plan = makeBigramPlan();
  RunPlan run = *RunPlan::create(plan);
  StepProfile profile(run);
  const char *expected =
      "the backend timed an operation that the plan does not have";
  TemporaryFolder folder;
  for (OperationTime time :
       {OperationTime{99, 0, 0, 1, 2}, OperationTime{0, 99, 0, 1, 2}}) {
    EXPECT_EQ(profile.add(Timing::AsPlanned, {time}).message(), expected);
    EXPECT_EQ(profile.addSustained({time}).message(), expected);
    EXPECT_EQ(writeTrace(run, {time}, folder.path("t")).message(), expected);
  }
}
