//===- PlanDialect.h - The plan dialect -----------------------------------===//

#ifndef GTP_DIALECTS_PLAN_PLANDIALECT_H
#define GTP_DIALECTS_PLAN_PLANDIALECT_H

#include "gtp/Plan/KernelRegistry.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Plan/PlanEnums.h.inc"

#include "dialects/Plan/PlanDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.h.inc"

namespace gtp::planir {

class StepOpInterface;

/// Every offset is a multiple of this many bytes.
constexpr int64_t kBufferAlignment = 256;

/// Bytes an element of a type that views may have; 0 for other types.
int64_t elementBytes(mlir::Type type);

/// What every step must keep: one view a buffer, inside it.
mlir::LogicalResult verifyStep(StepOpInterface step);

/// The layer or op a location names; empty when it names none.
llvm::StringRef sourceName(mlir::Location loc);

} // namespace gtp::planir

#include "dialects/Plan/PlanInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.h.inc"

namespace gtp::planir {

/// What a plan's programs consist of: the block of `program` itself, the
/// training step, then that of each subprogram.
llvm::SmallVector<mlir::Block *, 2> programBlocks(ProgramOp program);

} // namespace gtp::planir

#endif // GTP_DIALECTS_PLAN_PLANDIALECT_H
