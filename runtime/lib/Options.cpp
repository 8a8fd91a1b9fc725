//===- Options.cpp - The command line of gtp-run --------------------------===//

#include "gtp-rt/Options.h"
#include "ParseNumber.h"
#include "gtp/Support/LinkTarget.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

using namespace gtp;
using namespace gtp::rt;

static Status wrongValue(const char *option, const std::string &found,
                         const std::string &expected) {
  return Status::error(std::string(option) + "=" + found + ": expected " +
                       expected);
}

/// A number in [0, below), in double and in the float32 that kernels get.
static Status parseNumber(const char *option, const std::string &text,
                          double below, double &value) {
  if (!parseWhole(text, value) || !std::isfinite(value) || value < 0 ||
      value >= below)
    return wrongValue(option, text,
                      std::isfinite(below) ? "a number from 0 to below 1"
                                           : "a finite number, 0 or more");
  if (value > std::numeric_limits<float>::max() || float(value) >= below)
    return wrongValue(option, text,
                      std::isfinite(below) ? "a number below 1 in float32"
                                           : "a finite number in float32");
  return Status::ok();
}

static Status parseInteger(const char *option, const std::string &text,
                           uint64_t &value) {
  if (!parseWhole(text, value))
    return wrongValue(option, text, "an integer, 0 or more");
  return Status::ok();
}

namespace {

/// An option for what gtp-run cannot do yet: parsed, and refused by name.
struct Refused {
  const char *name;
  const char *help;
  const char *instead;
  std::string value;
};

/// The values as written; checked in `convert`.
struct Texts {
  std::string tokenBits, steps = "1", lr = "1e-3", schedule = "const";
  std::string weightDecay = "0", betas = "0.9,0.95", eps = "1e-8", seed = "0";
  std::string backend = "auto", hostJitter, maxNonFinite = "3";
  std::string evalEvery, evalSteps, withoutCollectives;
  std::vector<std::string> data, rankPlans;
};

} // namespace

static Status convertHyper(const Texts &texts, Hyperparameters &hyper) {
  constexpr double kAny = HUGE_VAL;
  GTP_RETURN_IF_ERROR(parseNumber("--lr", texts.lr, kAny, hyper.learningRate));
  GTP_RETURN_IF_ERROR(parseNumber("--weight-decay", texts.weightDecay, kAny,
                                  hyper.weightDecay));
  size_t comma = texts.betas.find(',');
  if (comma == std::string::npos)
    return wrongValue("--betas", texts.betas,
                      "two numbers with a comma, such as 0.9,0.95");
  GTP_RETURN_IF_ERROR(
      parseNumber("--betas", texts.betas.substr(0, comma), 1, hyper.beta1));
  GTP_RETURN_IF_ERROR(
      parseNumber("--betas", texts.betas.substr(comma + 1), 1, hyper.beta2));
  GTP_RETURN_IF_ERROR(parseNumber("--eps", texts.eps, kAny, hyper.epsilon));
  // The kernel divides by sqrt(v) + eps, and v of a pad row is 0.
  if (float(hyper.epsilon) == 0)
    return wrongValue("--eps", texts.eps, "a number above 0 in float32");
  return Status::ok();
}

/// The schedule, which must fit the run that the other options describe.
static Status convertSchedule(const Texts &texts, RunOptions &options) {
  auto schedule = Schedule::parse(texts.schedule);
  if (!schedule)
    return wrongValue("--lr-schedule", texts.schedule,
                      "const, const:WARMUP, cosine:WARMUP,MIN or "
                      "linear:WARMUP,MIN, such as cosine:100,1e-5");
  options.schedule = *schedule;
  if (options.verifyOnly || options.steps == 0)
    return Status::ok();
  if (schedule->warmup > options.steps)
    return Status::error("--lr-schedule=" + texts.schedule + ": a warm-up of " +
                         std::to_string(schedule->warmup) +
                         " steps does not fit --steps=" + texts.steps);
  if (schedule->minimum > options.hyper.learningRate)
    return Status::error(
        "--lr-schedule=" + texts.schedule +
        ": the decay would end above its start, --lr=" + texts.lr);
  return Status::ok();
}

