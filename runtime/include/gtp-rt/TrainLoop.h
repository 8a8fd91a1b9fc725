//===- TrainLoop.h - Steps of training ------------------------------------===//

#ifndef GTP_RT_TRAINLOOP_H
#define GTP_RT_TRAINLOOP_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/Metrics.h"
#include "gtp-rt/Options.h"
#include "gtp-rt/RunPlan.h"
#include "gtp-rt/TrainingData.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace gtp::rt {

/// How long and how fast a run trains.
struct TrainOptions {
  uint64_t steps = 1;
  Hyperparameters hyper; ///< the learning rate is the schedule's peak
  Schedule schedule;
  uint64_t seed = 0;
  uint64_t maxNonFinite = 3; ///< at least 1
  /// Steps between evaluations; 0: only behind the last step.
  uint64_t evalEvery = 0;
};

/// The `hyper` input of step `step` (from 1): lr, weight decay, beta1, beta2,
/// eps, 1 - beta1^step, 1 - beta2^step, 0.
std::array<float, 8> hyperInput(const Hyperparameters &hyper, uint64_t step);

/// Reads a sample of a global batch: its index in it, tokens and labels out.
using SampleReader = std::function<void(uint64_t, int32_t *, int32_t *)>;

/// Tokens and labels of one rank's part of a global batch, each [microbatches,
/// micro_batch, sequence]. Microbatch j is samples [j*B/m, (j+1)*B/m), split
/// over the data ranks in order.
void fillBatch(const RunPlan &plan, uint64_t dataRank,
               const SampleReader &readSample, std::vector<int32_t> &tokens,
               std::vector<int32_t> &labels);

/// `fillBatch` of a step's samples.
void fillSamples(const RunPlan &plan, const TrainingData &data, uint64_t seed,
                 uint64_t step, uint64_t dataRank, std::vector<int32_t> &tokens,
                 std::vector<int32_t> &labels);

struct TrainHooks {
  /// How the operations of a step, from 1, are timed; may be empty.
  std::function<Timing(uint64_t)> timing;
  /// After each step, timed or not, before an evaluation runs over its times;
  /// empty if `timing` is.
  std::function<Status(const StepReport &)> afterTiming;
  /// After each step.
  std::function<Status(const StepMetrics &)> afterStep;
  /// In the last step, when every reduced gradient is whole; may be empty.
  std::function<Status()> lastGradients;
  /// Whether the run is to end with the step that is running; may be empty.
  std::function<bool()> stopRequested;
  /// The loss of held-out text; may be empty.
  std::function<StatusOr<EvalMetrics>()> evaluate;
  /// A text that names gradients that are not finite, when every reduced
  /// gradient is whole; may be empty.
  std::function<StatusOr<std::string>()> explainNonFinite;
};

/// Trains, and returns how many steps ran: fewer than asked for after a stop.
/// Fails when the loss or the gradient norm is not finite in `maxNonFinite`
/// steps in a row, or in all steps. A step whose norm is not finite changes
/// nothing but the step's number, which the schedule and the bias corrections
/// follow: its updates skip on a flag in device memory, so that nothing waits
/// for the host to look.
StatusOr<uint64_t> train(const RunPlan &plan, Backend &backend,
                         const TrainingData &data, const TrainOptions &options,
                         const TrainHooks &hooks);

} // namespace gtp::rt

#endif // GTP_RT_TRAINLOOP_H
