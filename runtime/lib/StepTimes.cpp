//===- StepTimes.cpp - What --profile and --trace need of a run's steps ---===//

#include "StepTimes.h"
#include "gtp-rt/TraceFile.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::rt;

/// So many of the last steps are timed; those before are as without it.
static constexpr uint64_t kTimedSteps = 16;

StepTimes::StepTimes(const RunOptions &options, const RunPlan &plan,
                     Backend &backend)
    : options(options), plan(plan), backend(backend), profile(plan) {
  last = options.withoutCollectivesAfter ? *options.withoutCollectivesAfter - 1
                                         : options.steps;
  // Libraries set up in the first two steps.
  first =
      std::max<uint64_t>(3, last < kTimedSteps ? 0 : last - kTimedSteps + 1);
}

Timing StepTimes::choose(uint64_t step) {
  current = step;
  // Behind the step that keeps what collectives write, every other step.
  if (!options.profile.empty() && step > last + 1)
    return timing = (step - last) % 2 == 1 ? Timing::AsPlanned : Timing::None;
  // For a profile every other step is as planned.
  timing = step < first || step > last ? Timing::None
           : options.profile.empty() || (step - first) % 2 == 0
               ? Timing::AsPlanned
               : Timing::OneByOne;
  return timing;
}

Status StepTimes::afterStep(const StepReport &report) {
  if (timing == Timing::None) {
    // The first steps are eager, and a graph's first one uploads it.
    if (current > 2 && current != last + 1 && !report.graph)
      profile.addWhole(static_cast<int64_t>(report.deviceSeconds * 1e9),
                       report.withoutCollectives);
    return Status::ok();
  }
  GTP_ASSIGN_OR_RETURN(std::vector<OperationTime> times,
                       backend.operationTimes());
  if (report.withoutCollectives)
    return profile.addSustained(times);
  GTP_RETURN_IF_ERROR(profile.add(timing, times));
  if (timing == Timing::AsPlanned)
    shown = std::move(times);
  return Status::ok();
}

Status StepTimes::write(Console &console, const std::string &where,
                        bool isHost) const {
  const StepProfile::Step step = profile.step();
  if (!options.profile.empty()) {
    const bool isEnough = step.steps != 0 && step.aloneNs != 0;
    if (isEnough)
      GTP_RETURN_IF_ERROR(profile.write(options.profile, where, isHost));
    console.line("profile   " +
                 (isEnough ? options.profile + ": " + profile.summary()
                           : "none: the run stopped before it had "
                             "timed a step of each kind"));
  }
  if (!options.trace.empty()) {
    if (!shown.empty())
      GTP_RETURN_IF_ERROR(writeTrace(plan, shown, options.trace));
    console.line("trace     " +
                 (shown.empty() ? "none: the run stopped before it had timed a "
                                  "step"
                                : options.trace));
  }
  return Status::ok();
}
