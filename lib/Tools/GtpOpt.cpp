//===- GtpOpt.cpp - The compiler's command line ---------------------------===//

#include "gtp/Tools/GtpOpt.h"

#include "Compile.h"
#include "CompileFlags.h"
#include "OutputFile.h"

#include "gtp/InitAll.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

#include <array>

using namespace gtp;
using llvm::LogicalResult;
using llvm::StringRef;

/// LLVM's libraries register some two thousand options of code generation,
/// among them --stats and --stop-after. None of them does anything here.
static void removeLlvmOptions() {
  llvm::SmallVector<llvm::cl::Option *> unwanted;
  for (auto [name, option] : llvm::cl::getRegisteredOptions())
    if (!name.starts_with("help") && name != "version" && name != "color")
      unwanted.push_back(option);
  for (llvm::cl::Option *option : unwanted)
    option->removeArgument();
}

/// Parses the command line; LLVM's own errors come out as ours.
static LogicalResult parse(int argc, char **argv, StringRef header) {
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (llvm::cl::ParseCommandLineOptions(argc, argv, header, &errors))
    return llvm::success();
  StringRef message = StringRef(text).trim();
  // "<program>: " starts each line.
  std::string program = llvm::sys::path::filename(argv[0]).str() + ": ";
  message.consume_front(program);
  return reportError(usageError(message));
}

/// Whether the command line names passes to run: as --pass-pipeline, or one by
/// one. All names of passes are values of one option, so any of them finds it.
static bool namesPasses() {
  auto &registered = llvm::cl::getRegisteredOptions();
  return llvm::any_of(std::array<StringRef, 2>{"pass-pipeline", "canonicalize"},
                      [&](StringRef name) {
                        auto found = registered.find(name);
                        return found != registered.end() &&
                               found->second->getNumOccurrences() > 0;
                      });
}

/// An MLIR opt tool: parses, runs the passes named, prints.
static LogicalResult runOpt(CompileJob &job) {
  llvm::Error error = writeOutput(
      job.flags.output, [&](llvm::raw_ostream &stream) -> llvm::Error {
        if (llvm::failed(mlir::MlirOptMain(stream, std::move(job.input),
                                           job.registry, job.config)))
          return reportedError();
        return llvm::Error::success();
      });
  return error ? reportError(std::move(error)) : llvm::success();
}

static LogicalResult run(const CompileFlags &flags,
                         const mlir::MlirOptMainConfig &config,
                         mlir::DialectRegistry &registry) {
  auto started = std::chrono::steady_clock::now();
  llvm::Expected<CompileOptions> options = flags.read();
  if (!options)
    return reportError(options.takeError());
  if (flags.output.getValue().empty())
    return reportError(usageError("-o: found an empty name, expected a file, "
                                  "or - for standard output"));
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> input =
      mlir::openInputFile(flags.input, &message);
  if (!input)
    return reportError(usageError(message));

  CompileJob job{std::move(input), flags,   *options,     config,
                 registry,         started, namesPasses()};
  bool wholePipeline = options->emit != CompileOptions::Emit::Mlir ||
                       !options->stopAfter.empty();
  if (wholePipeline && job.explicitPasses)
    return reportError(usageError(
        "passes are named and the pipeline is asked for too (--emit, "
        "--stop-after); give one of them"));
  if (isConfig(*job.input) || wholePipeline)
    return compile(job);
  if (const llvm::cl::Option *option = flags.firstGiven())
    return reportError(
        usageError("--" + option->ArgStr +
                   " has no effect on MLIR without --stop-after, --emit=plan, "
                   "plan-text, cpp, trace or gantt"));
  return runOpt(job);
}

int gtp::gtpOptMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  removeLlvmOptions();
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  std::string header = mlir::registerCLIOptions(
      "gtp-opt: plans the training of transformers\n", registry);
  CompileFlags flags;
  if (llvm::failed(parse(argc, argv, header)))
    return EXIT_FAILURE;
  mlir::MlirOptMainConfig config =
      mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(mlir::MlirOptMain(
        argc, argv, flags.input.getValue(), flags.output.getValue(), registry));
  return mlir::asMainReturnCode(run(flags, config, registry));
}
