//===- GtpDialect.cpp - The dialect and its attributes on other ops -------===//

#include "dialects/Gtp/GtpDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gtp::dist;

#include "dialects/Gtp/GtpDialect.cpp.inc"

namespace {
/// Placements are long and few: print each once, under a name.
struct GtpAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (isa<MeshAttr>(attribute))
      os << "mesh";
    else if (isa<PlacementAttr>(attribute))
      os << "placement";
    else
      return AliasResult::NoAlias;
    return AliasResult::FinalAlias;
  }
};
} // namespace

void GtpDialect::initialize() {
  registerAttributesAndTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Gtp/GtpOps.cpp.inc"
      >();
  addInterfaces<GtpAsmInterface>();
}

LogicalResult GtpDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto isPosition = [&] {
    auto integer = dyn_cast<IntegerAttr>(value);
    return integer && integer.getType().isSignlessInteger(64);
  };
  if (name == kMeshAttr) {
    if (!isa<FunctionOpInterface>(op) || !isa<MeshAttr>(value))
      return op->emitOpError()
             << "has attribute " << name << ", expected a mesh on a function";
  } else if (name == kPartitionedAttr) {
    if (!isa<FunctionOpInterface>(op) || !isa<UnitAttr>(value))
      return op->emitOpError() << "has attribute " << name
                               << ", expected a unit attribute on a function";
  } else if (name == kTriggerAttr) {
    if (!isa<MaterializeOp>(op) || !isPosition())
      return op->emitOpError() << "has attribute " << name
                               << ", expected an i64 on gtp.materialize";
  } else if (name == kPinnedAttr) {
    if (!isa<MaterializeOp>(op) || !isa<UnitAttr>(value))
      return op->emitOpError()
             << "has attribute " << name
             << ", expected a unit attribute on gtp.materialize";
  } else if (name == kReleaseBeforeAttr) {
    if (!isa<ReduceScatterOp, AllReduceOp>(op) || !isPosition())
      return op->emitOpError() << "has attribute " << name
                               << ", expected an i64 on gtp.reduce_scatter or "
                                  "gtp.all_reduce";
  }
  return success();
}
