//===- TrainLoopTest.cpp --------------------------------------------------===//

#include "gtp-rt/TrainLoop.h"
#include "TemporaryFolder.h"
#include "TestPlan.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

namespace {

class TrainLoopTest : public testing::Test {
protected:
  TrainLoopTest() {
    TokenFileOptions options;
    std::string text;
    for (int i = 0; i < 200; ++i)
      text += char(i);
    options.data = folder.write("data", text);
    options.vocabulary = 257;
    options.sequence = 4;
    file = std::move(*TokenFile::open(options));
  }

  /// Runs steps whose loss and gradient norm are `loss` and `norm`.
  Status run(uint64_t steps, float loss, float norm) {
    backend.onStep = [&, loss, norm] {
      (void)backend.writeBuffer(0, plan.loss, 0, &loss, 4);
      (void)backend.writeBuffer(0, plan.gradNorm, 0, &norm, 4);
    };
    TrainHooks hooks;
    hooks.afterStep = [&](const StepMetrics &metrics) {
      seen.push_back(metrics);
      return Status::ok();
    };
    hooks.lastGradients = [&] {
      gradientsAt.push_back(backend.steps);
      return Status::ok();
    };
    return train(plan, backend, file, Hyperparameters(), 5, steps, hooks);
  }

  TemporaryFolder folder;
  TokenFile file;
  TestPlan test{{{"gtp", 2}, {"dp", 2}}};
  RunPlan plan = *RunPlan::create(test.plan);
  MemoryBackend backend{test.plan};
  std::vector<StepMetrics> seen;
  std::vector<uint64_t> gradientsAt;
};

} // namespace

TEST_F(TrainLoopTest, TheMeshDoesNotMatterToASample) {
  // The sequences of a microbatch in order of data ranks are those of the step.
  for (uint64_t microbatch = 0; microbatch < 3; ++microbatch)
    for (uint64_t dataRank = 0; dataRank < 4; ++dataRank) {
      std::vector<int32_t> tokens, labels;
      fillSamples(plan, file, 5, 9, dataRank, tokens, labels);
      ASSERT_EQ(tokens.size(), 24u);
      for (uint64_t i = 0; i < 2; ++i) {
        uint64_t sample = microbatch * 8 + dataRank * 2 + i;
        uint64_t offset = file.sampleOffset(5, sample, 9);
        for (uint64_t j = 0; j < 4; ++j) {
          size_t at = (microbatch * 2 + i) * 4 + j;
          EXPECT_EQ(tokens[at], int32_t(offset + j));
          EXPECT_EQ(labels[at], int32_t(offset + j + 1));
        }
      }
    }
}

TEST_F(TrainLoopTest, EveryRankReadsItsShareAndTheHyperparameters) {
  ASSERT_TRUE(run(2, 1, 1).isOk());
  for (uint64_t rank = 0; rank < 4; ++rank) {
    std::vector<int32_t> tokens, labels, found(24);
    // The mesh is gtp, dp; data ranks are dp major.
    fillSamples(plan, file, 5, 2, rank % 2 * 2 + rank / 2, tokens, labels);
    ASSERT_TRUE(
        backend.readBuffer(rank, plan.tokens, 0, found.data(), 96).isOk());
    EXPECT_EQ(found, tokens);
    ASSERT_TRUE(
        backend.readBuffer(rank, plan.labels, 0, found.data(), 96).isOk());
    EXPECT_EQ(found, labels);
    std::vector<float> hyper = backend.floats(rank, plan.hyper);
    EXPECT_EQ(hyper, (std::vector<float>{1e-3f, 0, 0.9f, 0.95f, 1e-8f, 0.19f,
                                         0.0975f, 0}));
  }
}

TEST_F(TrainLoopTest, BiasCorrectionsHoldAtTheEnds) {
  Hyperparameters hyper;
  hyper.beta1 = 0;
  hyper.beta2 = 0.999999999;
  EXPECT_EQ(hyperInput(hyper, 1)[5], 1);
  EXPECT_FLOAT_EQ(hyperInput(hyper, 1)[6], 1e-9f);
  EXPECT_EQ(hyperInput(hyper, uint64_t(1) << 60)[6], 1);
}

TEST_F(TrainLoopTest, GradientsAreReadInTheLastStepOnly) {
  ASSERT_TRUE(run(3, 1, 2).isOk());
  EXPECT_EQ(gradientsAt, std::vector<uint64_t>{3});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[2].step, 3u);
  EXPECT_EQ(seen[2].loss, 1);
  EXPECT_EQ(seen[2].gradNorm, 2);
  EXPECT_EQ(seen[2].tokens, 24u * 4);
}

TEST_F(TrainLoopTest, ALossThatIsNotFiniteEndsTheRun) {
  EXPECT_EQ(run(3, NAN, 1).message(), "step 1: the loss is not a number; a "
                                      "lower --lr, or clipping (--clip-norm "
                                      "of gtp-opt), may help");
  EXPECT_EQ(run(3, INFINITY, NAN).message().substr(0, 28),
            "step 1: the loss is infinite");
  EXPECT_EQ(run(3, 1, NAN).message().substr(0, 32),
            "step 1: the gradient norm is not");
  EXPECT_EQ(seen.size(), 3u);
}
