//===- PlacementVerification.h - Every op is placed by its rule -----------===//

#ifndef GTP_ANALYSIS_PLACEMENTVERIFICATION_H
#define GTP_ANALYSIS_PLACEMENTVERIFICATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gtp {

/// Checks a function with placements, after `gtp-place` or `gtp-partition`:
/// every tensor has a placement on the function's `gtp.mesh` and the shape of
/// the phase it is in; operands and results of every op are those that its rule
/// infers; loops and returns pass on what they take; no conversion is left when
/// it is partitioned.
llvm::LogicalResult verifyPlacements(mlir::func::FuncOp function);

} // namespace gtp

#endif // GTP_ANALYSIS_PLACEMENTVERIFICATION_H
