//===- Compile.cpp - From an input to the output asked for ----------------===//

#include "Compile.h"

#include "OutputFile.h"
#include "SchedulePictures.h"
#include "Stats.h"

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanToCpp.h"
#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Import/Import.h"
#include "gtp/Machine/Profile.h"
#include "gtp/Plan/PlanFile.h"
#include "gtp/Support/LinkTarget.h"
#include "gtp/Tools/Pipeline.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace gtp;

llvm::Error gtp::reportedError() { return usageError(""); }

LogicalResult gtp::reportError(llvm::Error error) {
  llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &info) {
    std::string message = info.message();
    if (!message.empty())
      llvm::WithColor::error(llvm::errs(), "gtp-opt") << message << "\n";
  });
  return failure();
}

bool gtp::isConfig(const llvm::MemoryBuffer &input) {
  StringRef name = input.getBufferIdentifier();
  if (name.ends_with(".json"))
    return true;
  if (name.ends_with(".mlir") || name.ends_with(".mlirbc"))
    return false;
  // MLIR may start with "{-#", its resources; bytecode starts with "ML".
  StringRef text = input.getBuffer().ltrim();
  return text.starts_with("{") && !text.starts_with("{-#");
}

//===----------------------------------------------------------------------===//
// Programs that are MLIR already
//===----------------------------------------------------------------------===//

/// A forward program says in its types how many sequences of how many tokens a
/// microbatch has, and what it computes in; the mesh, how many ranks share it.
static llvm::Error describeForward(ModuleOp module, CompileJob &job) {
  auto forward = module.lookupSymbol<func::FuncOp>(tfm::kForwardFunction);
  if (!forward || forward.getNumArguments() == 0)
    return llvm::Error::success();
  auto tokens = dyn_cast<RankedTensorType>(forward.getArgumentTypes()[0]);
  auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr);
  if (!model || !tokens || tokens.getRank() != 2 || !tokens.hasStaticShape())
    return llvm::Error::success(); // tfm-differentiate says what is wrong
  CompileOptions &options = job.options;
  int64_t batch = tokens.getDimSize(0), dataRanks = options.mesh.dataRanks();
  if (batch == 0 || batch % dataRanks != 0)
    return usageError("--mesh=" + options.mesh.str() + ": @" +
                      tfm::kForwardFunction + " computes " + Twine(batch) +
                      " sequences, expected a multiple of the " +
                      Twine(dataRanks) + " data ranks");
  auto microbatches = model.getAs<IntegerAttr>("microbatches");
  int64_t count = microbatches ? microbatches.getInt() : 1, globalBatch = 0;
  if (count < 1 || llvm::MulOverflow(batch, count, globalBatch))
    return usageError("'" + Twine(tfm::kModelAttr) + "' has microbatches = " +
                      Twine(count) + ", expected 1 or more that fit");
  Builder builder(module.getContext());
  NamedAttrList fields(model);
  auto set = [&](StringRef name, int64_t value) {
    fields.set(name, builder.getI64IntegerAttr(value));
  };
  set("sequence", tokens.getDimSize(1));
  set("micro_batch", batch / dataRanks);
  set("global_batch", globalBatch);
  set("microbatches", count);
  module->setAttr(tfm::kModelAttr, fields.getDictionary(module.getContext()));

  for (auto parameter : module.getOps<tfm::ParameterOp>()) {
    Type element = parameter.getType().getElementType();
    Element dtype = element.isF32() ? Element::F32 : Element::BF16;
    if (job.flags.givesDtype() && options.dtype != dtype)
      return usageError("--dtype=" + name(options.dtype) +
                        ": the program computes in " + name(dtype));
    options.dtype = dtype;
    break;
  }
  return llvm::Error::success();
}

