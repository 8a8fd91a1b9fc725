//===- Iteration.h - Which iterations run an operation --------------------===//

#ifndef GTP_PLAN_ITERATION_H
#define GTP_PLAN_ITERATION_H

#include "gtp/Plan/plan.pb.h"

#include <cstdint>

namespace gtp::plan {

/// Whether an operation of a region runs in `iteration`, from 0, of its
/// `repeat`.
inline bool runsIn(pb::Operation::When when, uint64_t iteration,
                   uint64_t repeat) {
  switch (when) {
  case pb::Operation::FIRST:
    return iteration == 0;
  case pb::Operation::NOT_FIRST:
    return iteration != 0;
  case pb::Operation::LAST:
    return iteration + 1 == repeat;
  case pb::Operation::NOT_LAST:
    return iteration + 1 != repeat;
  default:
    return true;
  }
}

} // namespace gtp::plan

#endif // GTP_PLAN_ITERATION_H
