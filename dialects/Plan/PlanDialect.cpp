//===- PlanDialect.cpp - The plan dialect ---------------------------------===//

#include "dialects/Plan/PlanDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace gtp::planir;

#include "dialects/Plan/PlanDialect.cpp.inc"

#include "dialects/Plan/PlanEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

void PlanDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
}

int64_t gtp::planir::elementBytes(mlir::Type type) {
  if (type.isF64() || type.isSignlessInteger(64))
    return 8;
  if (type.isF32() || type.isSignlessInteger(32))
    return 4;
  if (type.isBF16() || type.isSignlessInteger(16))
    return 2;
  return type.isSignlessInteger(8) ? 1 : 0;
}

llvm::StringRef gtp::planir::sourceName(mlir::Location loc) {
  llvm::StringRef name;
  loc->walk([&](mlir::Location part) {
    auto named = llvm::dyn_cast<mlir::NameLoc>(part);
    if (!named)
      return mlir::WalkResult::advance();
    name = named.getName();
    return mlir::WalkResult::interrupt();
  });
  return name;
}
