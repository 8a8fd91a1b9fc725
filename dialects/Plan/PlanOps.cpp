//===- PlanOps.cpp - Operations of the plan dialect -----------------------===//

#include "dialects/Plan/PlanDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace gtp::planir;
using namespace mlir;
using gtp::plan::Access;

//===----------------------------------------------------------------------===//
// Names and views in the assembly
//===----------------------------------------------------------------------===//

void BufferOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "b");
}
void KernelOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getToken(), "t");
}
void CollectiveOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getToken(), "t");
}
void CopyOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getToken(), "t");
}
void FillOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getToken(), "t");
}

/// `(%buffer <view>, ...)`.
static ParseResult
parseViews(OpAsmParser &parser,
           SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers,
           ArrayAttr &views) {
  SmallVector<Attribute> parsed;
  auto one = [&]() -> ParseResult {
    if (parser.parseOperand(buffers.emplace_back()))
      return failure();
    Attribute view = ViewAttr::parse(parser, Type());
    parsed.push_back(view);
    return success(bool(view));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  views = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printViews(OpAsmPrinter &printer, Operation *, OperandRange buffers,
                       ArrayAttr views) {
  printer << '(';
  llvm::interleaveComma(llvm::zip(buffers, views), printer, [&](auto pair) {
    auto [buffer, view] = pair;
    printer << buffer << ' ';
    cast<ViewAttr>(view).print(printer);
  });
  printer << ')';
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Access KernelOp::getAccess(unsigned index) {
  // Verified ops have a registered kernel and the right number of operands.
  const plan::KernelSpec *spec = plan::lookupKernel(getName());
  const plan::OperandSpec *operand =
      spec ? plan::operandSpec(*spec, index, getBuffers().size()) : nullptr;
  return operand ? operand->access : Access::ReadWrite;
}

Access CollectiveOp::getAccess(unsigned index) {
  return index < getMembers() ? Access::Read : Access::Write;
}

Access CopyOp::getAccess(unsigned index) {
  return index == 0 ? Access::Read : Access::Write;
}

Access FillOp::getAccess(unsigned) { return Access::Write; }

#include "dialects/Plan/PlanInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"
