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

/// How many of the `repeat` iterations run it.
inline uint64_t runCount(pb::Operation::When when, uint64_t repeat) {
  switch (when) {
  case pb::Operation::FIRST:
  case pb::Operation::LAST:
    return repeat ? 1 : 0;
  case pb::Operation::NOT_FIRST:
  case pb::Operation::NOT_LAST:
    return repeat ? repeat - 1 : 0;
  default:
    return repeat;
  }
}

} // namespace gtp::plan

#endif // GTP_PLAN_ITERATION_H
