//===- PlanToProto.h - The plan dialect as a protobuf message -------------===//

#ifndef GTP_CONVERSION_PLANTOPROTO_H
#define GTP_CONVERSION_PLANTOPROTO_H

#include "dialects/Plan/PlanDialect.h"
#include "gtp/Plan/plan.pb.h"

namespace gtp {

/// Where operations of a message come from: for each program and region, the
/// step of each operation.
struct PlanSteps {
  std::vector<std::vector<std::vector<mlir::Operation *>>> programs;
};

/// Writes a program with addresses and events as a message, sealed. Strings,
/// constants and layouts are interned in the order of their first use, so equal
/// programs give equal bytes. Reports what is missing.
mlir::LogicalResult emitPlan(planir::ProgramOp program, plan::pb::Plan &plan,
                             PlanSteps *steps = nullptr);

/// The only program of a module, or null with an error.
planir::ProgramOp findProgram(mlir::Operation *module);

} // namespace gtp

#endif // GTP_CONVERSION_PLANTOPROTO_H
