//===- Pipeline.cpp - The passes of a compilation, in order ---------------===//
//
// The one place where options of the command line become options of passes.
//
//===----------------------------------------------------------------------===//

#include "gtp/Tools/Pipeline.h"

#include "gtp/Conversion/Passes.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace gtp;
using llvm::StringRef;

using PassPtr = std::unique_ptr<mlir::Pass>;

static PassPtr overrideParameters(const CompileOptions &options) {
  TfmOverridePassOptions result;
  result.freeze = options.overrides.freeze;
  result.replicate = options.overrides.replicate;
  result.overrides = options.overrides.file;
  return createTfmOverridePass(result);
}

static PassPtr differentiate(const CompileOptions &options) {
  TfmDifferentiatePassOptions result;
  result.optimizer =
      options.optimizer == CompileOptions::Optimizer::AdamW ? "adamw" : "sgd";
  result.clipNorm = options.clipNorm;
  result.gradDtype = name(options.gradDtype).str();
  result.stateDtype = options.stateDtype;
  result.attentionBackward = options.fastAttention ? "fast" : "deterministic";
  return createTfmDifferentiatePass(result);
}

static PassPtr place(const CompileOptions &options) {
  GtpPlacePassOptions result;
  result.mesh = options.mesh.str();
  return createGtpPlacePass(result);
}

static PassPtr partition(const CompileOptions &options) {
  GtpPartitionPassOptions result;
  result.reduceDtype = name(options.reduceDtype).str();
  return createGtpPartitionPass(result);
}

static PassPtr fuse(const CompileOptions &options) {
  GtpFusePassOptions result;
  result.off = !options.fuse;
  return createGtpFusePass(result);
}

static PassPtr planStep(const CompileOptions &options) {
  GtpPlanStepPassOptions result;
  result.target = options.target;
  result.memoryBudget = options.memoryBudget;
  if (!options.prefetch || options.sync) // what --sync does to the schedule
    result.prefetch = "off";
  else if (options.prefetchDistance)
    result.prefetch = std::to_string(*options.prefetchDistance);
  return createGtpPlanStepPass(result);
}

static PassPtr prefetch(const CompileOptions &options) {
  GtpPrefetchPassOptions result;
  result.sync = options.sync;
  return createGtpPrefetchPass(result);
}

static PassPtr convert(const CompileOptions &options) {
  ConvertGtpToPlanPassOptions result;
  result.target = options.target;
  return createConvertGtpToPlanPass(result);
}

/// A pass without options.
template <std::unique_ptr<mlir::Pass> (*create)()>
static PassPtr plain(const CompileOptions &) {
  return create();
}

namespace {
struct Stage {
  /// The pass's argument.
  llvm::StringLiteral name;
  PassPtr (*create)(const CompileOptions &options);
  /// It runs on functions, not on the module.
  bool onFunctions = false;
};
} // namespace

static const Stage kStages[] = {
    // Before packing, which joins only what is decided alike.
    {"tfm-override", overrideParameters},
    // Before differentiation, so that the gradient of a packed weight is one
    // product too.
    {"tfm-pack", plain<createTfmPackPass>},
    // On the logical program: what is derived here is right on any mesh.
    {"tfm-differentiate", differentiate},
    // From here on types say where values are; each of the three ends
    // with gtp-verify-placements, the contract that the next relies on.
    {"gtp-place", place},
    {"gtp-partition", partition, true},
    // Each op is a kernel of one rank now, and which of them are one decides
    // what the schedule counts with.
    {"gtp-fuse", fuse, true},
    // Decides on the synchronous program, whose order is a legal one, and
    // leaves attributes; only the next pass changes the program.
    {"gtp-plan-step", planStep},
    {"gtp-prefetch", prefetch, true},
    // Tokens say all of the order until events are inserted. Offsets come
    // before events: two buffers may share bytes only if tokens order them, so
    // memory adds no order, and the transitive reduction sees the whole of it.
    {"convert-gtp-to-plan", convert},
    {"plan-assign-memory", plain<createPlanAssignMemoryPass>},
    {"plan-insert-events", plain<createPlanInsertEventsPass>},
    // Last: it reads what would be emitted and nothing else.
    {"plan-verify", plain<createPlanVerifyPass>},
};

static llvm::Error unknownStage(StringRef name) {
  return usageError(
      "'" + name + "' is no pass of the pipeline; it has " +
      llvm::join(llvm::map_range(kStages,
                                 [](const Stage &stage) { return stage.name; }),
                 ", "));
}

static const Stage *findStage(StringRef name) {
  const Stage *stage = llvm::find_if(
      kStages, [&](const Stage &candidate) { return candidate.name == name; });
  return stage == std::end(kStages) ? nullptr : stage;
}

llvm::Error gtp::buildPipeline(mlir::OpPassManager &passes,
                               const CompileOptions &options, StringRef after,
                               StringRef last) {
  const Stage *first = std::begin(kStages), *end = std::end(kStages);
  if (!after.empty()) {
    first = findStage(after);
    if (!first)
      return unknownStage(after);
    ++first;
  }
  if (!last.empty()) {
    end = findStage(last);
    if (!end)
      return unknownStage(last);
    if (++end <= first)
      return usageError("--stop-after=" + last + ": the program went through " +
                        after + " already");
  }
  for (const Stage *stage = first; stage != end; ++stage) {
    if (stage->onFunctions)
      passes.addNestedPass<mlir::func::FuncOp>(stage->create(options));
    else
      passes.addPass(stage->create(options));
  }
  return llvm::Error::success();
}
