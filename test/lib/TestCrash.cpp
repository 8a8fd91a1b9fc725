//===- TestCrash.cpp - A pass that crashes or fails -----------------------===//

#include "TestPasses.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace {
struct TestCrashPass : PassWrapper<TestCrashPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestCrashPass)

  TestCrashPass() = default;
  TestCrashPass(const TestCrashPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-crash"; }
  StringRef getDescription() const final { return "crash, or just fail"; }

  void runOnOperation() override {
    if (!fail)
      llvm::report_fatal_error("test-crash crashes");
    getOperation().emitError("test-crash fails");
    signalPassFailure();
  }

  Option<bool> fail{*this, "fail", llvm::cl::desc("fail with an error")};
};
} // namespace

void gtp::test::registerTestCrash() { PassRegistration<TestCrashPass>(); }
