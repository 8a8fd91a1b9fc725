//===- GtpDialect.h - Where it is computed --------------------------------===//
//
// The one header that users of the dialect include.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_DIALECTS_GTP_GTPDIALECT_H
#define GTP_DIALECTS_GTP_GTPDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "dialects/Gtp/GtpDialect.h.inc"
#include "dialects/Gtp/GtpEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Gtp/GtpAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Gtp/GtpTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Gtp/GtpOps.h.inc"

namespace gtp::dist {

/// The placement of a type or value; null when it has none.
PlacementAttr placementOf(mlir::Type type);
inline PlacementAttr placementOf(mlir::Value value) {
  return placementOf(value.getType());
}

/// The type of this element type and placement, of logical or of local shape.
mlir::RankedTensorType logicalType(mlir::Type element, PlacementAttr placement);
mlir::RankedTensorType localType(mlir::Type element, PlacementAttr placement);

/// Whether a type has the shape that its placement gives to a rank (or the
/// logical one); false without a placement.
bool hasLocalShape(mlir::Type type);
bool hasLogicalShape(mlir::Type type);

/// The type that partial sums of `element` accumulate in.
mlir::Type accumulationType(mlir::Type element);

/// `(dp, gtp)`, for messages.
std::string axesText(llvm::ArrayRef<mlir::StringAttr> axes);

} // namespace gtp::dist

#endif // GTP_DIALECTS_GTP_GTPDIALECT_H
