//===- PlanRun.h - A few steps of a plan on the host ----------------------===//

#ifndef GTP_TEST_FUZZ_PLANRUN_H
#define GTP_TEST_FUZZ_PLANRUN_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <string>

namespace gtp::fuzz {

struct RunLimits {
  uint64_t steps = 2;
  double secondsAStep = 20;
};

/// Bits that a run leaves: loss and gradient norm of each step, every
/// parameter's weights on every rank after the last, and the loss of what the
/// plan's evaluation, if it has one, then reads. `data` is a file of bytes.
struct RunResult {
  std::string bits;
};

/// Whether a run can begin, which is more than that the plan is legal: an error
/// says what the host or the runtime does not take. Else `*ran` is set, and an
/// error is one of the run itself.
StatusOr<RunResult> runPlan(const plan::pb::Plan &plan, const std::string &data,
                            const RunLimits &limits, bool *ran);

} // namespace gtp::fuzz

#endif // GTP_TEST_FUZZ_PLANRUN_H
