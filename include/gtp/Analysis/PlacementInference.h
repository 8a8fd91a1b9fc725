//===- PlacementInference.h - From operands' placements to results' -------===//

#ifndef GTP_ANALYSIS_PLACEMENTINFERENCE_H
#define GTP_ANALYSIS_PLACEMENTINFERENCE_H

#include "dialects/Gtp/GtpDialect.h"
#include "dialects/Tfm/TfmDialect.h"

namespace gtp {

/// The placements that a rule gives to an op.
struct InferredPlacements {
  llvm::SmallVector<dist::PlacementAttr> operands; ///< that the op needs
  llvm::SmallVector<dist::PlacementAttr> results;  ///< that it then has
};

/// Applies the rule of an op to its operands as they are placed now.
///
/// A factor takes the cut of the operand whose dimension has most axes, the
/// first among equals; storage cuts only where the rule accepts them, and
/// compute cuts only if they give whole units. An axis cuts one factor: the
/// first, others lose it and what it is major to. Operands are partial where
/// the rule is linear, all over the same axes, and nowhere else. A result is
/// partial over the axes that cut factors it does not have, and those of its
/// operands.
///
/// `results` are the types of the results of logical shape; `elements` the
/// element types of the operands.
InferredPlacements
inferPlacements(const tfm::PlacementRule &rule, dist::MeshAttr mesh,
                llvm::ArrayRef<dist::PlacementAttr> operands,
                llvm::ArrayRef<mlir::Type> elements,
                llvm::ArrayRef<mlir::RankedTensorType> results);

} // namespace gtp

#endif // GTP_ANALYSIS_PLACEMENTINFERENCE_H
