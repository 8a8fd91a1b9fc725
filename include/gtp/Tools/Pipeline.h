//===- Pipeline.h - The passes of a compilation, in order -----------------===//

#ifndef GTP_TOOLS_PIPELINE_H
#define GTP_TOOLS_PIPELINE_H

#include "gtp/Tools/CompileOptions.h"

#include "mlir/Pass/PassManager.h"

namespace gtp {

/// On modules that `--stop-after` printed: the last pass that ran. A
/// compilation of such a module goes on behind it.
inline constexpr llvm::StringLiteral kStageAttr = "gtp.stage";

/// The last pass that can say that a budget is not met.
inline constexpr llvm::StringLiteral kStageWithBudget = "gtp-plan-step";

/// Adds the passes behind `after` (empty: from the imported program) up to and
/// with `last` (empty: to the end). An unknown name is an error.
llvm::Error buildPipeline(mlir::OpPassManager &passes,
                          const CompileOptions &options, llvm::StringRef after,
                          llvm::StringRef last);

} // namespace gtp

#endif // GTP_TOOLS_PIPELINE_H
