//===- StepSchedule.h - A microbatch as a scheduling problem --------------===//

#ifndef GTP_ANALYSIS_STEPSCHEDULE_H
#define GTP_ANALYSIS_STEPSCHEDULE_H

#include "gtp/Analysis/CostModel.h"
#include "gtp/Planning/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace gtp {

/// The scheduling problem of the microbatch region of a partitioned step, and
/// which ops its entries are.
struct StepSchedule {
  planning::ScheduleProblem problem;
  llvm::SmallVector<mlir::Operation *> compute, gathers, reductions;
  /// Position in the region of every op of it.
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  /// Runs of the region, and predicted time outside of it: kernels, and what
  /// the compute stream waits for.
  int64_t repeat = 1;
  int64_t outsideComputeNs = 0, outsideStallNs = 0;
  /// Names of the communicators that the whole step needs.
  llvm::StringSet<> communicators;
};

/// The functions of a module that become the programs of its plan, each of one
/// block: the training step, then what stands beside it. Empty when there is no
/// training step.
llvm::SmallVector<mlir::func::FuncOp> stepFunctions(mlir::ModuleOp module);

/// Reports collectives that the machine cannot carry out.
mlir::FailureOr<StepSchedule> stepSchedule(mlir::func::FuncOp step,
                                           const CostModel &costs);

} // namespace gtp

#endif // GTP_ANALYSIS_STEPSCHEDULE_H
