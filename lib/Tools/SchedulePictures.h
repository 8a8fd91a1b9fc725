//===- SchedulePictures.h - A plan's schedule as text and as a trace ------===//

#ifndef GTP_LIB_TOOLS_SCHEDULEPICTURES_H
#define GTP_LIB_TOOLS_SCHEDULEPICTURES_H

#include "gtp/Analysis/PlanTimeline.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace gtp {

/// `--emit=gantt`: for each region its streams over time, a closer look at one
/// layer of those that repeat, and the longest stalls. Pictures are
/// 109 columns wide.
void printGantt(const plan::pb::Plan &plan, const PlanTimeline &timeline,
                llvm::raw_ostream &stream);

/// `--emit=trace`: the Trace Event Format that Perfetto and chrome://tracing
/// read. A lane a stream, slices with what operations are, arrows from what is
/// waited for, and a counter of live bytes.
void printTrace(const plan::pb::Plan &plan, const PlanTimeline &timeline,
                llvm::raw_ostream &stream);

/// "compute": what a lane is called; the index tells apart two of a kind.
std::string streamName(const plan::pb::Plan &plan, int stream);
/// "body, microbatches 1 to 4".
std::string runName(const plan::pb::Plan &plan, const PlanTimeline::Run &run);
/// Persistent, input and output buffers: what always holds memory, bytes.
int64_t constantBytes(const plan::pb::Plan &plan);

} // namespace gtp

#endif // GTP_LIB_TOOLS_SCHEDULEPICTURES_H
