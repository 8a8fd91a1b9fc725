//===- GtpOps.cpp - Syntax and folding of gtp ops -------------------------===//

#include "dialects/Gtp/GtpDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace gtp::dist;

/// (dp, gtp)
static ParseResult parseAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> names;
  auto parseName = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseName))
    return failure();
  axes = parser.getBuilder().getArrayAttr(names);
  return success();
}

static void printAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printer << '(';
  llvm::interleaveComma(
      axes.getAsValueRange<StringAttr>(), printer,
      [&](StringRef axis) { printer.printKeywordOrString(axis); });
  printer << ')';
}

#define GET_OP_CLASSES
#include "dialects/Gtp/GtpOps.cpp.inc"

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  return getSource().getType() == getType() ? getSource() : Value();
}