/// The batch and the sequence are in the program: options take them from it,
/// and must not say otherwise.
static llvm::Error adoptProgram(ModuleOp module, CompileJob &job) {
  if (llvm::Error error = describeForward(module, job))
    return error;
  auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr);
  if (!model)
    return usageError(
        "'" + job.input->getBufferIdentifier() + "' has no '" +
        tfm::kModelAttr +
        "' attribute, which says what model it is; only single passes can run "
        "on it");
  auto field = [&](StringRef key) {
    auto value = model.getAs<IntegerAttr>(key);
    return value ? value.getInt() : int64_t(0);
  };
  CompileOptions &options = job.options;
  int64_t sequence = field("sequence");
  if (options.sequence && options.sequence != sequence)
    return usageError("--seq=" + Twine(options.sequence) +
                      ": the program is for " + Twine(sequence) +
                      " tokens a sequence");
  int64_t microBatch = field("micro_batch");
  int64_t globalBatch = field("global_batch");
  // Sequences of a data rank.
  int64_t perRank = 0;
  bool overflows =
      llvm::MulOverflow(microBatch, field("microbatches"), perRank);
  if (overflows || perRank < 1 || globalBatch % perRank != 0)
    return usageError("'" + Twine(tfm::kModelAttr) +
                      "' does not hold a batch of whole microbatches");
  if (job.flags.givesMicroBatch() && options.microBatch != microBatch)
    return usageError("--micro-batch=" + Twine(options.microBatch) +
                      ": the program is for " + Twine(microBatch));
  if (options.globalBatch && options.globalBatch != globalBatch)
    return usageError("--global-batch=" + Twine(options.globalBatch) +
                      ": the program is for " + Twine(globalBatch));
  std::optional<int64_t> separator;
  if (auto value = model.getAs<IntegerAttr>("document_separator"))
    separator = value.getInt();
  if (options.documentSeparator && options.documentSeparator != separator)
    return usageError(
        "--document-separator=" + Twine(*options.documentSeparator) +
        ": the program has " +
        (separator ? std::to_string(*separator) : std::string("none")));
  options.documentSeparator = separator;
  int64_t dataRanks = globalBatch / perRank;
  if (options.mesh.dataRanks() != dataRanks)
    return usageError("--mesh=" + options.mesh.str() + ": the program is for " +
                      Twine(dataRanks) + " data ranks");
  options.sequence = sequence;
  options.microBatch = microBatch;
  options.globalBatch = globalBatch;
  return llvm::Error::success();
}

/// A program that is part way through the pipeline goes on with the options
/// that brought it there.
static llvm::Error checkSameOptions(ModuleOp module, StringRef stage,
                                    const CompileOptions &options) {
  auto provenance = module->getAttrOfType<DictionaryAttr>(kProvenanceAttr);
  auto before =
      provenance ? provenance.getAs<ArrayAttr>("options") : ArrayAttr();
  if (!before)
    return usageError("the program went through " + stage + " but has no '" +
                      kProvenanceAttr + "' with the options used");
  SmallVector<std::string> now = options.canonical();
  for (size_t i = 0, e = std::max(now.size(), before.size()); i < e; ++i) {
    StringRef old;
    if (i < before.size())
      if (auto text = dyn_cast<StringAttr>(before[i]))
        old = text;
    StringRef given = i < now.size() ? StringRef(now[i]) : StringRef();
    if (old != given)
      return usageError("the program went through " + stage + " with " +
                        (old.empty() ? "no " + given : old) +
                        "; going on needs the same options" +
                        (given.empty() ? Twine() : ", not " + given));
  }
  return llvm::Error::success();
}

/// Says where the plan comes from.
static void setProvenance(ModuleOp module, const CompileJob &job) {
  Builder builder(module.getContext());
  StringAttr source = builder.getStringAttr(
      llvm::sys::path::filename(job.input->getBufferIdentifier()));
  if (auto before = module->getAttrOfType<DictionaryAttr>(kProvenanceAttr))
    if (auto name = before.getAs<StringAttr>("source"))
      source = name;
  StringAttr family = builder.getStringAttr("");
  if (auto model = module->getAttrOfType<DictionaryAttr>(tfm::kModelAttr))
    if (auto name = model.getAs<StringAttr>("family"))
      family = name;
  SmallVector<std::string> options = job.options.canonical();
  SmallVector<StringRef> optionRefs(options.begin(), options.end());
  module->setAttr(
      kProvenanceAttr,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("source", source),
           builder.getNamedAttr("family", family),
           builder.getNamedAttr("options", builder.getStrArrayAttr(optionRefs)),
           builder.getNamedAttr("target",
                                builder.getStringAttr(job.options.target))}));
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static OwningOpRef<ModuleOp> load(CompileJob &job, MLIRContext &context,
                                  llvm::SourceMgr &sources) {
  OwningOpRef<ModuleOp> module =
      isConfig(*job.input) ? importConfig(job.input->getBuffer(),
                                          job.input->getBufferIdentifier(),
                                          job.options.importOptions(), &context)
                           : parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return nullptr;
  if (llvm::Error error = adoptProgram(*module, job)) {
    (void)reportError(std::move(error));
    return nullptr;
  }
  return module;
}

