//===- PlacementConversion.h - Steps from one placement to another --------===//

#ifndef GTP_ANALYSIS_PLACEMENTCONVERSION_H
#define GTP_ANALYSIS_PLACEMENTCONVERSION_H

#include "dialects/Gtp/GtpDialect.h"

namespace gtp {

/// One collective, or one local op, of a conversion.
struct ConversionStep {
  enum class Kind { AllGather, ReduceScatter, AllReduce, Slice, KeepFirst };
  Kind kind;
  unsigned dim = 0; ///< of gathers, scatters and slices
  llvm::SmallVector<mlir::StringAttr> axes;
  dist::PlacementAttr result; ///< what the value has after it
};

/// The steps that take a value from one placement to another of the same mesh
/// and logical shape. What shrinks a value comes before what moves it: cuts
/// along free axes (a reduce-scatter where the value is partial, else a slice),
/// then all-reduces of what is left, then gathers, then cuts along axes that
/// the gathers freed, then the cut to a partial sum. Fails where a partial
/// value would change its kind.
mlir::FailureOr<llvm::SmallVector<ConversionStep>>
planConversion(dist::PlacementAttr from, dist::PlacementAttr to,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace gtp

#endif // GTP_ANALYSIS_PLACEMENTCONVERSION_H
