//===- RunSummary.cpp - What a run says of itself -------------------------===//

#include "RunSummary.h"

#include <cstdio>

using namespace gtp;
using namespace gtp::rt;

void gtp::rt::printSummary(Console &console, const RunOptions &options,
                           const RunPlan &plan, const std::string &checked,
                           const ChosenBackend &chosen) {
  const plan::pb::Plan &proto = plan.proto();
  const plan::pb::Model &model = plan.model();
  console.line("plan      " + options.plan + ": " +
               proto.provenance().family() + ", " +
               countText(double(model.parameters())) + " parameters, " +
               model.optimizer() + "; " + checked);
  console.line("ranks     " + std::to_string(plan.ranks()) + " (" +
               plan.meshText() + ") " + chosen.where);
  console.line("step      " + std::to_string(model.global_batch()) +
               " sequences of " + std::to_string(model.sequence()) +
               " tokens in " + std::to_string(model.microbatches()) +
               (model.microbatches() == 1 ? " microbatch" : " microbatches"));
  if (std::string transports = plan.transportsText(); !transports.empty())
    console.line("moves     " + transports + " a step");
  console.line("memory    " + bytesText(plan.arenaBytes()) + " a rank, of it " +
               bytesText(proto.claims().persistent_bytes()) +
               " across steps; weights, gradients and optimizer state whole on "
               "a rank: " +
               bytesText(plan.replicatedBytes()));
  if (options.withoutCollectivesAfter)
    console.line("no train  steps after " +
                 std::to_string(*options.withoutCollectivesAfter) +
                 " run without collectives; they time kernels and train "
                 "nothing");
  if (std::string attention = chosen.backend->attention(); !attention.empty())
    console.line("attention " + attention);
  console.line("weights   " +
               (options.weights.empty()
                    ? "initial, from seed " + std::to_string(options.seed)
                    : options.weights));
}

void gtp::rt::printMemory(Console &console, const RunPlan &plan,
                          const StepReport &last) {
  if (last.deviceBytes == 0)
    return;
  uint64_t overhead = plan.proto().claims().overhead_bytes();
  console.line("memory    claimed " + bytesText(plan.arenaBytes()) +
               " and the target's overhead of " + bytesText(overhead) +
               ", together " + bytesText(plan.arenaBytes() + overhead) +
               "; in use on the GPU " + bytesText(last.deviceBytes));
}

void gtp::rt::printData(Console &console, const RunOptions &options,
                        const std::optional<TrainingData> &data) {
  for (size_t i = 0; data && i < data->files(); ++i) {
    std::string line = (i == 0 ? "data      " : "          ") +
                       options.data[i].path + ": " +
                       countText(double(data->file(i).size())) + " tokens";
    if (isDatasetIndex(options.data[i].path))
      line +=
          " in " + countText(double(data->file(i).documents())) + " documents";
    if (data->files() > 1) {
      char weight[32];
      std::snprintf(weight, sizeof weight, ", weight %g",
                    options.data[i].weight);
      line += weight;
    }
    console.line(line);
  }
}

void gtp::rt::printEvalData(Console &console, const RunOptions &options,
                            const RunInputs &inputs) {
  if (!inputs.evalData)
    return;
  uint64_t batches = inputs.evalBatches;
  console.line("held out  " + options.evalData + ": " +
               countText(double(inputs.evalData->file().size())) + " tokens, " +
               std::to_string(batches) +
               (batches == 1 ? " batch" : " batches") + " an evaluation");
}

void gtp::rt::printSkipped(Console &console, const RunOptions &options,
                           const WeightSource &weights) {
  if (!weights.skipped().empty())
    std::fprintf(
        stderr,
        "%sgtp-run: warning: %s: skipped %zu tensors that the configuration "
        "determines, such as '%s'\n",
        console.prefix(), options.weights.c_str(), weights.skipped().size(),
        weights.skipped().front().c_str());
}
