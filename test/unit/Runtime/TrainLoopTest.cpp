//===- TrainLoopTest.cpp --------------------------------------------------===//

#include "gtp-rt/TrainLoop.h"
#include "TemporaryFolder.h"
#include "TestPlan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

namespace {

class TrainLoopTest : public testing::Test {
protected:
  TrainLoopTest() {
    TrainingDataOptions options;
    std::string text;
    for (int i = 0; i < 200; ++i)
      text += char(i);
    options.data = {{folder.write("data", text)}};
    options.vocabulary = 257;
    options.sequence = 4;
    data = std::move(*TrainingData::open(options));
  }

  /// Runs steps whose loss and gradient norm are `loss` and `norm`.
  Status run(uint64_t steps, float loss, float norm) {
    return run(steps, std::vector<float>(steps, loss),
               std::vector<float>(steps, norm));
  }
  /// The same with a loss and a norm a step.
  Status run(uint64_t steps, const std::vector<float> &losses,
             const std::vector<float> &norms) {
    options.steps = steps;
    options.seed = 5;
    backend.steps = 0;
    backend.onStep = [&] {
      // A step that runs again to be explained has the values of the first.
      size_t step = std::min(backend.steps, losses.size()) - 1;
      (void)backend.writeBuffer(0, plan.loss, 0, &losses[step], 4);
      (void)backend.writeBuffer(0, plan.gradNorm, 0, &norms[step], 4);
    };
    hooks.afterStep = [&](const StepMetrics &metrics) {
      seen.push_back(metrics);
      return Status::ok();
    };
    hooks.lastGradients = [&] {
      gradientsAt.push_back(backend.steps);
      return Status::ok();
    };
    auto result = train(plan, backend, data, options, hooks);
    if (!result.isOk())
      return std::move(result).status();
    ran = *result;
    return Status::ok();
  }

  TemporaryFolder folder;
  TrainingData data;
  TestPlan test{{{"gtp", 2}, {"dp", 2}}};
  RunPlan plan = *RunPlan::create(test.plan);
  MemoryBackend backend{test.plan};
  std::vector<StepMetrics> seen;
  std::vector<uint64_t> gradientsAt;
  TrainOptions options;
  TrainHooks hooks;
  uint64_t ran = 0;
};

} // namespace

