//===- PlanVerify.cpp - Runs the checker on the plan ----------------------===//

#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Plan/Checker.h"

namespace gtp {
#define GEN_PASS_DEF_PLANVERIFYPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

/// The op that became the operation at a place.
static Operation *stepAt(const PlanSteps &steps,
                         const plan::OperationPlace &place) {
  return steps.programs[place.program][place.region][place.operation];
}

namespace {

struct PlanVerifyPass : public gtp::impl::PlanVerifyPassBase<PlanVerifyPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    ProgramOp program = findProgram(getOperation());
    if (!program)
      return signalPassFailure();
    plan::pb::Plan message;
    PlanSteps steps;
    if (failed(emitPlan(program, message, &steps)))
      return signalPassFailure();
    plan::CheckReport report;
    Status status = plan::checkPlan(message, &report);
    if (status.isOk())
      return;
    for (const plan::Finding &finding : report.findings) {
      Operation *where = program;
      if (finding.operation)
        where = stepAt(steps, *finding.operation);
      InFlightDiagnostic diag = emitError(where->getLoc())
                                << "plan-verify: " << finding.rule << ": "
                                << finding.message;
      if (finding.other)
        diag.attachNote(stepAt(steps, *finding.other)->getLoc())
            << "the other operation is here";
    }
    signalPassFailure();
  }
};

} // namespace
