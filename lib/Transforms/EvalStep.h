//===- EvalStep.h - The held-out loss, and what it shares with a step -----===//

#ifndef GTP_LIB_TRANSFORMS_EVALSTEP_H
#define GTP_LIB_TRANSFORMS_EVALSTEP_H

#include "dialects/Tfm/TfmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace gtp::tfm {

/// The location of an op that has no forward op to be named after.
mlir::Location nameLoc(mlir::MLIRContext *context, const llvm::Twine &name);

/// The type of a value of every microbatch, from that of one: microbatches are
/// dimension 0.
mlir::RankedTensorType stackMicrobatches(mlir::RankedTensorType one,
                                         int64_t microbatches);

/// What the loss is divided by, counted labels or sequences, of the labels of
/// all microbatches: the value of the last argument of `forward`.
mlir::Value createCount(mlir::OpBuilder &builder, mlir::func::FuncOp forward,
                        mlir::Value labels);

/// Appends the ops of `forward` at the builder, in order, and returns them.
/// Parameters are the values of their names in `weights`; `mapping` must have
/// the arguments, and gets everything else.
llvm::SmallVector<mlir::Operation *>
cloneForward(mlir::OpBuilder &builder, mlir::func::FuncOp forward,
             const llvm::DenseMap<mlir::StringAttr, mlir::Value> &weights,
             mlir::IRMapping &mapping);

/// Creates `@eval_step` before `forward`: the weights of the module's
/// parameters, tokens and labels in; the loss of all microbatches, and the
/// count that it was divided by, out.
mlir::func::FuncOp buildEvalStep(mlir::func::FuncOp forward,
                                 int64_t microbatches);

} // namespace gtp::tfm

#endif // GTP_LIB_TRANSFORMS_EVALSTEP_H