/// What only a plain run of passes does is refused, not left out.
static LogicalResult refuseOptModes(const CompileJob &job) {
  const char *mode = nullptr;
  if (!job.config.inputSplitMarker().empty())
    mode = "--split-input-file";
  else if (job.config.shouldVerifyDiagnostics())
    mode = "--verify-diagnostics";
  else if (job.config.shouldRunReproducer())
    mode = "--run-reproducer";
  if (!mode)
    return success();
  return reportError(usageError(
      Twine(mode) + " goes with MLIR and named passes, not with a config, "
                    "--stop-after or --emit"));
}

/// Printed and parsed again, a program must print the same.
static LogicalResult verifyRoundTrip(ModuleOp module) {
  auto print = [](ModuleOp op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    op.print(stream, OpPrintingFlags().enableDebugInfo());
    return text;
  };
  std::string once = print(module);
  OwningOpRef<ModuleOp> parsed =
      parseSourceString<ModuleOp>(once, module.getContext());
  if (!parsed || print(*parsed) != once)
    return reportError(usageError("the program changes when it is printed and "
                                  "parsed"));
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A target that cannot be read is an error before any work, and a budget that
/// its memory does not hold is worth a warning.
static LogicalResult checkTarget(CompileJob &job) {
  const CompileOptions &options = job.options;
  StatusOr<machine::Profile> profile = machine::Profile::load(options.target);
  if (!profile.isOk())
    return reportError(usageError(profile.message()));
  job.targetBytes = profile->memoryBytes;
  if (options.memoryBudget > profile->memoryBytes)
    llvm::WithColor::warning(llvm::errs(), "gtp-opt")
        << "--memory-budget=" << options.memoryBudget
        << " is more than the memory of target '" << options.target << "', "
        << profile->memoryBytes << " bytes\n";
  return success();
}

//===----------------------------------------------------------------------===//
// The pipeline and its outputs
//===----------------------------------------------------------------------===//

/// The passes that the output needs.
static LogicalResult addPasses(PassManager &passes, ModuleOp module,
                               const CompileJob &job) {
  if (job.explicitPasses)
    return job.config.setupPassPipeline(passes);
  const CompileOptions &options = job.options;
  if (options.emit == CompileOptions::Emit::Mlir && options.stopAfter.empty())
    return success();
  std::string stage;
  if (auto attr = module->getAttrOfType<StringAttr>(kStageAttr))
    stage = attr.str();
  if (!stage.empty())
    if (llvm::Error error = checkSameOptions(module, stage, options))
      return reportError(std::move(error));
  if (llvm::Error error =
          buildPipeline(passes, options, stage, options.stopAfter))
    return reportError(std::move(error));
  module->removeAttr(kStageAttr);
  setProvenance(module, job);
  return success();
}

static llvm::Error printModule(ModuleOp module, const CompileJob &job,
                               llvm::raw_ostream &stream) {
  if (job.config.shouldEmitBytecode()) {
    BytecodeWriterConfig config;
    if (std::optional<int64_t> version = job.config.bytecodeVersionToEmit())
      config.setDesiredBytecodeVersion(*version);
    if (failed(writeBytecodeToFile(module, stream, config)))
      return reportedError();
    return llvm::Error::success();
  }
  // What goes on behind a stop needs the names of operations, which are in
  // their locations. On a terminal they are in the way.
  OpPrintingFlags flags;
  if (!job.options.stopAfter.empty() && !stream.is_displayed())
    flags.enableDebugInfo();
  module.print(stream, flags);
  stream << "\n";
  return llvm::Error::success();
}

static llvm::Error printPlan(ModuleOp module, const CompileOptions &options,
                             llvm::raw_ostream &stream) {
  using Emit = CompileOptions::Emit;
  planir::ProgramOp program = findProgram(module);
  plan::pb::Plan plan;
  if (!program || failed(emitPlan(program, plan)))
    return reportedError();
  switch (options.emit) {
  case Emit::Mlir:
    llvm_unreachable("MLIR is no plan");
  case Emit::Plan:
    if (stream.is_displayed())
      return usageError(
          "a plan is binary, and the output is a terminal; give -o "
          "FILE, or --emit=plan-text");
    stream << plan::serializePlan(plan);
    break;
  case Emit::PlanText:
    stream << plan::planToText(plan);
    break;
  case Emit::Cpp:
    if (failed(emitCpp(program, stream)))
      return reportedError();
    break;
  case Emit::Trace:
  case Emit::Gantt: {
    StatusOr<machine::Profile> profile = machine::Profile::load(options.target);
    if (!profile.isOk())
      return usageError(profile.message());
    PlanTimeline timeline = playPlan(plan, *profile);
    (options.emit == Emit::Trace ? printTrace : printGantt)(plan, timeline,
                                                            stream);
    break;
  }
  }
  return llvm::Error::success();
}

/// A device or a pipe: writing to it twice loses nothing.
static bool isDevice(StringRef path) {
  bool other = false;
  return !llvm::sys::fs::is_other(path, other) && other;
}

/// An output must not overwrite what was read, nor the other output. MLIR may
/// take the place of the MLIR that it was made from, as of any opt tool.
static LogicalResult checkOutputs(const CompileJob &job) {
  StringRef input = job.flags.input, output = job.flags.output;
  StringRef stats = job.options.statsFile;
  struct Pair {
    StringRef option, path, other, otherPath;
  };
  SmallVector<Pair> pairs;
  if (isConfig(*job.input))
    pairs.push_back({"-o ", output, "the input", input});
  if (!stats.empty())
    pairs.append({{"--stats=", stats, "the input", input},
                  {"--stats=", stats, "-o", output}});
  if (StringRef overrides = job.options.overrides.file; !overrides.empty())
    pairs.append({{"-o ", output, "--overrides", overrides},
                  {"--stats=", stats, "--overrides", overrides}});
  for (const Pair &pair : pairs)
    // A dash is standard input or output.
    if (pair.path != "-" && pair.otherPath != "-" &&
        isSameFile(pair.path.str(), pair.otherPath.str()) &&
        !isDevice(pair.path))
      return reportError(usageError(pair.option + pair.path + ": is also " +
                                    pair.other +
                                    "; an output needs a file of its own"));
  return success();
}

LogicalResult gtp::compile(CompileJob &job) {
  if (failed(refuseOptModes(job)) || failed(checkOutputs(job)) ||
      failed(checkTarget(job)))
    return failure();
  MLIRContext context(job.registry);
  // An error names its place; the op may be a whole model, printed.
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(job.input->getMemBufferRef(),
                                       /*RequiresNullTerminator=*/false),
      llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  TimingScope timing = timingManager.getRootScope();

  TimingScope loading = timing.nest("Load");
  OwningOpRef<ModuleOp> module = load(job, context, sources);
  loading.stop();
  if (!module ||
      (job.config.shouldVerifyRoundtrip() && failed(verifyRoundTrip(*module))))
    return failure();

  PassManager passes(&context, ModuleOp::getOperationName());
  passes.enableVerifier(job.config.shouldVerifyPasses());
  if (failed(applyPassManagerCLOptions(passes)))
    return failure();
  passes.enableTiming(timing);
  if (failed(addPasses(passes, *module, job)))
    return failure();
  if (job.config.shouldDumpPassPipeline()) {
    passes.dump();
    llvm::errs() << "\n";
  }
  if (failed(passes.run(*module))) {
    adviseOnBudget(job, *module);
    return failure();
  }

  const CompileOptions &options = job.options;
  if (!options.stopAfter.empty())
    (*module)->setAttr(kStageAttr,
                       StringAttr::get(&context, options.stopAfter));
  TimingScope writing = timing.nest("Write");
  auto print = [&](llvm::raw_ostream &stream) -> llvm::Error {
    if (options.emit == CompileOptions::Emit::Mlir)
      return printModule(*module, job, stream);
    return printPlan(*module, options, stream);
  };
  auto printStats = [&](llvm::raw_ostream &stream) -> llvm::Error {
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - job.started;
    writeStats(*module, options, seconds.count(), stream);
    return llvm::Error::success();
  };
  // Both outputs appear, or none.
  auto next = [&]() -> llvm::Error {
    if (options.statsFile.empty())
      return llvm::Error::success();
    return writeOutput(options.statsFile, printStats);
  };
  if (llvm::Error error = writeOutput(job.flags.output, print, next))
    return reportError(std::move(error));
  reportFit(job, *module);
  return success();
}
