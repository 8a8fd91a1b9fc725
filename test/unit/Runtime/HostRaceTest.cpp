//===- HostRaceTest.cpp - A missing wait shows as a race ------------------===//
//
// Drops each wait of a small plan and lets ThreadSanitizer judge, without any
// jitter. The whole plan must be silent. Without the sanitizer there is nothing
// to see.
//
//===----------------------------------------------------------------------===//

#include "RaceAnnotations.h"
#include "TrainPlan.h"

using namespace gtp;
using namespace gtp::test;

#ifdef GTP_THREAD_SANITIZER

namespace {

/// Runs in a process of its own and leaves with success if nobody complains.
[[noreturn]] void run(const TrainPlan &train, const pb::Plan &plan) {
  auto backend = makeBackend(plan);
  train.writeInputs(*backend);
  Status status = backend->runStep(0, nullptr);
  backend.reset();
  // Reports so far turn the exit code of `exit`, not of `_exit`, into 66.
  std::exit(status.isOk() ? 0 : 1);
}

TEST(HostRaceDeathTest, TheWholePlanHasNone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  TrainPlan train;
  EXPECT_EXIT(run(train, train.plan()), testing::ExitedWithCode(0), "");
}

TEST(HostRaceDeathTest, EveryMissingWaitShows) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  TrainPlan train;
  int waits = 0;
  for (int i = 0; i < train.bodyOperations(); ++i) {
    pb::Plan plan = train.plan();
    pb::Operation *operation =
        plan.mutable_programs(0)->mutable_regions(1)->mutable_operations(i);
    if (operation->waits_size() == 0)
      continue;
    ++waits;
    operation->clear_waits();
    EXPECT_EXIT(run(train, plan), testing::ExitedWithCode(66),
                "WARNING: ThreadSanitizer: data race")
        << "operation " << i;
  }
  EXPECT_EQ(waits, 2);
}

} // namespace

#else

TEST(HostRaceDeathTest, NeedsThreadSanitizer) {
  GTEST_SKIP() << "not a ThreadSanitizer build";
}

#endif
