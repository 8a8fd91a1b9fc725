//===- TfmExpect.h - What verifiers ask of operands and results -*- C++ -*-===//
//
// Holds on logical and on rank-local types alike: dimensions that are one and
// the same must agree, and encodings are not looked at (placements have their
// own verifier). Every `expect` fails with an error of the op, in which `name`
// is what the value is called.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_TFM_TFMEXPECT_H
#define GTP_DIALECTS_TFM_TFMEXPECT_H

#include "dialects/Tfm/TfmDialect.h"

namespace gtp::tfm {

using Shape = mlir::SmallVector<int64_t>;

/// The type of a value, which is a tensor.
mlir::RankedTensorType typeOf(mlir::Value value);
mlir::Type elementOf(mlir::Value value);
Shape shapeOf(mlir::Value value);
/// The shape of `value` with another last dimension.
Shape withLast(mlir::Value value, int64_t last);
/// The shape of `value` with one more dimension.
Shape withAppended(mlir::Value value, int64_t last);
/// float32, or float64 where an op on `value` computes in float64.
mlir::Type statisticsType(mlir::Value value);

mlir::LogicalResult expectShape(mlir::Operation *op, llvm::StringRef name,
                                mlir::Value value,
                                llvm::ArrayRef<int64_t> expected);
mlir::LogicalResult expectElement(mlir::Operation *op, llvm::StringRef name,
                                  mlir::Value value, mlir::Type expected);
/// The shape and element type of `model`.
mlir::LogicalResult expectLike(mlir::Operation *op, llvm::StringRef name,
                               mlir::Value value, mlir::Value model);
mlir::LogicalResult expectRank(mlir::Operation *op, llvm::StringRef name,
                               mlir::Value value, int64_t rank);
mlir::LogicalResult expectRankAtLeast(mlir::Operation *op, llvm::StringRef name,
                                      mlir::Value value, int64_t rank);

} // namespace gtp::tfm

#endif // GTP_DIALECTS_TFM_TFMEXPECT_H
