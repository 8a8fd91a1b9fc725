//===- StepTimes.h - What --profile and --trace need of a run's steps -----===//

#ifndef GTP_RT_LIB_STEPTIMES_H
#define GTP_RT_LIB_STEPTIMES_H

#include "gtp-rt/Console.h"
#include "gtp-rt/Options.h"
#include "gtp-rt/StepProfile.h"

namespace gtp::rt {

/// Has the backend time the operations of a run's steps, and writes the files.
class StepTimes {
public:
  StepTimes(const RunOptions &options, const RunPlan &plan, Backend &backend);

  bool areWanted() const {
    return !options.profile.empty() || !options.trace.empty();
  }
  /// How step `step`, from 1, is timed.
  Timing choose(uint64_t step);
  /// After each step, before anything else runs.
  Status afterStep(const StepReport &report);
  /// Writes what was asked for; `where` is where the ranks ran, `isHost`
  /// whether that is the host backend. A run that was stopped before it had
  /// timed enough says so and writes nothing.
  Status write(Console &console, const std::string &where, bool isHost) const;

private:
  const RunOptions &options;
  const RunPlan &plan;
  Backend &backend;
  StepProfile profile;
  uint64_t first, last; ///< training steps that are timed
  uint64_t current = 0;
  Timing timing = Timing::None;     ///< of that step
  std::vector<OperationTime> shown; ///< of a step as planned, for the trace
};

} // namespace gtp::rt

#endif // GTP_RT_LIB_STEPTIMES_H
