//===- PlanToCpp.h - The plan as a C++ program ----------------------------===//
//
// A program that builds the plan with gtp-rt/PlanBuilder.h and trains with it,
// through MLIR's EmitC dialect.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_CONVERSION_PLANTOCPP_H
#define GTP_CONVERSION_PLANTOCPP_H

#include "dialects/Plan/PlanDialect.h"

namespace gtp {

/// Adds the EmitC operations of the program's C++ at the builder's insertion
/// point. Reports what has no C++.
mlir::LogicalResult buildEmitC(planir::ProgramOp program,
                               mlir::OpBuilder &builder);

/// Writes the program's C++.
mlir::LogicalResult emitCpp(planir::ProgramOp program,
                            llvm::raw_ostream &stream);

} // namespace gtp

#endif // GTP_CONVERSION_PLANTOCPP_H
