//===- RunInputs.cpp - What a run reads and writes ------------------------===//

#include "RunInputs.h"

#include "gtp/Support/LinkTarget.h"

using namespace gtp;
using namespace gtp::rt;

static StatusOr<std::optional<TrainingData>> openData(const RunOptions &options,
                                                      const RunPlan &plan) {
  if (options.data.empty())
    return std::optional<TrainingData>();
  TrainingDataOptions files;
  files.data = options.data;
  files.labels = options.labels;
  files.tokenBits = options.tokenBits;
  files.vocabulary = plan.model().vocabulary();
  files.sequence = plan.model().sequence();
  if (plan.model().has_document_separator())
    files.documentSeparator = plan.model().document_separator();
  GTP_ASSIGN_OR_RETURN(TrainingData data, TrainingData::open(files));
  return std::optional<TrainingData>(std::move(data));
}

static StatusOr<std::optional<EvalData>> openEvalData(const RunOptions &options,
                                                      const RunPlan &plan) {
  if (options.evalData.empty())
    return std::optional<EvalData>();
  if (!plan.eval)
    return Status::error("has no program that evaluates, which --eval-data "
                         "needs; compile the model again with gtp-opt")
        .in(options.plan);
  TokenFileOptions file;
  file.data = options.evalData;
  file.labels = options.evalLabels;
  file.tokenBits = options.tokenBits;
  file.vocabulary = plan.model().vocabulary();
  file.sequence = plan.model().sequence();
  if (plan.model().has_document_separator())
    file.documentSeparator = plan.model().document_separator();
  GTP_ASSIGN_OR_RETURN(EvalData data, EvalData::open(std::move(file)));
  return std::optional<EvalData>(std::move(data));
}

/// An output must not take the place of a file of the checkpoint.
static Status checkOutputs(const RunOptions &options,
                           const WeightSource &weights) {
  const std::pair<const char *, const std::string *> outputs[] = {
      {"--metrics", &options.metrics},
      {"--dump-grads", &options.dumpGrads},
      {"--dump-weights", &options.dumpWeights},
      {"--profile", &options.profile},
      {"--trace", &options.trace}};
  for (const auto &[option, output] : outputs)
    for (const std::string &file : weights.files())
      if (isSameFile(*output, file))
        return Status::error(std::string(option) + "=" + *output +
                             ": is also " + file +
                             " of --weights; an output needs a file of its "
                             "own");
  return Status::ok();
}

StatusOr<std::unique_ptr<RunInputs>>
gtp::rt::checkInputs(const RunOptions &options, const plan::pb::Plan &proto,
                     bool writes) {
  auto plan = RunPlan::create(proto);
  if (!plan.isOk())
    return std::move(plan).status().in(options.plan);
  auto store = ParameterStore::create(*plan);
  if (!store.isOk())
    return std::move(store).status().in(options.plan);
  for (const std::string *output :
       {&options.metrics, &options.dumpGrads, &options.dumpWeights,
        &options.profile, &options.trace})
    if (writes && !output->empty())
      GTP_RETURN_IF_ERROR(checkWritable(*output));
  GTP_ASSIGN_OR_RETURN(std::optional<TrainingData> data,
                       openData(options, *plan));
  GTP_ASSIGN_OR_RETURN(std::optional<EvalData> evalData,
                       openEvalData(options, *plan));
  auto weights = options.weights.empty()
                     ? WeightSource::initial(*plan, options.seed)
                     : WeightSource::checkpoint(*plan, options.weights);
  if (!weights.isOk())
    return std::move(weights).status();
  GTP_RETURN_IF_ERROR(checkOutputs(options, *weights));
  auto inputs = std::make_unique<RunInputs>(std::move(*plan), std::move(*store),
                                            std::move(*weights));
  inputs->data = std::move(data);
  inputs->evalData = std::move(evalData);
  if (inputs->evalData) {
    GTP_ASSIGN_OR_RETURN(
        inputs->evalBatches,
        evalBatches(inputs->plan, *inputs->evalData, options.evalSteps));
  }
  return inputs;
}
