//===- RunPlanTest.cpp ----------------------------------------------------===//

#include "gtp-rt/RunPlan.h"
#include "TestPlan.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::rt;
using gtp::test::TestPlan;

static std::string error(const TestPlan &test) {
  return RunPlan::create(test.plan).message();
}

TEST(RunPlan, DataRanksAreDpMajorInAnyMeshOrder) {
  TestPlan dpFirst({{"dp", 2}, {"gtp", 3}}), gtpFirst({{"gtp", 3}, {"dp", 2}});
  auto a = RunPlan::create(dpFirst.plan), b = RunPlan::create(gtpFirst.plan);
  ASSERT_TRUE(a.isOk()) << a.message();
  ASSERT_TRUE(b.isOk()) << b.message();
  EXPECT_EQ(a->dataRanks(), 6u);
  for (uint64_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(a->dataRank(rank), rank);
    EXPECT_EQ(b->dataRank(rank), rank % 2 * 3 + rank / 2);
  }
  EXPECT_EQ(b->meshText(), "gtp=3, dp=2");
}

TEST(RunPlan, OneRankNeedsNoAxes) {
  TestPlan test({});
  auto plan = RunPlan::create(test.plan);
  ASSERT_TRUE(plan.isOk()) << plan.message();
  EXPECT_EQ(plan->ranks(), 1u);
  EXPECT_EQ(plan->dataRank(0), 0u);
  EXPECT_EQ(plan->meshText(), "one rank");
}

TEST(RunPlan, ReplicatedBytesCountEveryPlane) {
  TestPlan test({{"gtp", 2}}, plan::pb::BF16);
  test.parameter({{"a", 3}}, {5}, 4);
  auto plan = RunPlan::create(test.plan);
  ASSERT_TRUE(plan.isOk()) << plan.message();
  EXPECT_EQ(plan->replicatedBytes(), 15u * (2 + 4 + 8 + 4));
}

TEST(RunPlan, EveryWrongPlanIsOneMessage) {
  EXPECT_EQ(
      error(TestPlan({{"tp", 2}})),
      "mesh axis 'tp' of degree 2 is not supported yet; expected dp and gtp");
  TestPlan batch({{"dp", 2}});
  batch.plan.mutable_model()->set_global_batch(13);
  EXPECT_EQ(error(batch),
            "global batch 13 is not 3 microbatches of 2 sequences on 2 "
            "data ranks");
  batch.plan.mutable_model()->set_microbatches(uint64_t(1) << 63);
  EXPECT_NE(error(batch), "");
  TestPlan program({});
  program.plan.mutable_programs(0)->set_rotated(true);
  EXPECT_EQ(error(program),
            "first program is not a training step that ends in its update");
  TestPlan input({});
  input.plan.mutable_programs(0)->mutable_inputs(0)->set_name(1000);
  EXPECT_EQ(error(input), "training step has no input 'tokens'");
  TestPlan small({});
  small.plan.mutable_buffers(0)->set_size(95);
  EXPECT_EQ(error(small), "buffer of 'tokens' has 95 bytes, expected 96");
  small.plan.mutable_programs(0)->mutable_inputs(0)->set_buffer(1000);
  EXPECT_EQ(error(small), "buffer of 'tokens' has 0 bytes, expected 96");
  TestPlan sequence({});
  sequence.plan.mutable_model()->set_sequence(uint64_t(1) << 63);
  EXPECT_EQ(error(sequence), "sequence 9223372036854775808 makes a step of "
                             "more bytes than 64 bits count");
  sequence.plan.mutable_model()->set_sequence(0);
  EXPECT_EQ(error(sequence),
            "sequence 0 and vocabulary 257 must be at least 1");
}
