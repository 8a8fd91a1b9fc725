//===- PlanStats.h - Claims and statistics of a program -------------------===//

#ifndef GTP_CONVERSION_PLANSTATS_H
#define GTP_CONVERSION_PLANSTATS_H

#include "dialects/Plan/PlanDialect.h"

namespace gtp {

/// Sets one entry of the program's claims, which the plan carries, or of its
/// statistics, which only `--stats` reads.
void setClaim(planir::ProgramOp program, llvm::StringRef name, int64_t value);
void setStat(planir::ProgramOp program, llvm::StringRef name, int64_t value);

/// What `plan-assign-memory` does to a program. `peak` gets buffers that are
/// live together and weigh the most.
mlir::LogicalResult
assignMemory(planir::ProgramOp program,
             llvm::SmallVectorImpl<planir::BufferOp> *peak = nullptr);

} // namespace gtp

#endif // GTP_CONVERSION_PLANSTATS_H
