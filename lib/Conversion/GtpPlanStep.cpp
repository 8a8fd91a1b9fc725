//===- GtpPlanStep.cpp - Decides when weights come and gradients go -------===//
//
// Alternates a schedule under a cap of bytes with the offsets that it leads to:
// when these need more than the budget, the cap of the next round is lower by
// as much.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Analysis/StepSchedule.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanStats.h"
#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

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
  /// Solves under the budget and annotates the function with what was best.
  FailureOr<planning::Schedule> solve(StepSchedule &step,
                                      const planning::ScheduleOptions &options);
  /// Bytes of the arena that the annotated module leads to.
  FailureOr<int64_t> arenaBytes();
  void annotate(const StepSchedule &step, const planning::Schedule &schedule);
  void report(const StepSchedule &step, const planning::Schedule &schedule);
  LogicalResult overBudget(const Twine &reason);

  int64_t overhead = 0;
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
    return getOperation().emitError()
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
  for (auto [op, trigger] : llvm::zip(step.gathers, schedule.triggers)) {
    int64_t at = trigger < 0 ? -1 : position(trigger);
    at = std::min(at, step.positions.lookup(op) - 1);
    op->setDiscardableAttr(dist::GtpDialect::kTriggerAttr,
                           builder.getI64IntegerAttr(at));
  }
  for (auto [op, release, reduction] :
       llvm::zip(step.reductions, schedule.releases, step.problem.reductions)) {
    op->removeDiscardableAttr(dist::GtpDialect::kReleaseBeforeAttr);
    if (reduction.bytes == 0 || release >= int64_t(step.compute.size()))
      continue;
    op->setDiscardableAttr(dist::GtpDialect::kReleaseBeforeAttr,
                           builder.getI64IntegerAttr(position(release)));
  }
}

FailureOr<int64_t> GtpPlanStepPass::arenaBytes() {
  OwningOpRef<ModuleOp> copy(getOperation().clone());
  OpPassManager pipeline(ModuleOp::getOperationName());
  pipeline.addNestedPass<func::FuncOp>(createGtpPrefetchPass());
  ConvertGtpToPlanPassOptions options;
  options.target = target;
  pipeline.addPass(createConvertGtpToPlanPass(options));
  pipeline.addPass(createPlanAssignMemoryPass());
  if (failed(runPipeline(pipeline, *copy)))
    return failure();
  planir::ProgramOp program = findProgram(*copy);
  if (!program)
    return failure();
  return int64_t(program.getArena());
}

LogicalResult GtpPlanStepPass::overBudget(const Twine &reason) {
  return getOperation().emitError() << "memory budget of " << memoryBudget
                                    << " bytes cannot be met: " << reason;
}

FailureOr<planning::Schedule>
GtpPlanStepPass::solve(StepSchedule &step,
                       const planning::ScheduleOptions &options) {
  planning::ScheduleProblem &problem = step.problem;
  if (Status status = problem.check(); !status.isOk())
    return getOperation().emitError()
           << "gtp-plan-step: no scheduling problem: " << status.message();
  int64_t budget = int64_t(memoryBudget) - overhead;
  if (memoryBudget != 0 && budget <= 0)
    return overBudget("the target's overhead alone is " + Twine(overhead) +
                      " bytes");
  if (memoryBudget != 0)
    problem.capBytes = budget;

  int64_t least = INT64_MAX;
  for (int round = 0; round < kRounds; ++round) {
    StatusOr<planning::Schedule> schedule = problem.solve(options);
    if (!schedule.isOk()) {
      if (least == INT64_MAX)
        return overBudget(schedule.message() + "; the target's overhead is " +
                          std::to_string(overhead) + " bytes of it");
      break;
    }
    if (Status status = problem.verify(*schedule); !status.isOk())
      return getOperation().emitError()
             << "gtp-plan-step: wrong schedule: " << status.message();
    annotate(step, *schedule);
    if (memoryBudget == 0)
      return *schedule;
    FailureOr<int64_t> arena = arenaBytes();
    if (failed(arena))
      return failure();
    if (*arena <= budget)
      return *schedule;
    least = std::min(least, *arena);
    problem.capBytes -= *arena - budget;
    if (problem.capBytes <= 0)
      break;
  }
  planning::MinimalMemory minimal = problem.minimalMemory();
  return overBudget(
      "the step needs " + Twine(least + overhead) + " bytes: an arena of " +
      Twine(least) + " and " + Twine(overhead) +
      " of the target's overhead; at the narrowest point " +
      Twine(minimal.baseBytes) + " are state and activations, " +
      Twine(minimal.gatheredBytes) + " gathered weights, " +
      Twine(minimal.gradientBytes) + " full gradients; a budget of " +
      Twine(least + overhead) +
      " bytes, a smaller micro-batch or a higher gtp degree would "
      "do");
}

/// Leaves predictions for the plan's claims and for --stats.
void GtpPlanStepPass::report(const StepSchedule &step,
                             const planning::Schedule &schedule) {
  Builder builder(&getContext());
  NamedAttrList stats;
  auto micro = [&](StringRef name, int64_t ns) {
    stats.set(name, builder.getF64FloatAttr(double(ns) / 1000));
  };
  int64_t compute = step.outsideComputeNs + step.repeat * schedule.computeNs;
  int64_t stall = step.outsideStallNs + step.repeat * schedule.stallNs;
  int64_t contention = step.repeat * schedule.contentionNs;
  micro("compute_us", compute);
  micro("stall_us", stall);
  micro("contention_us", contention);
  micro("step_us", compute + stall + contention);
  micro("step_lower_bound_us",
        step.outsideComputeNs + step.repeat * schedule.lowerBoundNs);
  stats.set("step_ns", builder.getI64IntegerAttr(compute + stall + contention));
  stats.set("budget_bytes", builder.getI64IntegerAttr(memoryBudget));
  stats.set("overhead_bytes", builder.getI64IntegerAttr(overhead));
  getOperation()->setAttr(kPlanStepAttr, stats.getDictionary(&getContext()));
}

LogicalResult GtpPlanStepPass::planStep() {
  ModuleOp module = getOperation();
  auto step = module.lookupSymbol<func::FuncOp>(tfm::kTrainStepFunction);
  auto mesh =
      step ? step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr)
           : dist::MeshAttr();
  if (!mesh || !step->hasAttr(dist::GtpDialect::kPartitionedAttr))
    return module.emitError()
           << "gtp-plan-step: there is no partitioned @"
           << tfm::kTrainStepFunction << "; run gtp-partition first";
  FailureOr<planning::ScheduleOptions> options = scheduleOptions();
  if (failed(options))
    return failure();
  StatusOr<machine::Profile> profile = machine::Profile::load(target);
  if (!profile.isOk())
    return module.emitError() << profile.message();
  CostModel costs(*profile, mesh);
  FailureOr<StepSchedule> problem = stepSchedule(step, costs);
  if (failed(problem))
    return failure();
  overhead = profile->overheadBytes(problem->communicators);
  FailureOr<planning::Schedule> schedule = solve(*problem, *options);
  if (failed(schedule))
    return failure();
  report(*problem, *schedule);
  return success();
}
