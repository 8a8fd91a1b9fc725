//===- PlanVerify.cpp - Runs the checker on the plan ----------------------===//

#include "gtp/Conversion/Passes.h"
#include "gtp/Conversion/PlanToProto.h"

namespace gtp {
#define GEN_PASS_DEF_PLANVERIFYPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

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
  }
};

} // namespace
