//===- TrainingStep.h - A step of the shape that real models have ---------===//

#ifndef GTP_TEST_UNIT_PLANNING_TRAININGSTEP_H
#define GTP_TEST_UNIT_PLANNING_TRAININGSTEP_H

#include "gtp/Planning/Memory.h"
#include "gtp/Planning/Schedule.h"

#include <random>

namespace gtp::planning {

/// Forward and backward of a transformer with `layers` layers: ten operations a
/// layer forward and twenty backward, four gathered weights each way.
ScheduleProblem trainingStep(uint32_t layers, int64_t gatherNs,
                             int64_t computeNs);

/// The memory problem of `problem` under `schedule`: compute, gather and reduce
/// streams with the activations of trainingStep(), then an update region.
MemoryProblem trainingMemory(const ScheduleProblem &problem,
                             const Schedule &schedule, uint32_t layers);

/// Any legal problem of so many operations, gathers and reductions, small
/// numbers throughout.
ScheduleProblem randomProblem(std::mt19937 &random, uint32_t numOps,
                              unsigned numGathers, unsigned numReductions);

} // namespace gtp::planning

#endif // GTP_TEST_UNIT_PLANNING_TRAININGSTEP_H
