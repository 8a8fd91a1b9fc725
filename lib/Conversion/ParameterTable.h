//===- ParameterTable.h - Parameters and the values that are theirs -------===//

#ifndef GTP_LIB_CONVERSION_PARAMETERTABLE_H
#define GTP_LIB_CONVERSION_PARAMETERTABLE_H

#include "dialects/Tfm/TfmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace gtp {

/// A parameter and what of the step is its own.
struct ParameterEntry {
  tfm::ParameterOp op;
  /// The last two may be null; not both are there.
  mlir::BlockArgument weight, master, remainder;
  llvm::SmallVector<mlir::BlockArgument, 2> states;
  /// Result of tfm.microbatches that its update reads.
  mlir::Value gradient;
  bool decay = false;
  /// Reads of it in the forward pass.
  int64_t uses = 0;
};

/// Which values of a training step are weights, and which are gradients, of
/// which parameter.
class ParameterTable {
public:
  /// Reports what does not fit.
  static mlir::FailureOr<ParameterTable> build(mlir::func::FuncOp step,
                                               tfm::MicrobatchesOp body);

  llvm::ArrayRef<ParameterEntry> entries() const { return list; }
  /// Name of the kernel that updates parameters; empty when none does.
  llvm::StringRef optimizer() const { return kernelOfUpdates; }
  /// The parameter whose shard, full weight or state a value is; or null.
  mlir::FlatSymbolRefAttr weightOf(mlir::Value value) const {
    return weights.lookup(value);
  }
  /// The parameter to whose gradient a value contributes; or null.
  mlir::FlatSymbolRefAttr gradientOf(mlir::Value value) const {
    return gradients.lookup(value);
  }

private:
  mlir::LogicalResult readArguments(mlir::func::FuncOp step);
  mlir::LogicalResult readUpdates(mlir::func::FuncOp step,
                                  tfm::MicrobatchesOp body);
  void traceWeights(mlir::Block &block);
  void traceGradient(ParameterEntry &entry, mlir::Value gradient,
                     tfm::MicrobatchesOp body);

  llvm::SmallVector<ParameterEntry> list;
  llvm::StringRef kernelOfUpdates;
  llvm::DenseMap<mlir::StringAttr, unsigned> positions;
  llvm::DenseMap<mlir::Value, mlir::FlatSymbolRefAttr> weights, gradients;
};

} // namespace gtp

#endif // GTP_LIB_CONVERSION_PARAMETERTABLE_H
