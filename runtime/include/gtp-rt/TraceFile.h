//===- TraceFile.h - A step as predicted and as measured, for Perfetto ----===//

#ifndef GTP_RT_TRACEFILE_H
#define GTP_RT_TRACEFILE_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/RunPlan.h"

#include <string>
#include <vector>

namespace gtp::rt {

/// When each operation of the training step would run if all took the plan's
/// durations, in the order that streams and waits give: what the compiler
/// predicts of each, without what operations lose to others beside them.
std::vector<OperationTime> predictTimes(const plan::pb::Plan &plan);

/// Writes a trace in Chrome's JSON format: a process of predicted and one of
/// measured lanes, one a stream, both from the same zero. Fails for an
/// operation that the plan does not have.
Status writeTrace(const RunPlan &plan, std::vector<OperationTime> measured,
                  const std::string &path);

} // namespace gtp::rt

#endif // GTP_RT_TRACEFILE_H
