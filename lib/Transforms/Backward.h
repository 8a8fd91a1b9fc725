//===- Backward.h - Reverse-mode differentiation of a block ---------------===//

#ifndef GTP_LIB_TRANSFORMS_BACKWARD_H
#define GTP_LIB_TRANSFORMS_BACKWARD_H

#include "dialects/Tfm/TfmDialect.h"

#include "mlir/IR/Builders.h"

namespace gtp::tfm {

/// Reverse-mode differentiation of the straight-line code in one block.
class Backward {
public:
  Backward(mlir::OpBuilder &builder, VjpOptions options)
      : builder(builder), options(options) {}

  /// A value with respect to which we differentiate.
  void addInput(mlir::Value input) { active.insert(input); }

  /// Appends the backward pass of `ops` to the block of the builder, from the
  /// cotangent 1 of `loss`.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> ops,
                          mlir::Value loss);

  /// After `run`: whether the loss depends on the input.
  bool reaches(mlir::Value input) const {
    return contributions.contains(input);
  }

  /// The sum of what has been contributed to an input, as `element`, right
  /// after its last part so that the parts die early.
  mlir::Value takeGradient(mlir::Value input, mlir::Type element,
                           mlir::Location loc);

private:
  /// The sum of contributions, of element type `element`, at the builder.
  mlir::Value sum(llvm::ArrayRef<mlir::Value> parts, mlir::Type element,
                  mlir::Location loc);

  mlir::OpBuilder &builder;
  VjpOptions options;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> contributions;
};

} // namespace gtp::tfm

#endif // GTP_LIB_TRANSFORMS_BACKWARD_H
