//===- PlanRun.cpp --------------------------------------------------------===//

#include "PlanRun.h"

#include "gtp-rt/Evaluation.h"
#include "gtp-rt/HostBackend.h"
#include "gtp-rt/ParameterStore.h"
#include "gtp-rt/TrainLoop.h"
#include "gtp/Plan/Operand.h"

#include <cmath>

using namespace gtp;
using namespace gtp::fuzz;
using namespace gtp::rt;

/// Appends the first `bytes` of a buffer on each rank.
static Status append(Backend &backend, uint32_t buffer, uint64_t bytes,
                     std::string &bits) {
  for (uint64_t rank = 0; rank < backend.localRanks(); ++rank) {
    std::string content(bytes, '\0');
    GTP_RETURN_IF_ERROR(
        backend.readBuffer(rank, buffer, 0, content.data(), bytes));
    bits += content;
  }
  return Status::ok();
}

/// The weights that the next step would read, pads included.
static Status appendWeights(const RunPlan &plan, Backend &backend,
                            std::string &bits) {
  for (const plan::pb::Parameter &parameter : plan.proto().parameters()) {
    uint64_t elements = 1;
    const auto &layout =
        plan.proto().layouts(static_cast<int>(parameter.layout()));
    for (uint64_t size : plan::shardShape(plan.proto().mesh(), layout))
      elements *= size;
    GTP_RETURN_IF_ERROR(append(backend, parameter.compute_buffer(),
                               elements * plan::dtypeSize(plan.computeType()),
                               bits));
    if (parameter.master_buffer_plus1())
      GTP_RETURN_IF_ERROR(append(backend, parameter.master_buffer_plus1() - 1,
                                 elements * plan::dtypeSize(plan.masterType()),
                                 bits));
  }
  return Status::ok();
}

/// Appends the loss of one global batch of `data` by the plan's other program.
static Status appendEvaluation(const RunPlan &plan, Backend &backend,
                               const std::string &data, std::string &bits) {
  TokenFileOptions options;
  options.data = data;
  options.vocabulary = plan.model().vocabulary();
  options.sequence = plan.model().sequence();
  GTP_ASSIGN_OR_RETURN(EvalData text, EvalData::open(options));
  GTP_ASSIGN_OR_RETURN(EvalMetrics metrics, evaluate(plan, backend, text, 1));
  bits.append(reinterpret_cast<const char *>(&metrics.loss),
              sizeof metrics.loss);
  return Status::ok();
}

StatusOr<RunResult> gtp::fuzz::runPlan(const plan::pb::Plan &proto,
                                       const std::string &data,
                                       const RunLimits &limits, bool *ran) {
  GTP_ASSIGN_OR_RETURN(RunPlan plan, RunPlan::create(proto));
  GTP_ASSIGN_OR_RETURN(ParameterStore store, ParameterStore::create(plan));
  TrainingDataOptions dataOptions;
  dataOptions.data = {{data, 1}};
  dataOptions.vocabulary = plan.model().vocabulary();
  dataOptions.sequence = plan.model().sequence();
  GTP_ASSIGN_OR_RETURN(TrainingData text, TrainingData::open(dataOptions));
  BackendOptions backendOptions;
  backendOptions.stepTimeoutSeconds = limits.secondsAStep;
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                       createHostBackend(proto, backendOptions));
  *ran = true;
  GTP_RETURN_IF_ERROR(
      store.initialize(*backend, WeightSource::initial(plan, 1)));
  RunResult result;
  TrainOptions options;
  options.steps = limits.steps;
  options.hyper.weightDecay = 0.1;
  TrainHooks hooks;
  bool isFinite = true;
  hooks.afterStep = [&](const StepMetrics &step) {
    isFinite =
        isFinite && std::isfinite(step.loss) && std::isfinite(step.gradNorm);
    result.bits.append(reinterpret_cast<const char *>(&step.loss),
                       sizeof step.loss);
    result.bits.append(reinterpret_cast<const char *>(&step.gradNorm),
                       sizeof step.gradNorm);
    return Status::ok();
  };
  auto steps = train(plan, *backend, text, options, hooks);
  // Legal programs may compute infinity; that ends the loop with an error.
  if (!steps.isOk() && isFinite)
    return std::move(steps).status();
  GTP_RETURN_IF_ERROR(appendWeights(plan, *backend, result.bits));
  if (plan.eval)
    GTP_RETURN_IF_ERROR(appendEvaluation(plan, *backend, data, result.bits));
  return result;
}
