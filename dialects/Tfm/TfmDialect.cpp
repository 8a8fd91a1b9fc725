//===- TfmDialect.cpp - The dialect and what its ops share ----------------===//

#include "dialects/Tfm/TfmDialect.h"

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
