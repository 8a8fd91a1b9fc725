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

/// The first operation that a finding names, as "region 1 (BODY), operation 12
/// ("; null when it names none.
static Operation *operationOf(StringRef message, const PlanSteps &steps) {
  size_t at = message.find("region ");
  if (at == StringRef::npos)
    return nullptr;
  message = message.drop_front(at);
  size_t region, operation;
  if (!message.consume_front("region ") || message.consumeInteger(10, region))
    return nullptr;
  message = message.drop_while([](char c) { return c != ','; });
  if (!message.consume_front(", operation ") ||
      message.consumeInteger(10, operation) || region >= steps.regions.size() ||
      operation >= steps.regions[region].size())
    return nullptr;
  return steps.regions[region][operation];
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
      Operation *where = operationOf(finding.message, steps);
      if (!where)
        where = program;
      emitError(where->getLoc())
          << "plan-verify: " << finding.rule << ": " << finding.message;
    }
    if (report.findings.empty())
      emitError(program.getLoc()) << "plan-verify: " << status.message();
    signalPassFailure();
  }
};

} // namespace
