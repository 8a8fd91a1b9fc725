//===- StepProfileTest.cpp ------------------------------------------------===//

#include "gtp-rt/StepProfile.h"
#include "BigramPlan.h"
#include "TemporaryFolder.h"
#include "gtp-rt/TraceFile.h"

#include <gtest/gtest.h>

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
    EXPECT_EQ(writeTrace(run, {time}, folder.path("t")).message(), expected);
  }
}
