//===- TrainLoop.cpp - Steps of training ----------------------------------===//

#include "gtp-rt/TrainLoop.h"

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

void gtp::rt::fillSamples(const RunPlan &plan, const TokenFile &file,
                          uint64_t seed, uint64_t step, uint64_t dataRank,
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
      file.readSample(file.sampleOffset(seed, sample, step), &tokens[at],
                      &labels[at]);
    }
}

/// Writes the step's inputs to every rank of the backend.
static Status writeInputs(const RunPlan &plan, Backend &backend,
                          const TokenFile &file, const Hyperparameters &hyper,
                          uint64_t seed, uint64_t step) {
  std::array<float, 8> hyperValues = hyperInput(hyper, step);
  std::vector<int32_t> tokens, labels;
  uint64_t end = backend.firstRank() + backend.localRanks();
  for (uint64_t rank = backend.firstRank(); rank < end; ++rank) {
    fillSamples(plan, file, seed, step, plan.dataRank(rank), tokens, labels);
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

static Status checkFinite(const StepMetrics &metrics) {
  bool lossIsFinite = std::isfinite(metrics.loss);
  if (lossIsFinite && std::isfinite(metrics.gradNorm))
    return Status::ok();
  return Status::error(
      "step " + std::to_string(metrics.step) + ": the " +
      (lossIsFinite ? "gradient norm" : "loss") + " is " +
      (std::isnan(lossIsFinite ? metrics.gradNorm : metrics.loss)
           ? "not a number"
           : "infinite") +
      "; a lower --lr, or clipping (--clip-norm of gtp-opt), may help");
}

Status gtp::rt::train(const RunPlan &plan, Backend &backend,
                      const TokenFile &file, const Hyperparameters &hyper,
                      uint64_t seed, uint64_t steps, const TrainHooks &hooks) {
  using Clock = std::chrono::steady_clock;
  StepMetrics metrics;
  metrics.learningRate = hyper.learningRate;
  metrics.tokens = plan.model().global_batch() * plan.model().sequence();
  metrics.modelFlops = plan.model().flops_per_step();
  metrics.peakBytes = plan.arenaBytes();
  for (uint64_t step = 1; step <= steps; ++step) {
    Clock::time_point start = Clock::now();
    GTP_RETURN_IF_ERROR(writeInputs(plan, backend, file, hyper, seed, step));
    Status ran =
        backend.runStep(0, step == steps ? hooks.lastGradients : nullptr);
    GTP_RETURN_IF_ERROR(std::move(ran).in("step " + std::to_string(step)));
    uint64_t rank = backend.firstRank();
    GTP_RETURN_IF_ERROR(
        backend.readBuffer(rank, plan.loss, 0, &metrics.loss, sizeof(float)));
    GTP_RETURN_IF_ERROR(backend.readBuffer(rank, plan.gradNorm, 0,
                                           &metrics.gradNorm, sizeof(float)));
    metrics.step = step;
    metrics.seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    GTP_RETURN_IF_ERROR(hooks.afterStep(metrics));
    GTP_RETURN_IF_ERROR(checkFinite(metrics));
  }
  return Status::ok();
}