static Status convertData(const Texts &texts, RunOptions &options) {
  double sum = 0;
  for (const std::string &text : texts.data) {
    DataFile file{text};
    size_t colon = text.rfind(':');
    double weight = 1;
    // What is not a number belongs to the path.
    if (colon != std::string::npos &&
        parseWhole(text.substr(colon + 1), weight)) {
      file = {text.substr(0, colon), weight};
      if (file.path.empty() || !std::isfinite(weight) || weight <= 0)
        return wrongValue("--data", text,
                          "FILE or FILE:WEIGHT with a finite weight above 0");
    }
    sum += file.weight;
    options.data.push_back(std::move(file));
  }
  if (!std::isfinite(sum))
    return Status::error("--data: the sum of the weights is infinite");
  return Status::ok();
}

static Status convertRankPlans(const Texts &texts, RunOptions &options) {
  for (const std::string &text : texts.rankPlans) {
    size_t colon = text.find(':');
    uint64_t rank = 0;
    if (colon == std::string::npos || colon + 1 == text.size() ||
        !parseWhole(text.substr(0, colon), rank))
      return wrongValue("--rank-plan", text,
                        "RANK:FILE, such as 1:other.gtpplan");
    for (const auto &[other, file] : options.rankPlans)
      if (other == rank)
        return Status::error("--rank-plan=" + text + ": rank " +
                             std::to_string(rank) + " already has the plan " +
                             file);
    options.rankPlans.emplace_back(rank, text.substr(colon + 1));
  }
  return Status::ok();
}

static Status convertEval(const Texts &texts, RunOptions &options) {
  auto parse = [](const char *option, const std::string &text,
                  uint64_t &value) {
    if (!text.empty() && (!parseWhole(text, value) || value == 0))
      return wrongValue(option, text, "an integer, 1 or more");
    return Status::ok();
  };
  GTP_RETURN_IF_ERROR(
      parse("--eval-every", texts.evalEvery, options.evalEvery));
  GTP_RETURN_IF_ERROR(
      parse("--eval-steps", texts.evalSteps, options.evalSteps));
  const std::pair<const char *, const std::string *> needData[] = {
      {"--eval-labels", &options.evalLabels},
      {"--eval-every", &texts.evalEvery},
      {"--eval-steps", &texts.evalSteps}};
  for (auto [option, text] : needData)
    if (options.evalData.empty() && !text->empty())
      return Status::error(std::string(option) + "=" + *text +
                           ": needs --eval-data, the text to evaluate on");
  return Status::ok();
}

static Status convertBackend(const Texts &texts, RunOptions &options) {
  if (texts.backend == "cuda")
    options.backend = RunOptions::BackendChoice::Cuda;
  else if (texts.backend == "host")
    options.backend = RunOptions::BackendChoice::Host;
  else if (texts.backend != "auto")
    return wrongValue("--backend", texts.backend, "auto, cuda or host");
  if (!options.tuningCache.empty() &&
      options.backend == RunOptions::BackendChoice::Host)
    return Status::error("--tuning-cache=" + options.tuningCache +
                         ": is of matrix products on GPUs, and --backend=host "
                         "has none; leave one of them out");
  if (texts.hostJitter.empty())
    return Status::ok();
  if (options.backend == RunOptions::BackendChoice::Cuda)
    return Status::error("--host-jitter=" + texts.hostJitter +
                         ": delays the host's threads, and --backend=cuda has "
                         "none; leave one of them out");
  return parseInteger("--host-jitter", texts.hostJitter,
                      options.hostJitter.emplace());
}

/// Needs `steps` and what else is written.
static Status convertWithoutCollectives(const Texts &texts,
                                        RunOptions &options) {
  const std::string &text = texts.withoutCollectives;
  if (text.empty())
    return Status::ok();
  uint64_t &after = options.withoutCollectivesAfter.emplace();
  if (!parseWhole(text, after) || after == 0 || after >= options.steps)
    return wrongValue("--without-collectives", text,
                      "the number of a step before the last of --steps=" +
                          texts.steps + ": those after it have no collectives");
  const std::pair<const char *, const std::string *> results[] = {
      {"--dump-grads", &options.dumpGrads},
      {"--dump-weights", &options.dumpWeights},
      {"--eval-data", &options.evalData},
      {"--tensorboard", &options.tensorboard}};
  for (const auto &[option, value] : results)
    if (!value->empty())
      return Status::error(
          "--without-collectives=" + text +
          ": steps without collectives train nothing, so that there is no "
          "result for " +
          option + "=" + *value + "; leave one of them out");
  if (options.backend == RunOptions::BackendChoice::Host)
    return Status::error("--without-collectives=" + text +
                         ": times kernels on GPUs; the host backend runs whole "
                         "steps only");
  return Status::ok();
}

