//===- RunTool.cpp - gtp-run, but for main --------------------------------===//

#include "gtp-rt/RunTool.h"
#include "LoadedPlans.h"
#include "RunSummary.h"
#include "StepTimes.h"
#include "StopSignal.h"
#include "gtp-rt/TensorBoard.h"
#include "gtp-rt/TrainLoop.h"
#include "gtp/Plan/PlanFile.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

using namespace gtp;
using namespace gtp::rt;

/// Evaluates the weights as they are.
static Status runEvaluation(Console &console, const RunInputs &inputs,
                            Backend &backend,
                            std::optional<MetricsWriter> &metrics) {
  GTP_ASSIGN_OR_RETURN(
      EvalMetrics found,
      evaluate(inputs.plan, backend, *inputs.evalData, inputs.evalBatches));
  char loss[32];
  std::snprintf(loss, sizeof loss, "%.6f", found.loss);
  bool ofSequences = inputs.plan.model().loss() == "sequence-mean";
  console.line(std::string("loss      held out ") + loss + ", of " +
               countText(double(found.count)) +
               (ofSequences ? " sequences" : " labels"));
  return metrics ? metrics->write(found) : Status::ok();
}

/// Whether the run is to stop: in a job all ranks must do so after the same
/// step, and the signal does not reach them at once.
static bool isStopAgreed(const StopSignal &stop, ControlChannel *channel) {
  if (!channel)
    return stop.requested();
  auto all = channel->exchange(stop.requested() ? "stop" : "");
  // A job that has failed ends in its next step.
  bool any = false;
  for (size_t rank = 0; all.isOk() && rank < all->size(); ++rank)
    any = any || !(*all)[rank].empty();
  return any;
}

/// Trains, and makes the dumps appear.
static Status runSteps(Console &console, const RunOptions &options,
                       RunInputs &inputs, ChosenBackend &chosen,
                       ControlChannel *channel) {
  Backend &backend = *chosen.backend;
  const bool writes = !channel || channel->rank() == 0;
  std::optional<MetricsWriter> metrics;
  if (writes && !options.metrics.empty()) {
    GTP_ASSIGN_OR_RETURN(
        metrics, MetricsWriter::create(options.metrics, options.unchecked));
  }
  std::optional<TensorBoardWriter> events;
  if (writes && !options.tensorboard.empty()) {
    GTP_ASSIGN_OR_RETURN(events,
                         TensorBoardWriter::create(options.tensorboard));
  }
  GTP_RETURN_IF_ERROR(inputs.store.initialize(backend, inputs.weights));
  SafetensorsWriter gradients, weights;
  StepTimes times(options, inputs.plan, backend);
  if (options.steps == 0 && inputs.evalData)
    GTP_RETURN_IF_ERROR(runEvaluation(console, inputs, backend, metrics));
  if (options.steps > 0) {
    Progress progress(console, options.steps);
    StopSignal stop;
    TrainHooks hooks;
    hooks.stopRequested = [&] { return isStopAgreed(stop, channel); };
    hooks.explainNonFinite = [&] {
      return inputs.store.explainNonFinite(backend);
    };
    if (times.areWanted()) {
      hooks.timing = [&](uint64_t step) { return times.choose(step); };
      hooks.afterTiming = [&](const StepReport &report) {
        return times.afterStep(report);
      };
    }
    hooks.afterStep = [&](const StepMetrics &step) {
      progress.step(step);
      if (events)
        GTP_RETURN_IF_ERROR(events->write(step));
      return metrics ? metrics->write(step) : Status::ok();
    };
    if (!options.dumpGrads.empty())
      hooks.lastGradients = [&] {
        return inputs.store.gather(backend, ParameterStore::Plane::Gradients,
                                   options.dumpGrads, gradients, channel);
      };
    if (inputs.evalData)
      hooks.evaluate = [&] {
        return evaluate(inputs.plan, backend, *inputs.evalData,
                        inputs.evalBatches);
      };
    TrainOptions training;
    training.steps = options.steps;
    training.hyper = options.hyper;
    training.schedule = options.schedule;
    training.seed = options.seed;
    training.maxNonFinite = options.maxNonFinite;
    training.evalEvery = options.evalEvery;
    GTP_ASSIGN_OR_RETURN(uint64_t ran, train(inputs.plan, backend, *inputs.data,
                                             training, hooks));
    printMemory(console, inputs.plan, backend.lastStep());
    if (ran < options.steps)
      console.line("stopped   by SIGTERM after step " + std::to_string(ran) +
                   " of " + std::to_string(options.steps));
  }
  if (!options.dumpWeights.empty())
    GTP_RETURN_IF_ERROR(
        inputs.store.gather(backend, ParameterStore::Plane::Weights,
                            options.dumpWeights, weights, channel));
  if (!writes)
    return Status::ok();
  GTP_RETURN_IF_ERROR(times.write(console, chosen.where, chosen.isHost));
  if (!options.dumpGrads.empty()) {
    GTP_RETURN_IF_ERROR(gradients.commit());
    console.line("gradients " + options.dumpGrads);
  }
  if (!options.dumpWeights.empty()) {
    GTP_RETURN_IF_ERROR(weights.commit());
    console.line("weights   " + options.dumpWeights);
  }
  return Status::ok();
}

