//===- CompileFlags.cpp - The command line of a compilation ---------------===//
//
// All values are read as text and checked here, so that every wrong one gets an
// error in the same words; LLVM's own parser prints others.
//
//===----------------------------------------------------------------------===//

#include "CompileFlags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace gtp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

CompileFlags::CompileFlags()
    : category("gtp-opt options", "What to compile, and for what"),
      input(cl::Positional, cl::init("-"), cl::cat(category),
            cl::desc("<config.json | .mlir | .mlirbc | ->")),
      output("o", cl::init("-"), cl::cat(category), cl::value_desc("file"),
             cl::desc("Output file (-: standard output)")),
      mesh("mesh", cl::init("dp=1,gtp=1"), cl::cat(category),
           cl::value_desc("dp=2,gtp=4"),
           cl::desc(
               "Axis degrees in rank order, the last fastest; axes dp, gtp, "
               "tp, cp (1 each)")),
      expertMesh("expert-mesh", cl::cat(category),
                 cl::value_desc("ep=4,egtp=2"),
                 cl::desc("Not supported yet: the mesh of expert weights")),
      sequence("seq", cl::cat(category), cl::value_desc("N"),
               cl::desc("Tokens a sequence (min(2048, max positions))")),
      microBatch("micro-batch", cl::init("1"), cl::cat(category),
                 cl::value_desc("N"),
                 cl::desc("Sequences a data rank a microbatch (1)")),
      globalBatch("global-batch", cl::cat(category), cl::value_desc("N"),
                  cl::desc("Sequences a step (data ranks x micro-batch); data "
                           "ranks = dp x gtp")),
      dtype("dtype", cl::init("bf16"), cl::cat(category),
            cl::value_desc("bf16|f32"),
            cl::desc("Weights and activations (bf16)")),
      gradDtype("grad-dtype", cl::init("f32"), cl::cat(category),
                cl::value_desc("f32|bf16"), cl::desc("Gradients (f32)")),
      reduceDtype("reduce-dtype", cl::cat(category), cl::value_desc("f32|bf16"),
                  cl::desc("Gradients on the wire (grad-dtype)")),
      stateDtype(
          "state-dtype", cl::init("f32"), cl::cat(category),
          cl::value_desc("f32|bf16|split"),
          cl::desc("Master weights and moments (f32); split: float32 masters "
                   "as the bf16 weights and 16 bits more")),
      attentionBackward(
          "attention-backward", cl::init("deterministic"), cl::cat(category),
          cl::value_desc("deterministic|fast"),
          cl::desc("Gradient of attention (deterministic); fast: on GPUs not "
                   "the same bits in every run")),
      optimizer("optimizer", cl::init("adamw"), cl::cat(category),
                cl::value_desc("adamw|sgd"), cl::desc("Optimizer (adamw)")),
      clipNorm("clip-norm", cl::init("0"), cl::cat(category),
               cl::value_desc("X"),
               cl::desc("Largest global norm of the gradients (0: off)")),
      freeze("freeze", cl::cat(category), cl::value_desc("regex"),
             cl::desc("Parameters that are not trained, by their checkpoint "
                      "names")),
      replicate("replicate", cl::cat(category), cl::value_desc("regex"),
                cl::desc("Parameters that every rank holds whole")),
      loss("loss", cl::init("token-mean"), cl::cat(category),
           cl::value_desc("token-mean|sequence-mean"),
           cl::desc("Mean over all counted labels, or over sequences of each "
                    "one's mean (token-mean)")),
      dropout(
          "dropout", cl::cat(category), cl::value_desc("0"),
          cl::desc("0: a config's dropout is not applied, without a warning")),
      documentSeparator(
          "document-separator", cl::cat(category), cl::value_desc("id"),
          cl::desc("The last token of each document: positions restart behind "
                   "it and attention does not cross it (none)")),
      memoryBudget(
          "memory-budget", cl::init("unlimited"), cl::cat(category),
          cl::value_desc("size|unlimited"),
          cl::desc("Bytes of a rank, or with KiB, MiB, GiB (unlimited)")),
      target("target", cl::init("cpu"), cl::cat(category),
             cl::value_desc("cpu|h100|h200|gb200|FILE.json"),
             cl::desc("Device profile that costs come from (cpu)")),
      emit("emit", cl::init("mlir"), cl::cat(category),
           cl::value_desc("mlir|plan|plan-text|cpp|trace|gantt"),
           cl::desc("Output (mlir); with any other the whole pipeline runs")),
      stopAfter("stop-after", cl::cat(category), cl::value_desc("pass"),
                cl::desc("Run the pipeline up to this pass and print MLIR")),
      stats("stats", cl::cat(category), cl::value_desc("file.json"),
            cl::desc("Numbers about the plan")),
      fitReport("fit-report", cl::init("auto"), cl::cat(category),
                cl::value_desc("auto|always|never"),
                cl::desc("What the plan's memory is for, on standard error "
                         "(auto: on a terminal)")),
      noFuse("no-fuse", cl::cat(category),
             cl::desc("A kernel for each operation, none for several")),
      noPrefetch("no-prefetch", cl::cat(category),
                 cl::desc("Gather each weight where it is used")),
      sync("sync", cl::cat(category),
           cl::desc("Each collective runs alone, beside no kernel and "
                    "no other collective")),
      prefetchDistance("prefetch-distance", cl::cat(category),
                       cl::value_desc("N"),
                       cl::desc("Gather N weights ahead, not when it pays")),
      overrides("overrides", cl::cat(category), cl::value_desc("file"),
                cl::desc("What is decided for single parameters "
                         "(docs/overrides.md)")) {}

