//===- SchedulePoints.h - Memory of a schedule over the region ------------===//

#ifndef GTP_LIB_PLANNING_SCHEDULEPOINTS_H
#define GTP_LIB_PLANNING_SCHEDULEPOINTS_H

#include "gtp/Planning/Schedule.h"

#include <algorithm>

namespace gtp::planning {

/// First and last point, both included; see BaseProfile.
struct PointRange {
  size_t first, last;
};

/// A gather may write as soon as its trigger has completed, which other buffers
/// see in the gap after the trigger.
inline PointRange gatherPoints(const Gather &gather, int64_t trigger) {
  return {size_t(2 * (trigger + 1)), 2 * size_t(gather.lastUse) + 1};
}

/// A full gradient is held until the compute stream has waited, and that is in
/// the gap before the release: a gather issued in that gap cannot have its
/// memory.
inline PointRange reductionPoints(const Reduction &reduction, int64_t release) {
  return {2 * size_t(reduction.producer) + 1, size_t(2 * release)};
}

/// Bytes at each point, in their three parts.
struct MemoryCurve {
  std::vector<int64_t> base, gathered, gradients;

  explicit MemoryCurve(const ScheduleProblem &problem)
      : base(problem.base.points), gathered(base.size()),
        gradients(base.size()) {}
  MemoryCurve(const ScheduleProblem &problem, const Schedule &schedule)
      : MemoryCurve(problem) {
    for (size_t i = 0; i < problem.gathers.size(); ++i)
      add(gathered, gatherPoints(problem.gathers[i], schedule.triggers[i]),
          problem.gathers[i].bytes);
    for (size_t i = 0; i < problem.reductions.size(); ++i)
      add(gradients,
          reductionPoints(problem.reductions[i], schedule.releases[i]),
          problem.reductions[i].bytes);
  }

  static void add(std::vector<int64_t> &curve, PointRange range,
                  int64_t bytes) {
    for (size_t i = range.first; i <= range.last; ++i)
      curve[i] += bytes;
  }
  int64_t total(size_t point) const {
    return base[point] + gathered[point] + gradients[point];
  }
  /// The first point of the peak.
  size_t peakPoint() const {
    size_t best = 0;
    for (size_t i = 1; i < base.size(); ++i)
      if (total(i) > total(best))
        best = i;
    return best;
  }
};

/// First and last trigger that pins allow each gather; equal for a pinned one.
/// Along the stream neither decreases.
struct TriggerBounds {
  std::vector<int64_t> first, last;
};
TriggerBounds triggerBounds(const ScheduleProblem &problem);

/// Latest release that each reduction's consumer, and those behind it on the
/// stream, allow.
std::vector<int64_t> releaseLimits(const ScheduleProblem &problem);

/// Fills in all predictions of a schedule whose triggers and releases are set.
void predict(const ScheduleProblem &problem, Schedule &schedule);

} // namespace gtp::planning

#endif // GTP_LIB_PLANNING_SCHEDULEPOINTS_H
