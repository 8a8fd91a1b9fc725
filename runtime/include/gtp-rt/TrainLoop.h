//===- TrainLoop.h - Steps of training ------------------------------------===//

#ifndef GTP_RT_TRAINLOOP_H
#define GTP_RT_TRAINLOOP_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/Metrics.h"
#include "gtp-rt/Options.h"
#include "gtp-rt/RunPlan.h"
#include "gtp-rt/TokenFile.h"

#include <array>
#include <functional>
#include <vector>

namespace gtp::rt {

/// The `hyper` input of step `step` (from 1): lr, weight decay, beta1, beta2,
/// eps, 1 - beta1^step, 1 - beta2^step, 0.
std::array<float, 8> hyperInput(const Hyperparameters &hyper, uint64_t step);

/// Tokens and labels of one rank's step, each [microbatches, micro_batch,
/// sequence]. Microbatch j is samples [j*B/m, (j+1)*B/m) of the step, split
/// over the data ranks in order.
void fillSamples(const RunPlan &plan, const TokenFile &file, uint64_t seed,
                 uint64_t step, uint64_t dataRank, std::vector<int32_t> &tokens,
                 std::vector<int32_t> &labels);

struct TrainHooks {
  /// After each step.
  std::function<Status(const StepMetrics &)> afterStep;
  /// In the last step, when every reduced gradient is whole; may be empty.
  std::function<Status()> lastGradients;
};

/// Runs `steps` steps; ends at the first loss or gradient norm that is not
/// finite.
Status train(const RunPlan &plan, Backend &backend, const TokenFile &file,
             const Hyperparameters &hyper, uint64_t seed, uint64_t steps,
             const TrainHooks &hooks);

} // namespace gtp::rt

#endif // GTP_RT_TRAINLOOP_H
