//===- TfmDialect.cpp - The dialect and what its ops share ----------------===//

#include "dialects/Tfm/TfmDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace gtp::tfm;

#include "dialects/Tfm/TfmDialect.cpp.inc"
#include "dialects/Tfm/TfmInterfaces.cpp.inc"

void TfmDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Tfm/TfmOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Attributes on other ops
//===----------------------------------------------------------------------===//

static bool isI64(Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getType().isSignlessInteger(64);
}

/// The error for an attribute that is not what it should be.
static InFlightDiagnostic mismatch(Operation *op, NamedAttribute attribute,
                                   const Twine &expected) {
  return op->emitOpError() << "has " << attribute.getName().strref() << " = "
                           << attribute.getValue() << ", expected " << expected;
}

LogicalResult TfmDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != kModelAttr)
    return success();
  auto fields = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!fields || !isa<ModuleOp>(op))
    return mismatch(op, attribute, "a dictionary on a module");
  for (NamedAttribute field : fields)
    if (auto integer = dyn_cast<IntegerAttr>(field.getValue()))
      if (!isI64(integer) || integer.getInt() < 0)
        return op->emitOpError()
               << "has " << attribute.getName().strref() << " with "
               << field.getName().strref() << " = " << integer
               << ", expected an i64 of 0 or more";
  auto separator = fields.getAs<IntegerAttr>("document_separator");
  auto vocabulary = fields.getAs<IntegerAttr>("vocabulary");
  if (separator && vocabulary && separator.getInt() >= vocabulary.getInt())
    return op->emitOpError()
           << "has " << attribute.getName().strref()
           << " with document_separator = " << separator.getInt()
           << ", expected an id below its vocabulary of "
           << vocabulary.getInt();
  return success();
}

LogicalResult TfmDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto text = dyn_cast<StringAttr>(value);
  if (name == kArgAttr) {
    if (!text || !llvm::is_contained({"weight", "master", "remainder", "state",
                                      "tokens", "labels", "hyper"},
                                     text.getValue()))
      return mismatch(
          op, attribute,
          "weight, master, remainder, state, tokens, labels or hyper");
  } else if (name == kParameterAttr) {
    if (!isa<FlatSymbolRefAttr>(value))
      return mismatch(op, attribute, "the symbol of a parameter");
  } else if (name == kStateAttr) {
    if (!text)
      return mismatch(op, attribute, "the name of a state");
  }
  return success();
}

LogicalResult
TfmDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kResultAttr && !isa<StringAttr>(value))
    return mismatch(op, attribute, "the name of what is reported");
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name != kTiedToAttr || !function)
    return success();
  unsigned arguments = function.getNumArguments();
  if (!isI64(value) || cast<IntegerAttr>(value).getInt() < 0 ||
      cast<IntegerAttr>(value).getInt() >= int64_t(arguments))
    return mismatch(op, attribute,
                    "the i64 number of one of its " + Twine(arguments) +
                        " arguments");
  unsigned argument = cast<IntegerAttr>(value).getInt();
  Type found = function.getResultTypes()[index];
  Type expected = function.getArgumentTypes()[argument];
  if (found != expected)
    return op->emitOpError()
           << "has result #" << index << " of type " << found
           << " tied to argument #" << argument << " of type " << expected;
  return success();
}

//===----------------------------------------------------------------------===//
// What ops share
//===----------------------------------------------------------------------===//

Location gtp::tfm::gradientLoc(Operation *forward, StringRef suffix) {
  Location loc = forward->getLoc();
  if (auto name = loc->findInstanceOf<NameLoc>())
    return NameLoc::get(
        StringAttr::get(loc.getContext(), name.getName().getValue() + suffix),
        name.getChildLoc());
  StringRef mnemonic = forward->getName().stripDialect();
  return NameLoc::get(StringAttr::get(loc.getContext(), mnemonic + suffix),
                      loc);
}

RankedTensorType gtp::tfm::withElementType(RankedTensorType type,
                                           Type element) {
  return RankedTensorType::get(type.getShape(), element);
}

int64_t gtp::tfm::tensorBytes(TypeRange types) {
  int64_t bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += tensor.getNumElements() *
               llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
  return bytes;
}