static Status convert(const Texts &texts, RunOptions &options) {
  if (!texts.tokenBits.empty() && texts.tokenBits != "16" &&
      texts.tokenBits != "32")
    return wrongValue("--token-bits", texts.tokenBits,
                      "16 or 32; without the option ids are raw bytes");
  if (!texts.tokenBits.empty())
    options.tokenBits = texts.tokenBits == "16" ? 16 : 32;
  GTP_RETURN_IF_ERROR(convertData(texts, options));
  GTP_RETURN_IF_ERROR(convertEval(texts, options));
  GTP_RETURN_IF_ERROR(parseInteger("--steps", texts.steps, options.steps));
  GTP_RETURN_IF_ERROR(convertHyper(texts, options.hyper));
  GTP_RETURN_IF_ERROR(convertSchedule(texts, options));
  if (!parseWhole(texts.maxNonFinite, options.maxNonFinite) ||
      options.maxNonFinite == 0)
    return wrongValue("--max-nonfinite", texts.maxNonFinite,
                      "an integer, 1 or more");
  GTP_RETURN_IF_ERROR(parseInteger("--seed", texts.seed, options.seed));
  GTP_RETURN_IF_ERROR(convertBackend(texts, options));
  GTP_RETURN_IF_ERROR(convertWithoutCollectives(texts, options));
  return convertRankPlans(texts, options);
}

/// An output must not overwrite an input or another output.
static Status checkOutputs(const RunOptions &options) {
  std::vector<std::pair<const char *, const std::string *>> files = {
      {"PLAN", &options.plan},
      {"--weights", &options.weights},
      {"--eval-data", &options.evalData},
      {"--eval-labels", &options.evalLabels}};
  std::vector<std::pair<const char *, std::string>> indexed;
  if (isDatasetIndex(options.evalData))
    indexed.emplace_back("--eval-data", datasetIds(options.evalData));
  for (const DataFile &file : options.data) {
    files.emplace_back("--data", &file.path);
    if (isDatasetIndex(file.path))
      indexed.emplace_back("--data", datasetIds(file.path));
  }
  for (const auto &[option, file] : indexed)
    files.emplace_back(option, &file);
  for (const std::string &file : options.labels)
    files.emplace_back("--labels", &file);
  for (const auto &[rank, path] : options.rankPlans)
    files.emplace_back("--rank-plan", &path);
  const size_t firstOutput = files.size();
  const std::string tuning =
      options.tuningCache == "off" ? "" : options.tuningCache;
  files.insert(files.end(), {{"--tuning-cache", &tuning},
                             {"--metrics", &options.metrics},
                             {"--dump-grads", &options.dumpGrads},
                             {"--dump-weights", &options.dumpWeights},
                             {"--emit-plan", &options.emitPlan},
                             {"--profile", &options.profile},
                             {"--trace", &options.trace}});
  for (size_t output = firstOutput; output < files.size(); ++output)
    for (size_t other = 0; other < output; ++other)
      if (!files[output].second->empty() &&
          isSameFile(*files[output].second, *files[other].second))
        return Status::error(std::string(files[output].first) + "=" +
                             *files[output].second + ": is also " +
                             files[other].first +
                             "; an output needs a file of its own");
  return Status::ok();
}

/// What times operations needs steps for it, whose operations are timed whole.
static Status checkTimes(const RunOptions &options) {
  const std::tuple<const char *, const std::string *, uint64_t> outputs[] = {
      {"--profile", &options.profile, 4}, {"--trace", &options.trace, 3}};
  for (const auto &[option, file, least] : outputs) {
    if (file->empty())
      continue;
    const bool isCut = options.withoutCollectivesAfter.has_value();
    const uint64_t last =
        isCut ? *options.withoutCollectivesAfter - 1 : options.steps;
    if (last < least)
      return Status::error(std::string(option) + "=" + *file +
                           ": times steps from the third on, and needs " +
                           (isCut ? "--without-collectives=" : "--steps=") +
                           std::to_string(least + (isCut ? 1 : 0)) +
                           " or more; got " +
                           std::to_string(last + (isCut ? 1 : 0)));
    if (!options.dumpGrads.empty())
      return Status::error(
          std::string(option) + "=" + *file +
          ": --dump-grads stops its step on the way; leave one of them out");
  }
  return Status::ok();
}

