//===- Compiled.h - Small programs at every stage of the compiler ---------===//

#ifndef GTP_TEST_FUZZ_COMPILED_H
#define GTP_TEST_FUZZ_COMPILED_H

#include "gtp/Tools/CompileOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace gtp::fuzz {

/// A tiny model, and how it is compiled.
struct SmallProgram {
  CompileOptions options;
  std::string config; ///< text of a config.json
};

/// One of each shape of plan: several microbatches, several axes, bf16.
std::vector<SmallProgram> smallPrograms();

/// What gtp-opt registers.
const mlir::DialectRegistry &dialects();

/// The program after `stage` (empty: as imported). Aborts when it does not
/// compile, which no fuzzing can mend.
mlir::OwningOpRef<mlir::ModuleOp> compileTo(const SmallProgram &program,
                                            llvm::StringRef stage,
                                            mlir::MLIRContext *context);

/// Every stage that `compileTo` takes but the first, in order.
std::vector<std::string> stages();

/// The text of a module.
std::string print(mlir::ModuleOp module);

} // namespace gtp::fuzz

#endif // GTP_TEST_FUZZ_COMPILED_H
