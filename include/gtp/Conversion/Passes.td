//===- Passes.td - From gtp to the plan, and passes on plans --------------===//
//
// In pipeline order. A pass's argument, its file and its test are one word.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_CONVERSION_PASSES
#define GTP_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def GtpPlanStepPass : Pass<"gtp-plan-step", "::mlir::ModuleOp"> {
  let summary = "decides when each weight is gathered and each gradient let go";
  let description = [{
    Builds the scheduling problem of the microbatch region (gtp/Planning/Schedule.h), prices
    it by the target's profile and solves it under the budget. The decisions are the
    attributes `gtp.trigger` and `gtp.release_before`, which `gtp-prefetch` applies. With a
    budget, each of at most three rounds converts a copy to a plan with offsets; an arena
    that is too large lowers the cap of the next round by what it is too large. Only the end of
    this pass says that a budget cannot be met; then it names the largest part, and a note
    accounts for all of it. `@eval_step`, when there is one, is scheduled in the same way, and
    within the training step's predicted peak where that can be.

    The module's attribute `gtp.plan_step` keeps what is predicted, for the program that
    `convert-gtp-to-plan` makes: its claims `step_ns`, `budget_bytes` and `overhead_bytes`,
    and as statistics the microseconds of the step, of compute, stall and contention, and
    the lower bound. With a budget, met or not, its entry `rank_bytes` is what a rank needs.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "machine that costs come from: a name or a file">,
    Option<"memoryBudget", "memory-budget", "uint64_t", "0",
           "bytes of a rank, the target's overhead included; 0 is unlimited">,
    Option<"prefetch", "prefetch", "std::string", "\"auto\"",
           "auto; off: gather right before the first use; or a distance in gathers">,
  ];
  let dependentDialects = ["::gtp::planir::PlanDialect", "::gtp::dist::GtpDialect"];
}

def ConvertGtpToPlanPass : Pass<"convert-gtp-to-plan", "::mlir::ModuleOp"> {
  let summary = "kernels, buffers, issue order and order edges";
  let description = [{
    Replaces the partitioned `@train_step` and the parameters by a `plan.program` of
    three regions: what comes before `tfm.microbatches` (once), its region (body), and what
    comes after (update).

    - Every value is a ranked tensor of static shape or a ticket, and every result is tied to an
      argument or named: what else comes is an error.
    - A value is a view of a buffer. `tfm.split` names pieces of its operand; the inputs of a
      `tfm.concat` are written where its result has them when their kernels can; state
      results are their arguments, updated in place; an all-reduce is in place when
      nothing else reads its operand.
    - What a microbatch yields is written, from the second on added, to the buffer of the sum
      by the kernel or reduction that makes it, or by an `add` when that cannot.
    - A value that is scattered or gathered has room for the padding of all shards; a `fill`
      clears it behind a kernel's result.
    - Kernels run on stream 0, gathers on 1, reductions on 2. Tokens carry the order
      between streams: accesses to the same bytes; the compute op before a collective,
      which triggers it; and a released or synchronous collective, which the next compute op
      waits for.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "machine that predicted times and scratch sizes come from: a name or a file">,
  ];
  let dependentDialects = ["::gtp::planir::PlanDialect"];
}

def PlanAssignMemoryPass : Pass<"plan-assign-memory", "::mlir::ModuleOp"> {
  let summary = "offsets in the arena";
  let description = [{
    Gives every buffer an offset such that two share a byte only when all accesses of one
    happen before all of the other in the order that tokens and streams give; adds no
    edge. Persistent buffers come first. Sets the arena's size and the claims
    `persistent_bytes`, `arena_bytes`, `max_live_bytes` and `gathered_peak_bytes`.
  }];
  let dependentDialects = ["::gtp::planir::PlanDialect"];
}

def PlanInsertEventsPass : Pass<"plan-insert-events", "::mlir::ModuleOp"> {
  let summary = "the fewest events that keep the order";
  let description = [{
    Replaces tokens by events and waits: the transitive reduction of the order over
    streams. The statistics `events` and `naive_events` say how many there are, and would be
    with one an edge.
  }];
  let dependentDialects = ["::gtp::planir::PlanDialect"];
}

def PlanVerifyPass : Pass<"plan-verify", "::mlir::ModuleOp"> {
  let summary = "runs the checker on the plan that would be emitted";
  let description = [{
    Emits the plan in memory and gives it to the independent checker, which reads nothing
    else. Findings are errors at the operations they name.
  }];
  let dependentDialects = ["::gtp::planir::PlanDialect"];
}

def ConvertPlanToEmitCPass : Pass<"convert-plan-to-emitc", "::mlir::ModuleOp"> {
  let summary = "a C++ program that builds the plan, as EmitC";
  let description = [{
    Replaces the plan by the program that `--emit=cpp` writes: calls of
    gtp-rt/PlanBuilder.h in the order of the plan. Stretches that repeat but for buffers,
    events, parameters and names (layers of one class) become a class with one function
    and a table with a row a layer. They are found by their structure alone.
  }];
  let dependentDialects = ["::gtp::planir::PlanDialect", "::mlir::emitc::EmitCDialect"];
}

#endif // GTP_CONVERSION_PASSES
