//===- TfmOps.cpp - Syntax and symbols of tfm ops -------------------------===//

#include "dialects/Tfm/TfmDialect.h"

using namespace mlir;
using namespace gtp::tfm;

#define GET_OP_CLASSES
#include "dialects/Tfm/TfmOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ParameterOp
//===----------------------------------------------------------------------===//

// @name : type init "normal" tensors ["a" = 64, "b" = 32] tied ["c"]
//   frozen replicated prefetch "off"
// where a tensor may end in `transposed` or `interleaved 8 by 3`.
ParseResult ParameterOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  Type type;
  std::string init;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseColonType(type) || parser.parseKeyword("init") ||
      parser.parseString(&init) || parser.parseKeyword("tensors"))
    return failure();
  SmallVector<StringRef> names;
  SmallVector<std::string> storage;
  SmallVector<int64_t> rows;
  SmallVector<int64_t> layouts;
  auto parseTensor = [&]() -> ParseResult {
    int64_t &groups = layouts.emplace_back(0);
    if (parser.parseString(&storage.emplace_back()) || parser.parseEqual() ||
        parser.parseInteger(rows.emplace_back()))
      return failure();
    int64_t parts = 0;
    if (succeeded(parser.parseOptionalKeyword("transposed")))
      groups = kTransposed;
    else if (succeeded(parser.parseOptionalKeyword("interleaved")) &&
             (parser.parseInteger(groups) || parser.parseKeyword("by") ||
              parser.parseInteger(parts)))
      return failure();
    layouts.push_back(parts);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                     parseTensor))
    return failure();
  SmallVector<std::string> tied;
  auto parseTied = [&]() -> ParseResult {
    return parser.parseString(&tied.emplace_back());
  };
  if (succeeded(parser.parseOptionalKeyword("tied")) &&
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseTied))
    return failure();
  bool frozen = succeeded(parser.parseOptionalKeyword("frozen"));
  bool replicated = succeeded(parser.parseOptionalKeyword("replicated"));
  std::string prefetch;
  bool pinned = succeeded(parser.parseOptionalKeyword("prefetch"));
  if (pinned && parser.parseString(&prefetch))
    return failure();

  Properties &properties = result.getOrAddProperties<Properties>();
  auto strings = [&](ArrayRef<std::string> values) {
    return builder.getStrArrayAttr(SmallVector<StringRef>(values));
  };
  properties.setType(TypeAttr::get(type));
  properties.setInit(builder.getStringAttr(init));
  properties.setTensorNames(strings(storage));
  properties.setTensorRows(builder.getDenseI64ArrayAttr(rows));
  properties.setTied(strings(tied));
  if (llvm::any_of(layouts, [](int64_t number) { return number != 0; }))
    properties.setTensorLayouts(builder.getDenseI64ArrayAttr(layouts));
  if (frozen)
    properties.setFrozen(builder.getUnitAttr());
  if (replicated)
    properties.setReplicated(builder.getUnitAttr());
  if (pinned)
    properties.setPrefetch(builder.getStringAttr(prefetch));
  return parser.parseOptionalAttrDict(result.attributes);
}

void ParameterOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << " : " << getType() << " init ";
  printer.printString(getInit());
  printer << " tensors [";
  llvm::interleaveComma(
      llvm::enumerate(getTensorNames().getAsValueRange<StringAttr>(),
                      getTensorRows()),
      printer, [&](auto tensor) {
        auto [index, name, rows] = tensor;
        printer.printString(name);
        printer << " = " << rows;
        ArrayRef<int64_t> layouts =
            getTensorLayouts().value_or(ArrayRef<int64_t>());
        if (layouts.empty() || layouts[2 * index] == 0)
          return;
        if (layouts[2 * index] == kTransposed)
          printer << " transposed";
        else
          printer << " interleaved " << layouts[2 * index] << " by "
                  << layouts[2 * index + 1];
      });
  printer << ']';
  if (!getTied().empty()) {
    printer << " tied [";
    llvm::interleaveComma(getTied().getAsValueRange<StringAttr>(), printer,
                          [&](StringRef name) { printer.printString(name); });
    printer << ']';
  }
  if (getFrozen())
    printer << " frozen";
  if (getReplicated())
    printer << " replicated";
  if (std::optional<StringRef> prefetch = getPrefetch()) {
    printer << " prefetch ";
    printer.printString(*prefetch);
  }
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getTypeAttrName(), getInitAttrName(),
       getTensorNamesAttrName(), getTensorRowsAttrName(), getTiedAttrName(),
       getTensorLayoutsAttrName(), getFrozenAttrName(), getReplicatedAttrName(),
       getPrefetchAttrName()});
}

//===----------------------------------------------------------------------===//
// GetOp
//===----------------------------------------------------------------------===//

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  auto parameter = symbolTables.lookupNearestSymbolFrom<ParameterOp>(
      *this, getParameterAttr());
  if (!parameter)
    return emitOpError("names no tfm.parameter: ") << getParameterAttr();
  // The encoding is the use's own: a parameter has none.
  if (withElementType(getType(), getType().getElementType()) !=
      parameter.getType()) {
    InFlightDiagnostic diagnostic = emitOpError("has type ")
                                    << getType() << " but the parameter is "
                                    << parameter.getType();
    diagnostic.attachNote(parameter.getLoc()) << "parameter declared here";
    return diagnostic;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// MicrobatchesOp
//===----------------------------------------------------------------------===//

// (%a : type in %input, ...) : (input types) -> (result types) attributes {...}
ParseResult MicrobatchesOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  auto parseInput = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back(),
                                        /*allowType=*/true) ||
                   parser.parseKeyword("in") ||
                   parser.parseOperand(inputs.emplace_back()));
  };
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  return failure(
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseInput) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(inputs, type.getInputs(), loc, result.operands) ||
      parser.addTypesToList(type.getResults(), result.types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments));
}

void MicrobatchesOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip_equal(getBody().getArguments(), getInputs()),
                        printer, [&](auto pair) {
                          printer.printRegionArgument(std::get<0>(pair));
                          printer << " in " << std::get<1>(pair);
                        });
  printer << ") : ";
  printer.printFunctionalType(*this);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