llvm::SmallVector<const cl::Option *> CompileFlags::ofCompilations() const {
  return {&mesh,
          &expertMesh,
          &sequence,
          &microBatch,
          &globalBatch,
          &dtype,
          &gradDtype,
          &reduceDtype,
          &stateDtype,
          &attentionBackward,
          &optimizer,
          &clipNorm,
          &freeze,
          &replicate,
          &loss,
          &dropout,
          &documentSeparator,
          &memoryBudget,
          &target,
          &emit,
          &stopAfter,
          &stats,
          &fitReport,
          &noFuse,
          &noPrefetch,
          &sync,
          &prefetchDistance,
          &overrides};
}

const cl::Option *CompileFlags::firstGiven() const {
  for (const cl::Option *option : ofCompilations())
    if (option->getNumOccurrences())
      return option;
  return nullptr;
}

/// LLVM takes the last of several values, and an empty name for none.
Error CompileFlags::refuseUnclear() const {
  llvm::SmallVector<const cl::Option *> all = ofCompilations();
  all.push_back(&output);
  for (const cl::Option *option : all)
    if (option->getNumOccurrences() > 1)
      return usageError(Twine(option == &output ? "-" : "--") + option->ArgStr +
                        " is given " + Twine(option->getNumOccurrences()) +
                        " times; give one");
  for (const Text *option :
       {&stopAfter, &stats, &freeze, &replicate, &overrides})
    if (option->getNumOccurrences() && option->empty())
      return usageError("--" + option->ArgStr + "=: expected a " +
                        option->ValueStr);
  return Error::success();
}

/// What the compiler cannot do yet is refused, never ignored.
Error CompileFlags::refuseUnsupported() const {
  if (expertMesh.getNumOccurrences())
    return usageError("--expert-mesh is not supported yet");

  struct Choice {
    const Text &option;
    llvm::ArrayRef<StringRef> supported;
    llvm::ArrayRef<StringRef> planned;
  };
  static const StringRef gradients[] = {"deterministic", "fast"};
  static const StringRef states[] = {"f32", "bf16", "split"};
  static const StringRef optimizers[] = {"adamw", "sgd"};
  static const StringRef means[] = {"token-mean", "sequence-mean"};
  static const StringRef reports[] = {"auto", "always", "never"};
  static const StringRef outputs[] = {"mlir", "plan",  "plan-text",
                                      "cpp",  "trace", "gantt"};
  for (const Choice &choice :
       {Choice{attentionBackward, gradients, {}},
        Choice{stateDtype, states, {}}, Choice{optimizer, optimizers, {}},
        Choice{loss, means, {}}, Choice{fitReport, reports, {}},
        Choice{emit, outputs, {}}}) {
    StringRef value = choice.option.getValue();
    if (llvm::is_contained(choice.supported, value))
      continue;
    std::string supported = llvm::join(choice.supported, ", ");
    if (llvm::is_contained(choice.planned, value))
      return usageError("--" + choice.option.ArgStr + "=" + value +
                        " is not supported yet; supported: " + supported);
    return usageError("--" + choice.option.ArgStr + "=" + value +
                      ": expected one of " + supported);
  }
  if (dropout.getNumOccurrences() && dropout != "0")
    return usageError("--dropout=" + dropout +
                      ": dropout is not applied; only 0 is supported");
  return Error::success();
}

