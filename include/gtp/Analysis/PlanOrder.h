//===- PlanOrder.h - Happens-before and lifetimes of a plan ---------------===//
//
// The plan dialect's order and accesses as problems of gtp/Planning. Read-only.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_ANALYSIS_PLANORDER_H
#define GTP_ANALYSIS_PLANORDER_H

#include "dialects/Plan/PlanDialect.h"
#include "gtp/Planning/Memory.h"

namespace gtp {

/// Order of a region by streams, tokens and events; operation i is its i-th
/// step.
planning::OrderGraph orderOf(planir::RegionOp region, unsigned numStreams);

unsigned numStreams(planir::ProgramOp program);

/// Lifetimes of buffers, in the program's order of the problem's buffers.
struct PlanLifetimes {
  planning::MemoryProblem problem;
  llvm::SmallVector<planir::BufferOp> buffers;
  /// Which of them hold gathered weights.
  llvm::SmallVector<bool> gathered;
};
PlanLifetimes lifetimesOf(planir::ProgramOp program);

} // namespace gtp

#endif // GTP_ANALYSIS_PLANORDER_H
