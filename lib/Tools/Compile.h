//===- Compile.h - From an input to the output asked for ------------------===//

#ifndef GTP_LIB_TOOLS_COMPILE_H
#define GTP_LIB_TOOLS_COMPILE_H

#include "CompileFlags.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>

namespace gtp {

/// Whether the text is a config, by the name of its file, else by its first
/// characters.
bool isConfig(const llvm::MemoryBuffer &input);

/// Everything that compile() works on.
struct CompileJob {
  std::unique_ptr<llvm::MemoryBuffer> input;
  const CompileFlags &flags;
  CompileOptions options;
  const mlir::MlirOptMainConfig &config;
  mlir::DialectRegistry &registry;
  std::chrono::steady_clock::time_point started;
  /// Passes named on the command line run, instead of the pipeline.
  bool explicitPasses = false;
  /// Memory of the target, bytes.
  int64_t targetBytes = 0;
};

/// Imports or parses, runs the pipeline as far as the output needs it, and
/// writes the output and the statistics. Errors are reported.
llvm::LogicalResult compile(CompileJob &job);

/// After a compilation that failed: if it was for its budget, notes that say
/// what would fit. Compiles variants of the job.
void adviseOnBudget(const CompileJob &job, mlir::ModuleOp failed);

/// What the plan's memory is for, on standard error: when it is asked for, and
/// with a warning when the target does not hold it.
void reportFit(const CompileJob &job, mlir::ModuleOp module);

/// An error whose message is out already.
llvm::Error reportedError();

/// Prints "gtp-opt: error: ...", unless it is a reportedError(), and fails.
llvm::LogicalResult reportError(llvm::Error error);

} // namespace gtp

#endif // GTP_LIB_TOOLS_COMPILE_H
