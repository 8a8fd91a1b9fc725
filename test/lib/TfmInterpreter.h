//===- TfmInterpreter.h - tfm programs in float64 -------------------------===//
//
// The meaning of tfm ops, plainly written, on any types: every float is a
// double and no cast rounds. What gradients are tested with.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_LIB_TFMINTERPRETER_H
#define GTP_TEST_LIB_TFMINTERPRETER_H

#include "dialects/Tfm/TfmDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <vector>

namespace gtp::test {

/// Row-major; ids and counts too are doubles, which hold them exactly.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> values;

  Tensor() = default;
  explicit Tensor(llvm::ArrayRef<int64_t> shape, double value = 0)
      : shape(shape), values(elementCount(shape), value) {}
  explicit Tensor(mlir::Value value)
      : Tensor(mlir::cast<mlir::RankedTensorType>(value.getType()).getShape()) {
  }

  static int64_t elementCount(llvm::ArrayRef<int64_t> shape);

  int64_t last() const { return shape.back(); }
  int64_t rows() const { return values.size() / shape.back(); }
  double *row(int64_t index) { return values.data() + index * last(); }
  const double *row(int64_t index) const {
    return values.data() + index * last();
  }
};

class Interpreter {
public:
  /// What `tfm.get` reads, by symbol.
  llvm::StringMap<Tensor> parameters;
  /// Arguments of blocks, to be set before `run`, and all that was computed.
  llvm::DenseMap<mlir::Value, Tensor> values;

  /// Runs all ops of a block but its terminator.
  mlir::LogicalResult run(mlir::Block &block);

  const Tensor &operator[](mlir::Value value) const {
    return values.find(value)->second;
  }

private:
  mlir::LogicalResult runMicrobatches(tfm::MicrobatchesOp op);
};

/// The results of one op without regions; empty, after a diagnostic, for an op
/// that has no meaning here.
llvm::SmallVector<Tensor> interpret(mlir::Operation *op,
                                    llvm::ArrayRef<const Tensor *> operands);

} // namespace gtp::test

#endif // GTP_TEST_LIB_TFMINTERPRETER_H
