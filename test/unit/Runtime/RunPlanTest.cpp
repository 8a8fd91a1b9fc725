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

TEST(RunPlan, MovesAreThoseOfAStep) {
  using namespace plan::pb;
  TestPlan test({{"gtp", 2}});
  Region *body = test.plan.mutable_programs(0)->add_regions();
  auto add = [&](Collective::Transport transport, Operation::When when) {
    Operation *operation = body->add_operations();
    operation->set_when(when);
    operation->mutable_collective()->set_transport(transport);
  };
  add(Collective::HOST, Operation::ALWAYS);
  add(Collective::RING_TRANSPORT, Operation::FIRST);
  add(Collective::RING_TRANSPORT, Operation::LAST);
  add(Collective::SYMMETRIC, Operation::NOT_FIRST);
  add(Collective::COPY_ENGINE, Operation::NOT_LAST);
  add(Collective::COPY_ENGINE, Operation::ALWAYS);
  auto text = [&](uint64_t microbatches) {
    body->set_repeat(microbatches);
    auto plan = RunPlan::create(test.plan);
    return plan.isOk() ? plan->transportsText() : plan.message();
  };
  EXPECT_EQ(text(5), "9 all-gathers by COPY_ENGINE, 4 all-gathers by "
                     "SYMMETRIC, 2 all-gathers by RING_TRANSPORT, 5 "
                     "all-gathers by HOST");
  EXPECT_EQ(text(2), "3 all-gathers by COPY_ENGINE, 1 all-gather by "
                     "SYMMETRIC, 2 all-gathers by RING_TRANSPORT, 2 "
                     "all-gathers by HOST");
  EXPECT_EQ(text(1), "1 all-gather by COPY_ENGINE, 2 all-gathers by "
                     "RING_TRANSPORT, 1 all-gather by HOST");
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
