//===- PlacementPolicy.h - Where what a training step takes is ------------===//
//
// By what the axes of the mesh are for (Mesh.h).
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TRANSFORMS_PLACEMENTPOLICY_H
#define GTP_TRANSFORMS_PLACEMENTPOLICY_H

#include "dialects/Gtp/GtpDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gtp {

/// Reads "dp=2,gtp=4" as Mesh::parse does; the empty text is the mesh of one
/// rank.
mlir::FailureOr<dist::MeshAttr>
parseMesh(mlir::MLIRContext *context, llvm::StringRef text,
          llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Placements of what a training step takes.
class PlacementPolicy {
public:
  PlacementPolicy(dist::MeshAttr mesh, mlir::func::FuncOp step);

  /// The placement of an argument by its role: parameters, master copies and
  /// optimizer states alike are cut along dimension 0 by storage axes from rank
  /// 2 on, but for those of a parameter that is `replicated`; tokens and labels
  /// are cut along their batch, the dimension before the last; the rest is
  /// replicated.
  mlir::FailureOr<dist::PlacementAttr> placeArgument(unsigned index);

  /// Whether an argument is a parameter, its master copy or state.
  bool isParameter(unsigned index);

private:
  void addGranules(mlir::func::FuncOp function);
  dist::PlacementAttr placeParameter(mlir::RankedTensorType type,
                                     mlir::Attribute parameter) const;
  mlir::FailureOr<dist::PlacementAttr>
  placeBatch(mlir::BlockArgument argument) const;

  dist::MeshAttr mesh;
  mlir::func::FuncOp step;
  /// The granule of each parameter, by its symbol.
  llvm::DenseMap<mlir::Attribute, int64_t> granules;
  /// Symbols of parameters that every rank holds whole.
  llvm::DenseSet<mlir::Attribute> replicated;
};

} // namespace gtp

#endif // GTP_TRANSFORMS_PLACEMENTPOLICY_H
