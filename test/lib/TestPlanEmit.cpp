//===- TestPlanEmit.cpp - Writes a plan that nobody has checked -----------===//
//
// For tests that run what the checker refuses.
//
//===----------------------------------------------------------------------===//

#include "TestPasses.h"
#include "gtp/Conversion/PlanToProto.h"
#include "gtp/Plan/PlanFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace gtp;

namespace {
struct TestPlanEmitPass
    : PassWrapper<TestPlanEmitPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPlanEmitPass)

  TestPlanEmitPass() = default;
  TestPlanEmitPass(const TestPlanEmitPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-plan-emit"; }
  StringRef getDescription() const final {
    return "write the plan without checking it";
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    planir::ProgramOp program = findProgram(getOperation());
    plan::pb::Plan plan;
    if (!program || failed(emitPlan(program, plan)))
      return signalPassFailure();
    Status saved = plan::savePlan(plan, output);
    if (!saved.isOk()) {
      getOperation().emitError() << saved.message();
      signalPassFailure();
    }
  }

  Option<std::string> output{*this, "output",
                             llvm::cl::desc("file that gets the plan")};
};
} // namespace

void gtp::test::registerTestPlanEmit() { PassRegistration<TestPlanEmitPass>(); }
