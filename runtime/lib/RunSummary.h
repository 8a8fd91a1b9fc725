//===- RunSummary.h - What a run says of itself ---------------------------===//

#ifndef GTP_RT_LIB_RUNSUMMARY_H
#define GTP_RT_LIB_RUNSUMMARY_H

#include "ChosenBackend.h"
#include "RunInputs.h"

namespace gtp::rt {

/// The plan, where its ranks are, its step, memory, attention and weights;
/// `checked` is what the checker found.
void printSummary(Console &console, const RunOptions &options,
                  const RunPlan &plan, const std::string &checked,
                  const ChosenBackend &chosen);

/// What the plan says that its rank takes of a GPU, and what the GPU says;
/// nothing on the host.
void printMemory(Console &console, const RunPlan &plan, const StepReport &last);

/// The files that the run trains on, if any.
void printData(Console &console, const RunOptions &options,
               const std::optional<TrainingData> &data);

/// The file that the run evaluates on, if any.
void printEvalData(Console &console, const RunOptions &options,
                   const RunInputs &inputs);

/// A warning of tensors of the checkpoint that were not needed, if any.
void printSkipped(Console &console, const RunOptions &options,
                  const WeightSource &weights);

} // namespace gtp::rt

#endif // GTP_RT_LIB_RUNSUMMARY_H
