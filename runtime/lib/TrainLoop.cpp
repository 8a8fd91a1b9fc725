//===- TrainLoop.cpp - Steps of training ----------------------------------===//

#include "gtp-rt/TrainLoop.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace gtp;
using namespace gtp::rt;

/// 1 - beta^step without the cancellation of late steps' small betas.
static float biasCorrection(double beta, uint64_t step) {
  return beta == 0 ? 1.0f : float(-std::expm1(double(step) * std::log(beta)));
}

std::array<float, 8> gtp::rt::hyperInput(const Hyperparameters &hyper,
                                         uint64_t step) {
  return {float(hyper.learningRate),
          float(hyper.weightDecay),
          float(hyper.beta1),
          float(hyper.beta2),
          float(hyper.epsilon),
          biasCorrection(hyper.beta1, step),
          biasCorrection(hyper.beta2, step),
          0.0f};
}

void gtp::rt::fillBatch(const RunPlan &plan, uint64_t dataRank,
                        const SampleReader &readSample,
                        std::vector<int32_t> &tokens,
                        std::vector<int32_t> &labels) {
  uint64_t microbatches = plan.model().microbatches();
  uint64_t perRank = plan.model().micro_batch();
  uint64_t perMicrobatch = plan.model().global_batch() / microbatches;
  uint64_t sequence = plan.model().sequence();
  tokens.resize(microbatches * perRank * sequence);
  labels.resize(tokens.size());
  uint64_t at = 0;
  for (uint64_t j = 0; j < microbatches; ++j)
    for (uint64_t i = 0; i < perRank; ++i, at += sequence) {
      uint64_t sample = j * perMicrobatch + dataRank * perRank + i;
      readSample(sample, &tokens[at], &labels[at]);
    }
}

void gtp::rt::fillSamples(const RunPlan &plan, const TrainingData &data,
                          uint64_t seed, uint64_t step, uint64_t dataRank,
                          std::vector<int32_t> &tokens,
                          std::vector<int32_t> &labels) {
  fillBatch(
      plan, dataRank,
      [&](uint64_t sample, int32_t *ids, int32_t *targets) {
        data.readSample(seed, sample, step, ids, targets);
      },
      tokens, labels);
}

/// Writes the step's inputs to every rank of the backend.
static Status writeInputs(const RunPlan &plan, Backend &backend,
                          const TrainingData &data,
                          const Hyperparameters &hyper, uint64_t seed,
                          uint64_t step) {
  std::array<float, 8> hyperValues = hyperInput(hyper, step);
  std::vector<int32_t> tokens, labels;
  uint64_t end = backend.firstRank() + backend.localRanks();
  for (uint64_t rank = backend.firstRank(); rank < end; ++rank) {
    fillSamples(plan, data, seed, step, plan.dataRank(rank), tokens, labels);
    uint64_t bytes = tokens.size() * sizeof(int32_t);
    GTP_RETURN_IF_ERROR(
        backend.writeBuffer(rank, plan.tokens, 0, tokens.data(), bytes));
    GTP_RETURN_IF_ERROR(
        backend.writeBuffer(rank, plan.labels, 0, labels.data(), bytes));
    GTP_RETURN_IF_ERROR(backend.writeBuffer(
        rank, plan.hyper, 0, hyperValues.data(), sizeof hyperValues));
  }
  return Status::ok();
}

namespace {

/// One run of `train`.
class Training {
public:
  Training(const RunPlan &plan, Backend &backend, const TrainingData &data,
           const TrainOptions &options, const TrainHooks &hooks)
      : plan(plan), backend(backend), data(data), options(options),
        hooks(hooks) {
    metrics.tokens = plan.model().global_batch() * plan.model().sequence();
    metrics.modelFlops = plan.model().flops_per_step();
    metrics.peakBytes = plan.arenaBytes();
  }

  StatusOr<uint64_t> run();

private:
  /// Fills `metrics` but for the time.
  Status runStep(const std::function<Status()> &beforeUpdate);
  /// Fails when the step makes too many in a row that are not finite.
  Status checkFinite();
  /// Which gradients are not finite, by running the step again: its updates
  /// were skipped, so that it computes the same.
  StatusOr<std::string> explainGradients();
  /// Fills `metrics.eval` when an evaluation is due behind the step.
  Status evaluateAfter(uint64_t step, bool isLast);
  bool isStopped() const {
    return hooks.stopRequested && hooks.stopRequested();
  }

  const RunPlan &plan;
  Backend &backend;
  const TrainingData &data;
  const TrainOptions &options;
  const TrainHooks &hooks;
  StepMetrics metrics;
  uint64_t nonFinite = 0; // in a row
};

} // namespace