/// Moves what an Expected holds to `place`, or returns its error.
template <typename T, typename U>
static Error take(Expected<U> value, T &place) {
  if (!value)
    return value.takeError();
  place = std::move(*value);
  return Error::success();
}

Expected<CompileOptions> CompileFlags::read() const {
  CompileOptions options;
  if (Error error = refuseUnclear())
    return std::move(error);
  if (Error error = refuseUnsupported())
    return std::move(error);
  if (Error error = readBatch(options))
    return std::move(error);
  if (Error error = readTypes(options))
    return std::move(error);
  options.stateDtype = stateDtype;
  options.fastAttention = attentionBackward == "fast";
  options.sequenceMean = loss == "sequence-mean";
  if (optimizer == "sgd")
    options.optimizer = CompileOptions::Optimizer::Sgd;
  if (StringRef(clipNorm).getAsDouble(options.clipNorm))
    return usageError("--clip-norm=" + clipNorm + ": expected a number");
  // What rounds to 0 in double does not mean off.
  StringRef digits = StringRef(clipNorm).take_until(
      [](char c) { return llvm::toLower(c) == 'e'; });
  if (options.clipNorm == 0 &&
      digits.find_first_of("123456789") != StringRef::npos)
    return usageError("--clip-norm=" + clipNorm +
                      ": rounds to 0, which means off; expected 0 or more");
  options.dropoutAcknowledged = dropout.getNumOccurrences();
  if (documentSeparator.getNumOccurrences()) {
    Expected<int64_t> id =
        parseCount("document-separator", documentSeparator, 0);
    if (!id)
      return id.takeError();
    options.documentSeparator = *id;
  }
  if (Error error =
          take(parseSize("memory-budget", memoryBudget), options.memoryBudget))
    return std::move(error);
  options.target = target;
  options.fuse = !noFuse;
  options.prefetch = !noPrefetch;
  options.sync = sync;
  if (prefetchDistance.getNumOccurrences())
    if (Error error = take(
            parseCount("prefetch-distance", prefetchDistance, 1, UINT32_MAX),
            options.prefetchDistance))
      return std::move(error);
  for (const Text *option : {&freeze, &replicate})
    if (option->getNumOccurrences())
      if (Error error = checkRegex(*option))
        return usageError("--" + option->ArgStr + "=" + *option + ": " +
                          llvm::toString(std::move(error)));
  options.overrides = {freeze, replicate, overrides};
  if (emit == "plan")
    options.emit = CompileOptions::Emit::Plan;
  else if (emit == "plan-text")
    options.emit = CompileOptions::Emit::PlanText;
  else if (emit == "cpp")
    options.emit = CompileOptions::Emit::Cpp;
  else if (emit == "trace")
    options.emit = CompileOptions::Emit::Trace;
  else if (emit == "gantt")
    options.emit = CompileOptions::Emit::Gantt;
  if (fitReport == "always")
    options.fitReport = CompileOptions::FitReport::Always;
  else if (fitReport == "never")
    options.fitReport = CompileOptions::FitReport::Never;
  options.stopAfter = stopAfter;
  options.statsFile = stats;
  if (Error error = options.validate())
    return std::move(error);
  return options;
}

Error CompileFlags::readBatch(CompileOptions &options) const {
  if (Error error = take(parseMeshOption("mesh", mesh), options.mesh))
    return error;
  struct Count {
    const Text &option;
    int64_t &place;
  };
  for (const Count &count : {Count{sequence, options.sequence},
                             Count{microBatch, options.microBatch},
                             Count{globalBatch, options.globalBatch}})
    if (count.option.getNumOccurrences())
      if (Error error =
              take(parseCount(count.option.ArgStr, count.option.getValue(), 1),
                   count.place))
        return error;
  return Error::success();
}

Error CompileFlags::readTypes(CompileOptions &options) const {
  if (Error error = take(parseElement("dtype", dtype), options.dtype))
    return error;
  if (Error error =
          take(parseElement("grad-dtype", gradDtype), options.gradDtype))
    return error;
  options.reduceDtype = options.gradDtype;
  if (reduceDtype.getNumOccurrences())
    if (Error error = take(parseElement("reduce-dtype", reduceDtype),
                           options.reduceDtype))
      return error;
  return Error::success();
}
