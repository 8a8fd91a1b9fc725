//===- RunInputs.h - What a run reads and writes --------------------------===//

#ifndef GTP_RT_LIB_RUNINPUTS_H
#define GTP_RT_LIB_RUNINPUTS_H

#include "gtp-rt/Evaluation.h"
#include "gtp-rt/Options.h"
#include "gtp-rt/ParameterStore.h"
#include "gtp-rt/TrainingData.h"

#include <memory>
#include <optional>

namespace gtp::rt {

/// What a run reads and writes, all of it checked.
struct RunInputs {
  RunInputs(RunPlan plan, ParameterStore store, WeightSource weights)
      : plan(std::move(plan)), store(std::move(store)),
        weights(std::move(weights)) {}

  RunPlan plan;
  ParameterStore store;
  WeightSource weights;
  std::optional<TrainingData> data;
  std::optional<EvalData> evalData;
  uint64_t evalBatches = 0; ///< of `evalData`, an evaluation
};

/// Finds everything that can be found wrong before memory is allocated: in the
/// plan, the data and the weights, and in outputs if this process `writes`
/// them.
StatusOr<std::unique_ptr<RunInputs>> checkInputs(const RunOptions &options,
                                                 const plan::pb::Plan &proto,
                                                 bool writes);

} // namespace gtp::rt

#endif // GTP_RT_LIB_RUNINPUTS_H