/// Combinations that cannot mean anything.
static Status checkTogether(const RunOptions &options) {
  if (options.plan.empty())
    return Status::error("no plan given; usage: gtp-run PLAN [options], "
                         "gtp-run --help lists them");
  if (options.unchecked && options.verifyOnly)
    return Status::error(
        "--unchecked: skips the checker that --verify-only asks for; "
        "give one of them");
  if (options.verifyOnly || !options.emitPlan.empty())
    return Status::ok();
  if (options.data.empty() && options.steps > 0)
    return Status::error(
        "--data is not given; training reads a file of tokens (--steps=0 only "
        "initializes, and evaluates with --eval-data; --verify-only only "
        "checks)");
  if (options.data.empty() && !options.labels.empty())
    return Status::error("--labels=" + options.labels.front() +
                         ": needs --data, one label a token");
  if (!options.labels.empty() && options.labels.size() != options.data.size())
    return Status::error(
        "--labels: got " + std::to_string(options.labels.size()) + " for " +
        std::to_string(options.data.size()) +
        " files of --data; give one for each, in the same order");
  std::vector<std::string> texts;
  for (const DataFile &file : options.data)
    texts.push_back(file.path);
  if (!options.evalData.empty())
    texts.push_back(options.evalData);
  if (options.tokenBits != 8 && !texts.empty() &&
      std::all_of(texts.begin(), texts.end(), isDatasetIndex))
    return Status::error("--token-bits=" + std::to_string(options.tokenBits) +
                         ": the index " + texts.front() +
                         " says how wide ids are; leave the option out");
  if (options.steps == 0 && options.evalEvery != 0)
    return Status::error("--eval-every=" + std::to_string(options.evalEvery) +
                         ": there are no steps with --steps=0, which "
                         "evaluates once; leave the option out");
  if (options.steps == 0 && !options.tensorboard.empty())
    return Status::error("--tensorboard=" + options.tensorboard +
                         ": there is nothing to show with --steps=0; at least "
                         "1 step is needed");
  GTP_RETURN_IF_ERROR(checkTimes(options));
  if (options.steps == 0 && !options.dumpGrads.empty())
    return Status::error(
        "--dump-grads=" + options.dumpGrads +
        ": there is no gradient with --steps=0; at least 1 step is needed");
  return checkOutputs(options);
}

