//===- TimelineModel.h - Which effects a simulation sees ------------------===//

#ifndef GTP_LIB_PLANNING_TIMELINEMODEL_H
#define GTP_LIB_PLANNING_TIMELINEMODEL_H

#include "gtp/Planning/Schedule.h"

namespace gtp::planning {

struct TimelineModel {
  /// Collectives slow down compute and each other.
  bool contention = true;
  /// Collectives take this much of their price.
  int64_t transferPercent = 100;
};

/// Plays the triggers and releases of a legal schedule.
Timeline simulate(const ScheduleProblem &problem, const Schedule &schedule,
                  const TimelineModel &model);

} // namespace gtp::planning

#endif // GTP_LIB_PLANNING_TIMELINEMODEL_H
