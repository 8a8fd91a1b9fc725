//===- PlanTimeline.h - A plan played by its predicted durations ----------===//
//
// When each operation of a plan starts and ends if every one takes as long as
// the plan predicts, collectives and kernels slow each other down as the
// target's profile says, and streams wait as they do. Times are nanoseconds
// from the start of the step. Reads a plan that the checker accepts.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_ANALYSIS_PLANTIMELINE_H
#define GTP_ANALYSIS_PLANTIMELINE_H

#include "gtp/Machine/Profile.h"
#include "gtp/Plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gtp {

/// What `playPlan` finds.
struct PlanTimeline {
  /// One operation at work.
  struct Span {
    uint32_t operation = 0; ///< of the region
    int64_t start = 0, end = 0;
    /// How long its stream stood idle before it, and the operation of the
    /// region that it waited for, if any.
    int64_t idle = 0;
    std::optional<uint32_t> waitedFor;
  };
  /// One run of a region. Iterations of a body that are alike are played once.
  struct Run {
    uint32_t region = 0;    ///< of the training step
    uint64_t iteration = 0; ///< the first of them
    uint64_t alike = 1;     ///< how many iterations this one stands for
    int64_t start = 0, end = 0;
    /// In order of their starts, then of issue.
    std::vector<Span> spans;
  };
  /// Bytes of transient buffers from a time on.
  struct Level {
    int64_t time = 0;
    int64_t bytes = 0;
  };

  std::vector<Run> runs;
  /// What operations that have begun and whose buffers are still to be touched
  /// hold, in order of time.
  std::vector<Level> memory;
  /// Of the runs as played, and of the step with every iteration counted.
  int64_t playedNs = 0, stepNs = 0;
};

/// Plays program 0 of the plan.
PlanTimeline playPlan(const plan::pb::Plan &plan,
                      const machine::Profile &profile);

/// Name of an operation for people: "linear", "all_gather", "copy".
std::string operationName(const plan::pb::Plan &plan,
                          const plan::pb::Operation &operation);
/// The layer and op that it comes from; empty when the plan does not say.
const std::string &operationSource(const plan::pb::Plan &plan,
                                   const plan::pb::Operation &operation);
/// Name of the parameter that it is about; empty when there is none.
std::string operationParameter(const plan::pb::Plan &plan,
                               const plan::pb::Operation &operation);

} // namespace gtp

#endif // GTP_ANALYSIS_PLANTIMELINE_H
