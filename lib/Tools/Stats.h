//===- Stats.h - The numbers of --stats -----------------------------------===//

#ifndef GTP_LIB_TOOLS_STATS_H
#define GTP_LIB_TOOLS_STATS_H

#include "gtp/Tools/CompileOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace gtp {

/// Writes one JSON object: what is known of the program at this stage.
void writeStats(mlir::ModuleOp module, const CompileOptions &options,
                double seconds, llvm::raw_ostream &stream);

} // namespace gtp

#endif // GTP_LIB_TOOLS_STATS_H
