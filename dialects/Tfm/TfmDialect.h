//===- TfmDialect.h - What is computed ------------------------------------===//
//
// The one header that users of the dialect include.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMDIALECT_H
#define GTP_DIALECTS_TFM_TFMDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Tfm/TfmInterfaces.h"

#include "dialects/Tfm/TfmDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Tfm/TfmOps.h.inc"

namespace gtp::tfm {

/// Names of attributes that the dialect puts on modules and functions.
/// Module: the dictionary that the importer writes (family, vocabulary,
/// sequence, micro_batch, global_batch, microbatches, ...).
inline constexpr llvm::StringLiteral kModelAttr = "tfm.model";
/// Argument of the training step: weight | master | state | tokens | labels |
/// hyper.
inline constexpr llvm::StringLiteral kArgAttr = "tfm.arg";
/// Argument of the training step: the parameter it belongs to, as a symbol.
inline constexpr llvm::StringLiteral kParameterAttr = "tfm.parameter";
/// Argument of the training step that is a state: m | v.
inline constexpr llvm::StringLiteral kStateAttr = "tfm.state";
/// Result of the training step: the argument whose next value it is.
inline constexpr llvm::StringLiteral kTiedToAttr = "tfm.tied_to";
/// Result of the training step that is reported: loss | grad_norm | count.
inline constexpr llvm::StringLiteral kResultAttr = "tfm.result";
inline constexpr llvm::StringLiteral kForwardFunction = "forward";
inline constexpr llvm::StringLiteral kTrainStepFunction = "train_step";
/// The loss alone, with the weights as they are; nothing is replaced.
inline constexpr llvm::StringLiteral kEvalStepFunction = "eval_step";

/// Where an op of the backward pass comes from: the name of the forward op's
/// location, else its mnemonic, with a suffix such as ".wgrad".
mlir::Location gradientLoc(mlir::Operation *forward, llvm::StringRef suffix);

/// The tensor type of the same shape and another element type; no encoding.
mlir::RankedTensorType withElementType(mlir::RankedTensorType type,
                                       mlir::Type element);

} // namespace gtp::tfm

#endif // GTP_DIALECTS_TFM_TFMDIALECT_H