/// All but the path of the plan, which may differ from machine to machine.
static std::string commandLineText(int argc, const char *const *argv,
                                   const std::string &plan) {
  std::string text;
  for (int i = 1; i < argc; ++i)
    if (argv[i] != plan)
      text += (text.empty() ? "" : " ") + std::string(argv[i]);
  return text;
}

/// Tells the other ranks of a job what has failed here.
static void reportFailure(ControlChannel &channel, const Status &status) {
  std::string text = status.message();
  // Other ranks' failures come back by their name.
  if (text.rfind("rank ", 0) != 0)
    text = "rank " + std::to_string(channel.rank()) + ": " + text;
  channel.fail(text);
}

/// What one process of a run does, once its plan is loaded and checked.
static Status runPlan(Console &console, const RunOptions &options,
                      const plan::pb::Plan &plan, const std::string &checked,
                      const Role &role, const BackendFactory &createHost,
                      const GpuSupport *gpus, ControlChannel *channel) {
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<RunInputs> inputs,
                       checkInputs(options, plan, role.writes()));
  std::shared_ptr<TuningCache> cache;
  if (role.kind == Role::OneRank) {
    GTP_ASSIGN_OR_RETURN(cache, openTuningCache(options, role.writes()));
  }
  auto chosen = createBackend(console, options, plan, role, createHost, gpus,
                              cache, channel);
  if (!chosen.isOk())
    return std::move(chosen).status().in(options.plan);
  if (channel)
    channel->setProgress([&] { return chosen->backend->progress(); });
  printSummary(console, options, inputs->plan, checked, *chosen);
  if (!chosen->tuning.empty())
    console.line("tuning    " + chosen->tuning);
  printData(console, options, inputs->data);
  printEvalData(console, options, *inputs);
  if (role.writes())
    printSkipped(console, options, inputs->weights);
  Status status = runSteps(console, options, *inputs, *chosen, channel);
  if (channel)
    channel->setProgress(nullptr);
  // Before the backend goes, which may wait for other ranks.
  if (!status.isOk() && channel)
    reportFailure(*channel, status);
  // The backends of a job end together.
  if (status.isOk() && channel)
    GTP_RETURN_IF_ERROR(channel->exchange("trained").status());
  return status;
}

