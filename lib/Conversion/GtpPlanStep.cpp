//===- GtpPlanStep.cpp - Decides when weights come and gradients go -------===//
//
// Alternates a schedule under a cap of bytes with the offsets that it leads to:
// when these need more than the budget, the cap of the next round is lower by
// as much.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Analysis/FitReport.h"
#include "gtp/Analysis/StepSchedule.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanStats.h"
#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/MathExtras.h"

namespace gtp {
#define GEN_PASS_DEF_GTPPLANSTEPPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace mlir;

namespace {

/// A fixed number, so that the result does not depend on the machine.
constexpr int kRounds = 3;

struct GtpPlanStepPass
    : public gtp::impl::GtpPlanStepPassBase<GtpPlanStepPass> {
  using GtpPlanStepPassBase::GtpPlanStepPassBase;

  void runOnOperation() override {
    if (failed(planStep()))
      signalPassFailure();
  }

private:
  LogicalResult planStep();
  FailureOr<planning::ScheduleOptions> scheduleOptions();
  /// Solves under the budget and annotates the functions with what was best.
  /// Returns the schedule of the first, the training step.
  FailureOr<planning::Schedule> solve(MutableArrayRef<StepSchedule> steps,
                                      const planning::ScheduleOptions &options);
  /// Solves and annotates each under its cap; none when a cap cannot be met.
  FailureOr<std::optional<planning::Schedule>>
  solveOnce(MutableArrayRef<StepSchedule> steps,
            const planning::ScheduleOptions &options);
  /// The arena that the annotated module leads to. Keeps the account of the
  /// smallest that is above `budget`.
  FailureOr<int64_t> arenaBytes(int64_t budget);
  void annotate(const StepSchedule &step, const planning::Schedule &schedule);
  void report(const StepSchedule &step, const planning::Schedule &schedule);
  LogicalResult overBudget(int64_t tightest);
  /// Leaves what a rank needs, for who looks for a change that fits.
  void reportBytes(int64_t arena);

  int64_t overhead = 0, ctaReserve = 0;
  std::optional<FitReport> least;
};

} // namespace

FailureOr<planning::ScheduleOptions> GtpPlanStepPass::scheduleOptions() {
  planning::ScheduleOptions options;
  using Prefetch = planning::ScheduleOptions::Prefetch;
  if (prefetch == "auto")
    return options;
  if (prefetch == "off") {
    options.prefetch = Prefetch::Off;
    return options;
  }
  if (StringRef(prefetch).getAsInteger(10, options.distance) ||
      options.distance < 1)
    return emitError(getOperation().getLoc())
           << "gtp-plan-step: prefetch is \"" << prefetch
           << "\", expected auto, off or a distance of 1 or more";
  options.prefetch = Prefetch::Distance;
  return options;
}

void GtpPlanStepPass::annotate(const StepSchedule &step,
                               const planning::Schedule &schedule) {
  Builder builder(&getContext());
  auto position = [&](uint32_t compute) {
    return step.positions.lookup(step.compute[compute]);
  };
  for (auto [op, trigger, gather] :
       llvm::zip(step.gathers, schedule.triggers, step.problem.gathers)) {
    // A gather that is pinned to its use need not be asynchronous for that.
    bool ahead = gather.pinned && *gather.pinned < int64_t(gather.firstUse) - 1;
    if (ahead || gather.automatic)
      op->setDiscardableAttr(dist::GtpDialect::kPinnedAttr,
                             builder.getUnitAttr());
    int64_t at = trigger < 0 ? -1 : position(trigger);
    at = std::min(at, step.positions.lookup(op) - 1);
    op->setDiscardableAttr(dist::GtpDialect::kTriggerAttr,
                           builder.getI64IntegerAttr(at));
  }
  for (auto [op, release, reduction] :
       llvm::zip(step.reductions, schedule.releases, step.problem.reductions)) {
    op->removeDiscardableAttr(dist::GtpDialect::kReleaseBeforeAttr);
    if (reduction.bytes == 0)
      continue;
    // The end is a decision too: without one the compute stream would wait
    // where the reduced value is read first, by another reduction perhaps.
    int64_t before =
        release < int64_t(step.compute.size())
            ? position(release)
            : step.positions.lookup(op->getBlock()->getTerminator());
    op->setDiscardableAttr(dist::GtpDialect::kReleaseBeforeAttr,
                           builder.getI64IntegerAttr(before));
  }
}

FailureOr<int64_t> GtpPlanStepPass::arenaBytes(int64_t budget) {
  // A pass may only run passes on what it holds, so the copy is put inside.
  ModuleOp module = getOperation();
  ModuleOp copy = module.clone();
  module.push_back(copy);
  llvm::scope_exit discard([&] { copy.erase(); });
  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addNestedPass<func::FuncOp>(createGtpPrefetchPass());
  ConvertGtpToPlanPassOptions options;
  options.target = target;
  pipeline.addPass(createConvertGtpToPlanPass(options));
  if (failed(runPipeline(pipeline, copy)))
    return failure();
  planir::ProgramOp program = findProgram(copy);
  SmallVector<planir::BufferOp> peak;
  if (!program || failed(assignMemory(program, &peak)))
    return failure();
  auto arena = int64_t(program.getArena());
  if (arena > budget && (!least || arena < least->arenaBytes()))
    least = fitReport(program, overhead, peak);
  return arena;
}

void GtpPlanStepPass::reportBytes(int64_t arena) {
  Builder builder(&getContext());
  NamedAttrList fields;
  if (auto known = getOperation()->getAttrOfType<DictionaryAttr>(kPlanStepAttr))
    fields = known;
  fields.set(kRankBytes, builder.getI64IntegerAttr(arena + overhead));
  getOperation()->setAttr(kPlanStepAttr, fields.getDictionary(&getContext()));
}

LogicalResult GtpPlanStepPass::overBudget(int64_t tightest) {
  int64_t arena = least ? least->arenaBytes() : tightest;
  reportBytes(arena);
  InFlightDiagnostic diag =
      emitError(getOperation().getLoc())
      << "memory budget of " << uint64_t(memoryBudget) << " bytes ("
      << formatBytes(int64_t(memoryBudget))
      << ") cannot be met: the step needs " << arena + overhead << " bytes ("
      << formatBytes(arena + overhead) << "), an arena of " << arena << " and "
      << overhead << " of the target's overhead";
  if (!least)
    return diag << ", estimated, with the prefetch distance asked for";
  diag << "; the largest part is " << least->largestPart();
  std::string table;
  llvm::raw_string_ostream stream(table);
  least->print(stream, int64_t(memoryBudget), "of a budget of");
  diag.attachNote() << StringRef(table).rtrim();
  return diag;
}

FailureOr<std::optional<planning::Schedule>>
GtpPlanStepPass::solveOnce(MutableArrayRef<StepSchedule> steps,
                           const planning::ScheduleOptions &options) {
  std::optional<planning::Schedule> first;
  for (StepSchedule &step : steps) {
    planning::ScheduleProblem problem = step.problem;
    // Programs share one arena: no other one should make it larger than the
    // training step does, unless what is decided by hand needs that.
    if (first)
      problem.capBytes = std::min(problem.capBytes, first->peakBytes);
    StatusOr<planning::Schedule> schedule = problem.solve(options);
    if (!schedule.isOk() && problem.capBytes < step.problem.capBytes) {
      problem.capBytes = step.problem.capBytes;
      schedule = problem.solve(options);
    }
    if (!schedule.isOk()) // a forced distance needs more
      return std::optional<planning::Schedule>();
    if (Status status = problem.verify(*schedule); !status.isOk())
      return emitError(getOperation().getLoc())
             << "gtp-plan-step: wrong schedule: " << status.message();
    annotate(step, *schedule);
    if (!first)
      first = std::move(*schedule);
  }
  return first;
}

FailureOr<planning::Schedule>
GtpPlanStepPass::solve(MutableArrayRef<StepSchedule> steps,
                       const planning::ScheduleOptions &options) {
  // Live bytes are an estimate, so a budget below what they can be is measured
  // before it is refused.
  int64_t budget = int64_t(memoryBudget) - overhead, tightest = 0;
  least.reset();
  for (StepSchedule &step : steps) {
    if (Status status = step.problem.check(); !status.isOk())
      return emitError(getOperation().getLoc())
             << "gtp-plan-step: no scheduling problem: " << status.message();
    int64_t own = step.problem.minimalMemory().bytes;
    tightest = std::max(tightest, own);
    if (memoryBudget != 0)
      step.problem.capBytes = std::max(budget, own);
  }
  for (int round = 0; round < kRounds; ++round) {
    auto schedule = solveOnce(steps, options);
    if (failed(schedule))
      return failure();
    if (!*schedule)
      break;
    if (memoryBudget == 0)
      return **schedule;
    FailureOr<int64_t> arena = arenaBytes(budget);
    if (failed(arena))
      return failure();
    if (*arena <= budget) {
      reportBytes(*arena);
      return **schedule;
    }
    bool changes = false;
    for (StepSchedule &step : steps) {
      // The last round is as tight as any schedule can be.
      planning::ScheduleProblem &problem = step.problem;
      int64_t own = problem.minimalMemory().bytes;
      int64_t lower = problem.capBytes - (*arena - budget);
      lower = round + 2 < kRounds ? std::max(lower, own) : own;
      changes |= lower != problem.capBytes;
      problem.capBytes = lower;
    }
    if (!changes)
      break;
  }
  return overBudget(tightest);
}

/// Nanoseconds of all runs of the region; what does not fit is as much as does.
static int64_t allRuns(const StepSchedule &step, int64_t ns) {
  int64_t product = 0;
  constexpr int64_t kMost = INT64_MAX / 8; // sums of a few fit too
  return llvm::MulOverflow(step.repeat, ns, product) ? kMost
                                                     : std::min(product, kMost);
}

/// Leaves predictions for the plan's claims and for --stats.
void GtpPlanStepPass::report(const StepSchedule &step,
                             const planning::Schedule &schedule) {
  Builder builder(&getContext());
  int64_t compute = step.outsideComputeNs + allRuns(step, schedule.computeNs);
  int64_t stall = step.outsideStallNs + allRuns(step, schedule.stallNs);
  int64_t contention = allRuns(step, schedule.contentionNs);
  int64_t total = compute + stall + contention;
  NamedAttrList claims, stats;
  claims.set("step_ns", builder.getI64IntegerAttr(total));
  claims.set("budget_bytes", builder.getI64IntegerAttr(memoryBudget));
  claims.set("overhead_bytes", builder.getI64IntegerAttr(overhead));
  if (ctaReserve)
    claims.set("collective_ctas", builder.getI64IntegerAttr(ctaReserve));
  auto micro = [&](StringRef name, int64_t ns) {
    stats.set(name, builder.getF64FloatAttr(double(ns) / 1000));
  };
  micro("compute_us", compute);
  micro("stall_us", stall);
  micro("contention_us", contention);
  micro("step_us", total);
  micro("step_lower_bound_us",
        step.outsideComputeNs + allRuns(step, schedule.lowerBoundNs));
  NamedAttrList parts;
  if (auto known = getOperation()->getAttrOfType<DictionaryAttr>(kPlanStepAttr))
    parts = known;
  parts.set("claims", claims.getDictionary(&getContext()));
  parts.set("stats", stats.getDictionary(&getContext()));
  getOperation()->setAttr(kPlanStepAttr, parts.getDictionary(&getContext()));
}

LogicalResult GtpPlanStepPass::planStep() {
  ModuleOp module = getOperation();
  if (memoryBudget > uint64_t(INT64_MAX))
    return emitError(module.getLoc())
           << "gtp-plan-step: memory-budget is " << uint64_t(memoryBudget)
           << ", expected less than 2^63 bytes";
  SmallVector<func::FuncOp> functions = stepFunctions(module);
  auto meshOf = [](func::FuncOp function) {
    return function->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr);
  };
  if (functions.empty() || !llvm::all_of(functions, [&](func::FuncOp step) {
        return meshOf(step) &&
               step->hasAttr(dist::GtpDialect::kPartitionedAttr);
      }))
    return emitError(module.getLoc())
           << "gtp-plan-step: there is no partitioned @"
           << tfm::kTrainStepFunction << "; run gtp-partition first";
  FailureOr<planning::ScheduleOptions> options = scheduleOptions();
  if (failed(options))
    return failure();
  StatusOr<machine::Profile> profile = machine::Profile::load(target);
  if (!profile.isOk())
    return emitError(module.getLoc()) << profile.message();
  CostModel costs(*profile, meshOf(functions.front()));
  SmallVector<StepSchedule, 2> steps;
  llvm::StringSet<> communicators;
  for (func::FuncOp function : functions) {
    FailureOr<StepSchedule> problem = stepSchedule(function, costs);
    if (failed(problem))
      return failure();
    steps.push_back(std::move(*problem));
    for (const auto &name : steps.back().communicators)
      communicators.insert(name.getKey());
  }
  overhead = profile->overheadBytes(communicators.size());
  ctaReserve = profile->ctaReserve;
  FailureOr<planning::Schedule> schedule = solve(steps, *options);
  if (failed(schedule))
    return failure();
  report(steps.front(), *schedule);
  return success();
}