Status Training::runStep(const std::function<Status()> &beforeUpdate) {
  Hyperparameters hyper = options.hyper;
  hyper.learningRate = metrics.learningRate;
  GTP_RETURN_IF_ERROR(
      writeInputs(plan, backend, data, hyper, options.seed, metrics.step));
  Status ran = backend.runStep(0, beforeUpdate);
  GTP_RETURN_IF_ERROR(
      std::move(ran).in("step " + std::to_string(metrics.step)));
  uint64_t rank = backend.firstRank();
  GTP_RETURN_IF_ERROR(
      backend.readBuffer(rank, plan.loss, 0, &metrics.loss, sizeof(float)));
  GTP_RETURN_IF_ERROR(backend.readBuffer(rank, plan.gradNorm, 0,
                                         &metrics.gradNorm, sizeof(float)));
  metrics.skipped = !std::isfinite(metrics.gradNorm);
  return Status::ok();
}

StatusOr<std::string> Training::explainGradients() {
  std::string text;
  GTP_RETURN_IF_ERROR(runStep([&] {
    auto explained = hooks.explainNonFinite();
    if (!explained.isOk())
      return std::move(explained).status();
    text = *explained;
    return Status::ok();
  }));
  return text;
}

Status Training::checkFinite() {
  bool lossIsFinite = std::isfinite(metrics.loss);
  if (lossIsFinite && !metrics.skipped) {
    nonFinite = 0;
    return Status::ok();
  }
  if (++nonFinite < std::min(options.maxNonFinite, options.steps))
    return Status::ok();
  std::string text = "step " + std::to_string(metrics.step) + ": the " +
                     (lossIsFinite ? "gradient norm" : "loss") + " is " +
                     (std::isnan(lossIsFinite ? metrics.gradNorm : metrics.loss)
                          ? "not a number"
                          : "infinite");
  if (nonFinite > 1)
    text += ", as the loss or the gradient norm was in each step from " +
            std::to_string(metrics.step - nonFinite + 1);
  if (metrics.skipped && hooks.explainNonFinite) {
    GTP_ASSIGN_OR_RETURN(std::string explained, explainGradients());
    text += "; " + explained;
  }
  return Status::error(
      text + "; a lower --lr, or clipping (--clip-norm of gtp-opt), may help");
}

Status Training::evaluateAfter(uint64_t step, bool isLast) {
  metrics.eval.reset();
  bool isDue = options.evalEvery != 0 && step % options.evalEvery == 0;
  if (!hooks.evaluate || (!isLast && !isDue))
    return Status::ok();
  auto evaluated = hooks.evaluate();
  if (!evaluated.isOk())
    return std::move(evaluated).status().in("step " + std::to_string(step));
  metrics.eval = *evaluated;
  return Status::ok();
}

StatusOr<uint64_t> Training::run() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point previousEnd = Clock::now();
  for (uint64_t step = 1; step <= options.steps; ++step) {
    Clock::time_point start = Clock::now();
    metrics.step = step;
    if (hooks.timing) {
      metrics.timing = hooks.timing(step);
      backend.setTiming(metrics.timing);
    }
    metrics.learningRate =
        options.schedule.rate(options.hyper.learningRate, step, options.steps);
    bool isLast = step == options.steps;
    std::function<Status()> beforeUpdate;
    // Gradients can be read here only: a stop that comes later waits for the
    // next step.
    if (hooks.lastGradients && (isLast || hooks.stopRequested))
      beforeUpdate = [&] {
        isLast = isLast || isStopped();
        return isLast ? hooks.lastGradients() : Status::ok();
      };
    GTP_RETURN_IF_ERROR(runStep(beforeUpdate));
    const Clock::time_point end = Clock::now();
    metrics.seconds = std::chrono::duration<double>(end - start).count();
    metrics.wallSeconds =
        std::chrono::duration<double>(end - previousEnd).count();
    previousEnd = end;
    metrics.report = backend.lastStep();
    if (hooks.timing)
      GTP_RETURN_IF_ERROR(hooks.afterTiming(metrics.report));
    auto mayStop = [&] { return !hooks.lastGradients && isStopped(); };
    bool ends = isLast || mayStop();
    GTP_RETURN_IF_ERROR(evaluateAfter(step, ends));
    GTP_RETURN_IF_ERROR(hooks.afterStep(metrics));
    GTP_RETURN_IF_ERROR(checkFinite());
    if (ends || (metrics.eval && mayStop()))
      return step;
  }
  return options.steps;
}

StatusOr<uint64_t> gtp::rt::train(const RunPlan &plan, Backend &backend,
                                  const TrainingData &data,
                                  const TrainOptions &options,
                                  const TrainHooks &hooks) {
  return Training(plan, backend, data, options, hooks).run();
}
