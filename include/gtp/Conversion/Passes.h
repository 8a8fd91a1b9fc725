//===- Passes.h - From gtp to the plan, and passes on plans ---------------===//

#ifndef GTP_CONVERSION_PASSES_H
#define GTP_CONVERSION_PASSES_H

#include "dialects/Gtp/GtpDialect.h"
#include "dialects/Plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace gtp {

/// Attribute of a module: what gtp-plan-step predicts.
inline constexpr llvm::StringLiteral kPlanStepAttr = "gtp.plan_step";
/// Entry of it, with a budget, met or not: bytes that a rank needs.
inline constexpr llvm::StringLiteral kRankBytes = "rank_bytes";
/// Attribute of a module: fields of the plan's provenance that the driver
/// knows.
inline constexpr llvm::StringLiteral kProvenanceAttr = "gtp.provenance";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gtp/Conversion/Passes.h.inc"

} // namespace gtp

#endif // GTP_CONVERSION_PASSES_H
