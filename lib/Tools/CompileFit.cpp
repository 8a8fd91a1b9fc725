//===- CompileFit.cpp - What a compilation says of memory -----------------===//

#include "Compile.h"

#include "FitAdvice.h"

#include "dialects/Plan/PlanDialect.h"
#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Analysis/FitReport.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Import/Import.h"
#include "gtp/Tools/Pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace gtp;

/// Bytes of a rank as gtp-plan-step left them; none without a budget.
static std::optional<int64_t> rankBytes(ModuleOp module) {
  auto step = module->getAttrOfType<DictionaryAttr>(kPlanStepAttr);
  auto bytes = step ? step.getAs<IntegerAttr>(kRankBytes) : IntegerAttr();
  return bytes ? std::optional(bytes.getInt()) : std::nullopt;
}

void gtp::adviseOnBudget(const CompileJob &job, ModuleOp failed) {
  MLIRContext &context = *failed.getContext();
  std::optional<int64_t> needed = rankBytes(failed);
  if (!needed || *needed <= job.options.memoryBudget)
    return; // failed for another reason
  auto note = []() -> llvm::raw_ostream & {
    return llvm::WithColor::note(llvm::errs(), "gtp-opt");
  };
  std::string least = "--memory-budget=" + std::to_string(*needed);
  // Another mesh or batch needs another program than one that is MLIR already.
  auto model = failed->getAttrOfType<DictionaryAttr>(tfm::kModelAttr);
  auto sequence = model ? model.getAs<IntegerAttr>("sequence") : IntegerAttr();
  if (!isConfig(*job.input) || !sequence) {
    note() << "as it is, it needs " << least << "\n";
    return;
  }
  // Whatever the variants report, the error is out.
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  auto measure = [&](const CompileOptions &options) -> std::optional<int64_t> {
    OwningOpRef<ModuleOp> module =
        importConfig(job.input->getBuffer(), job.input->getBufferIdentifier(),
                     options.importOptions(), &context);
    PassManager passes(&context, ModuleOp::getOperationName());
    passes.enableVerifier(false);
    if (!module)
      return std::nullopt;
    if (llvm::Error error =
            buildPipeline(passes, options, "", kStageWithBudget)) {
      llvm::consumeError(std::move(error));
      return std::nullopt;
    }
    (void)passes.run(*module); // fails when it does not fit
    return rankBytes(*module);
  };
  // As given: the job's own were completed by the program that was imported.
  llvm::Expected<CompileOptions> given = job.flags.read();
  if (!given) {
    llvm::consumeError(given.takeError());
    return;
  }
  note() << "compiling variants to find a change that fits\n";
  FitAdvice advice = adviseFit(*given, sequence.getInt(), *needed, measure);
  StringRef how = "the smallest change that fits: ";
  for (const std::string &change : advice.fits) {
    note() << how << change << "\n";
    how = "also fits: ";
  }
  if (advice.fits.empty())
    note() << "found no change that fits\n";
  if (!advice.tooLarge.empty())
    note() << "not enough: " << llvm::join(advice.tooLarge, "; ") << "\n";
  note() << "as it is, it needs " << least << "\n";
}

void gtp::reportFit(const CompileJob &job, ModuleOp module) {
  const CompileOptions &options = job.options;
  auto programs = module.getOps<planir::ProgramOp>();
  if (programs.empty())
    return;
  planir::ProgramOp program = *programs.begin();
  DictionaryAttr claims = program.getClaimsAttr();
  auto overhead =
      claims ? claims.getAs<IntegerAttr>("overhead_bytes") : IntegerAttr();
  int64_t overheadBytes = overhead ? overhead.getInt() : 0;
  int64_t needed = int64_t(program.getArena()) + overheadBytes;
  bool tooLarge = options.memoryBudget == 0 && needed > job.targetBytes;
  bool wanted = options.fitReport == CompileOptions::FitReport::Always ||
                (options.fitReport == CompileOptions::FitReport::Auto &&
                 llvm::errs().is_displayed());
  if (!tooLarge && !wanted)
    return;
  FitReport report = fitReport(program, overheadBytes);
  if (tooLarge)
    llvm::WithColor::warning(llvm::errs(), "gtp-opt")
        << "a rank needs " << needed << " bytes, more than the "
        << job.targetBytes << " of target '" << options.target
        << "'; the largest part is " << report.largestPart()
        << "; --memory-budget=" << job.targetBytes
        << " makes it a limit and says what would fit\n";
  report.print(llvm::errs(),
               options.memoryBudget ? options.memoryBudget : job.targetBytes,
               options.memoryBudget ? "of a budget of" : "of the target's");
}