StatusOr<CommandLine> gtp::rt::parseCommandLine(int argc,
                                                const char *const *argv,
                                                const char *builtIn) {
  CommandLine line;
  RunOptions &options = line.options;
  Texts texts;
  std::vector<Refused> refused = {
      {"--save",
       "folder of checkpoints",
       "--dump-weights writes the weights",
       {}},
      {"--save-every",
       "steps between checkpoints",
       "--dump-weights writes the weights",
       {}},
      {"--resume",
       "checkpoint to go on from",
       "--weights starts from given weights",
       {}},
  };

  CLI::App app(builtIn ? "Trains the model of the plan that it builds."
                       : "Trains the model of a plan that gtp-opt made.",
               builtIn ? builtIn : "gtp-run");
  app.set_version_flag("--version", "gtp-run " GTP_VERSION);
  auto add = [&](const char *name, auto &value, const char *type,
                 const char *help) {
    return app.add_option(name, value, help)->type_name(type);
  };
  auto withDefault = [&](const char *name, std::string &value, const char *type,
                         const char *help) {
    add(name, value, type, help)->default_str(value);
  };
  if (builtIn)
    add("--emit-plan", options.emitPlan, "FILE",
        "write the plan, as gtp-opt --emit=plan does, and stop");
  else
    add("PLAN", options.plan, "FILE", "the plan (gtp-opt --emit=plan)");
  add("--data", texts.data, "FILE[:WEIGHT]",
      "tokens: raw bytes, ids (--token-bits), or the index of a Megatron-LM "
      "dataset (NAME.idx beside NAME.bin); of several files, a sample "
      "is from one in proportion to its weight (1) (repeatable)")
      ->allow_extra_args(false);
  add("--token-bits", texts.tokenBits, "16|32",
      "width of little-endian ids in --data");
  add("--labels", options.labels, "FILE",
      "int32 labels, one a token, -100 not counted; one file for each of "
      "--data")
      ->allow_extra_args(false);
  add("--weights", options.weights, "FILE_OR_DIR", "safetensors to start from");
  add("--eval-data", options.evalData, "FILE",
      "held-out tokens, as --data: their loss behind the last step, or with "
      "--steps=0 of the weights as they are");
  add("--eval-labels", options.evalLabels, "FILE",
      "int32 labels of --eval-data, one a token, -100 not counted");
  add("--eval-every", texts.evalEvery, "N",
      "evaluate behind every Nth step too");
  add("--eval-steps", texts.evalSteps, "N",
      "read at most N global batches of --eval-data, from its start");
  withDefault("--steps", texts.steps, "N",
              "training steps; 0 only initializes, and evaluates");
  withDefault("--lr", texts.lr, "X", "learning rate");
  withDefault("--lr-schedule", texts.schedule, "S",
              "const, const:WARMUP, cosine:WARMUP,MIN or linear:WARMUP,MIN: "
              "linear warm-up in steps, decay to the rate MIN in the last "
              "step");
  withDefault("--weight-decay", texts.weightDecay, "X",
              "decoupled weight decay");
  withDefault("--betas", texts.betas, "A,B", "decay of AdamW's moments");
  withDefault("--eps", texts.eps, "X", "AdamW's epsilon");
  withDefault("--max-nonfinite", texts.maxNonFinite, "N",
              "end after N steps in a row whose loss or gradient norm is not "
              "finite; until then their updates are skipped");
  withDefault("--seed", texts.seed, "N",
              "of the samples and the initial weights");
  withDefault("--backend", texts.backend, "auto|cuda|host",
              "what executes the plan; auto: cuda where there is a GPU");
  add("--host-jitter", texts.hostJitter, "SEED",
      "random delays before operations");
  app.add_flag("--eager", options.eager,
               "no graph capture; the host never captures");
  add("--without-collectives", texts.withoutCollectives, "N",
      "time kernels alone: steps after step N run without collectives, on what "
      "those of step N have written, and train nothing");
  add("--tuning-cache", options.tuningCache, "FILE|off",
      "measured algorithms of matrix products on GPUs; what it lacks is "
      "measured and added (default: gtp/tuning.json in XDG_CACHE_HOME or "
      "~/.cache); off: the library's first choice");
  add("--metrics", options.metrics, "FILE.jsonl", "a line of JSON a step");
  add("--tensorboard", options.tensorboard, "DIR",
      "a file of events with loss, grad_norm and lr for TensorBoard");
  add("--dump-grads", options.dumpGrads, "FILE.safetensors",
      "the last step's gradients");
  add("--dump-weights", options.dumpWeights, "FILE.safetensors",
      "weights after the last step");
  add("--profile", options.profile, "FILE.json",
      "how long operations take, alone and beside others, for --target of "
      "gtp-opt");
  add("--trace", options.trace, "FILE.json",
      "a step as predicted and as measured, for Perfetto");
  app.add_flag("--verify-only", options.verifyOnly, "check the plan and stop");
  add("--rank-plan", texts.rankPlans, "R:FILE",
      "give one rank another plan (repeatable)")
      ->allow_extra_args(false);
  app.add_flag("--unchecked", options.unchecked, "skip the checker");
  for (Refused &option : refused)
    add(option.name, option.value, "X", option.help)
        ->group("Not supported yet");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    line.text = app.help();
    return line;
  } catch (const CLI::CallForVersion &version) {
    line.text = std::string(version.what()) + "\n";
    return line;
  } catch (const CLI::ExtrasError &) {
    return Status::error("unknown argument '" + app.remaining().front() +
                         "'; gtp-run --help lists the options");
  } catch (const CLI::ParseError &error) {
    return Status::error(std::string(error.what()) +
                         "; gtp-run --help lists the options");
  }
  for (const Refused &option : refused)
    if (app.get_option(option.name)->count() > 0)
      return Status::error(std::string(option.name) + ": not supported yet; " +
                           option.instead);
  if (builtIn)
    options.plan = builtIn;
  GTP_RETURN_IF_ERROR(convert(texts, options));
  GTP_RETURN_IF_ERROR(checkTogether(options));
  return line;
}