/// A rank of a job: agrees with the others, runs, and tells them if it fails.
static Status runRank(Console &console, const RunOptions &options,
                      const plan::pb::Plan &plan, const std::string &checked,
                      const Role &role, const GpuSupport *gpus,
                      const std::string &commandLine) {
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<ControlChannel> channel,
                       ControlChannel::open(*role.place));
  auto attempt = [&] {
    GTP_ASSIGN_OR_RETURN(std::string own, gpus->identify(role.device));
    GTP_RETURN_IF_ERROR(checkOwnGpus(*channel, own));
    GTP_ASSIGN_OR_RETURN(std::string gpu, gpus->describe(role.device));
    GTP_RETURN_IF_ERROR(
        agree(*channel, plan::hashPlan(plan).text(), commandLine, gpu));
    return runPlan(console, options, plan, checked, role, nullptr, gpus,
                   channel.get());
  };
  Status status = attempt();
  if (status.isOk())
    return channel->finish();
  reportFailure(*channel, status);
  std::string reason = channel->health().message();
  std::fprintf(stderr, "%sgtp-run: error: %s\n", console.prefix(),
               reason.c_str());
  std::fflush(nullptr);
  // The news is on its way to the others; whatever this process still has to
  // do with them or with its GPU might never end.
  channel.reset();
  std::_Exit(1);
}

/// A program that builds another plan than it was made for says so, whether it
/// was changed or its runtime was.
static Status checkHash(const BuiltPlan &built) {
  std::string found = plan::hashPlan(*built.plan).text();
  if (built.hash.empty() || built.hash == found)
    return Status::ok();
  return Status::error(
      "builds a plan with hash " + found + ", and gtp-opt wrote it for " +
      built.hash +
      "; build it with the runtime of that gtp-opt, or, if the program was "
      "changed, leave the hash at its end empty");
}

static Status run(Console &console, const RunOptions &options,
                  const BackendFactory &createHost, const GpuSupport *gpus,
                  const BuiltPlan *built, int argc, const char *const *argv) {
  if (built) {
    Status same = checkHash(*built);
    if (!same.isOk())
      return std::move(same).in(options.plan);
  }
  if (!options.emitPlan.empty())
    return plan::savePlan(*built->plan, options.emitPlan);
  GTP_ASSIGN_OR_RETURN(
      LoadedPlans plans,
      LoadedPlans::load(options, built ? built->plan : nullptr));
  GTP_ASSIGN_OR_RETURN(std::string checked, plans.check(options));
  if (options.verifyOnly) {
    console.line(options.plan + ": " + checked);
    return Status::ok();
  }
  GTP_RETURN_IF_ERROR(plans.checkOnePlan(options));
  auto summary = RunPlan::create(plans.plan());
  if (!summary.isOk())
    return std::move(summary).status().in(options.plan);
  auto role = chooseRole(options, summary->ranks(), gpus, std::getenv);
  if (!role.isOk())
    return std::move(role).status().in(options.plan);
  if (role->kind == Role::Launcher) {
    // What is wrong with the inputs is said once.
    GTP_RETURN_IF_ERROR(checkInputs(options, plans.plan(), true).status());
    GTP_RETURN_IF_ERROR(openTuningCache(options, true).status());
    return launchRanks(summary->ranks(), argv);
  }
  if (!role->place)
    return runPlan(console, options, plans.plan(), checked, *role, createHost,
                   gpus, nullptr);
  console.setQuiet(!role->writes());
  return runRank(console, options, plans.plan(), checked, *role, gpus,
                 commandLineText(argc, argv, options.plan));
}

int gtp::rt::runTool(int argc, const char *const *argv,
                     const BackendFactory &createHost, const GpuSupport *gpus,
                     const BuiltPlan *built) {
  std::string self = argc > 0 ? argv[0] : "program";
  self = self.substr(self.rfind('/') + 1);
  auto line = parseCommandLine(argc, argv, built ? self.c_str() : nullptr);
  if (!line.isOk()) {
    std::fprintf(stderr, "gtp-run: error: %s\n", line.message().c_str());
    return 1;
  }
  if (line->text)
    std::fputs(line->text->c_str(), stdout);
  Console console(line->options.unchecked);
  Status status = Status::ok();
  try {
    if (!line->text)
      status = run(console, line->options, createHost, gpus, built, argc, argv);
  } catch (const std::bad_alloc &) {
    status =
        Status::error("not enough memory for the run").in(line->options.plan);
  }
  console.finish();
  if (status.isOk())
    status = console.written();
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "%sgtp-run: error: %s\n", console.prefix(),
               status.message().c_str());
  return 1;
}
