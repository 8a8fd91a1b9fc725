//===- Passes.h - Passes on tfm and gtp -----------------------------------===//

#ifndef GTP_TRANSFORMS_PASSES_H
#define GTP_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace gtp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gtp/Transforms/Passes.h.inc"

} // namespace gtp

#endif // GTP_TRANSFORMS_PASSES_H
