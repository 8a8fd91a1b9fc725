//===- InitAll.h - Everything that gtp-opt knows --------------------------===//
//
// One line for each dialect, pass library and pipeline; tools call these and
// register nothing themselves.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_INITALL_H
#define GTP_INITALL_H

#include "dialects/Gtp/GtpDialect.h"
#include "dialects/Plan/PlanDialect.h"
#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Conversion/Passes.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace gtp {

inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::func::FuncDialect, mlir::emitc::EmitCDialect>();
  registry.insert<tfm::TfmDialect, dist::GtpDialect, planir::PlanDialect>();
}

inline void registerAllPasses() {
  registerGtpTransformsPasses();
  registerGtpConversionPasses();
}

} // namespace gtp

#endif // GTP_INITALL_H