TEST_F(TrainLoopTest, TheMeshDoesNotMatterToASample) {
  // The sequences of a microbatch in order of data ranks are those of the step.
  for (uint64_t microbatch = 0; microbatch < 3; ++microbatch)
    for (uint64_t dataRank = 0; dataRank < 4; ++dataRank) {
      std::vector<int32_t> tokens, labels;
      fillSamples(plan, data, 5, 9, dataRank, tokens, labels);
      ASSERT_EQ(tokens.size(), 24u);
      for (uint64_t i = 0; i < 2; ++i) {
        uint64_t sample = microbatch * 8 + dataRank * 2 + i;
        uint64_t offset = data.file(0).sampleOffset(5, sample, 9);
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
    fillSamples(plan, data, 5, 2, rank % 2 * 2 + rank / 2, tokens, labels);
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

TEST_F(TrainLoopTest, TheScheduleReachesTheRanks) {
  options.schedule = *Schedule::parse("linear:2,0");
  options.hyper.learningRate = 0.5;
  ASSERT_TRUE(run(4, 1, 1).isOk());
  std::vector<double> rates;
  for (const StepMetrics &metrics : seen)
    rates.push_back(metrics.learningRate);
  EXPECT_EQ(rates, (std::vector<double>{0.25, 0.5, 0.25, 0}));
  EXPECT_EQ(backend.floats(3, plan.hyper)[0], 0);
}

TEST_F(TrainLoopTest, AStopEndsTheRunAfterTheStepWithItsGradients) {
  hooks.stopRequested = [&] { return backend.steps == 3; };
  ASSERT_TRUE(run(9, 1, 1).isOk());
  EXPECT_EQ(ran, 3u);
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(gradientsAt, std::vector<uint64_t>{3});
}

TEST_F(TrainLoopTest, AStopTooLateForTheGradientsTakesOneMoreStep) {
  hooks.stopRequested = [&] { return seen.size() >= 3; };
  ASSERT_TRUE(run(9, 1, 1).isOk());
  EXPECT_EQ(ran, 4u);
  EXPECT_EQ(gradientsAt, std::vector<uint64_t>{4});
}

TEST_F(TrainLoopTest, EvaluationsComeWhenTheyAreDueAndBehindTheLastStep) {
  std::vector<uint64_t> evaluated;
  hooks.evaluate = [&]() -> StatusOr<EvalMetrics> {
    evaluated.push_back(backend.steps);
    return EvalMetrics{double(backend.steps), 3};
  };
  ASSERT_TRUE(run(5, 1, 1).isOk());
  EXPECT_EQ(evaluated, std::vector<uint64_t>{5});
  evaluated.clear();
  seen.clear();
  options.evalEvery = 2;
  ASSERT_TRUE(run(5, 1, 1).isOk());
  EXPECT_EQ(evaluated, (std::vector<uint64_t>{2, 4, 5}));
  std::vector<bool> has;
  for (const StepMetrics &metrics : seen)
    has.push_back(metrics.eval.has_value());
  EXPECT_EQ(has, (std::vector<bool>{false, true, false, true, true}));
  EXPECT_EQ(seen[3].eval->loss, 4);
  // A stop ends the run with one.
  evaluated.clear();
  hooks.stopRequested = [&] { return backend.steps == 3; };
  ASSERT_TRUE(run(9, 1, 1).isOk());
  EXPECT_EQ(evaluated, (std::vector<uint64_t>{2, 3}));
  hooks.evaluate = []() -> StatusOr<EvalMetrics> {
    return Status::error("no memory");
  };
  EXPECT_EQ(run(5, 1, 1).message(), "step 2: no memory");
}

TEST_F(TrainLoopTest, TimesAreTakenBeforeAnEvaluationRuns) {
  std::vector<std::string> order;
  hooks.timing = [](uint64_t step) {
    return step == 2 ? Timing::AsPlanned : Timing::None;
  };
  hooks.afterTiming = [&](const StepReport &) {
    order.push_back("times of step " + std::to_string(backend.steps));
    return Status::ok();
  };
  hooks.evaluate = [&]() -> StatusOr<EvalMetrics> {
    order.push_back("evaluation");
    return EvalMetrics{1, 8};
  };
  options.evalEvery = 1;
  ASSERT_TRUE(run(3, 1, 1).isOk());
  EXPECT_EQ(order, (std::vector<std::string>{"times of step 1", "evaluation",
                                             "times of step 2", "evaluation",
                                             "times of step 3", "evaluation"}));
}

TEST_F(TrainLoopTest, NonFiniteStepsInARowEndTheRun) {
  const std::string advice = "; a lower --lr, or clipping (--clip-norm of "
                             "gtp-opt), may help";
  options.maxNonFinite = 1;
  EXPECT_EQ(run(3, NAN, 1).message(),
            "step 1: the loss is not a number" + advice);
  EXPECT_EQ(run(3, INFINITY, NAN).message(),
            "step 1: the loss is infinite" + advice);
  EXPECT_EQ(run(3, 1, NAN).message(),
            "step 1: the gradient norm is not a number" + advice);
  EXPECT_EQ(seen.size(), 3u);

  seen.clear();
  options.maxNonFinite = 2;
  EXPECT_EQ(
      run(6, {1, NAN, 1, 1, 1, 1}, {1, 1, 1, INFINITY, INFINITY, 1}).message(),
      "step 5: the gradient norm is infinite, as the loss or the "
      "gradient norm was in each step from 4" +
          advice);
  ASSERT_EQ(seen.size(), 5u);
  std::vector<bool> skipped;
  for (const StepMetrics &metrics : seen)
    skipped.push_back(metrics.skipped);
  EXPECT_EQ(skipped, (std::vector<bool>{false, false, false, true, true}));
}

TEST_F(TrainLoopTest, ARunWithoutAFiniteStepFails) {
  options.maxNonFinite = 5;
  EXPECT_EQ(run(2, 1, NAN).message().substr(0, 41),
            "step 2: the gradient norm is not a number");
  EXPECT_TRUE(run(2, {1, 1}, {1, NAN}).isOk());
}

TEST_F(TrainLoopTest, TheLastStepRunsAgainToNameItsGradients) {
  options.maxNonFinite = 1;
  hooks.explainNonFinite = [] {
    return StatusOr<std::string>("1 of 2 gradients are not finite");
  };
  EXPECT_EQ(run(3, {1, NAN, 1}, {1, NAN, 1}).message(),
            "step 2: the loss is not a number; 1 of 2 gradients are not "
            "finite; a lower --lr, or clipping (--clip-norm of gtp-opt), may "
            "help");
  EXPECT_EQ(backend.steps, 3u);
  // An update that was not skipped cannot be computed again.
  EXPECT_EQ(run(3, NAN, 1).message(),
            "step 1: the loss is not a number; a lower --lr, or clipping "
            "(--clip-norm of gtp-opt), may help");
}
