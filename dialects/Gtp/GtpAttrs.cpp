//===- GtpAttrs.cpp - Syntax and verification of meshes and placements ----===//

#include "dialects/Gtp/GtpDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gtp::dist;

#include "dialects/Gtp/GtpEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Gtp/GtpAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Gtp/GtpTypes.cpp.inc"

void GtpDialect::registerAttributesAndTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Gtp/GtpAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Gtp/GtpTypes.cpp.inc"
      >();
}

using EmitError = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Lists of names
//===----------------------------------------------------------------------===//

static ParseResult parseName(AsmParser &parser, StringAttr &name) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  name = parser.getBuilder().getStringAttr(text);
  return success();
}

static void printName(AsmPrinter &printer, StringAttr name) {
  printer.printKeywordOrString(name.getValue());
}

/// name = number
static ParseResult parseSized(AsmParser &parser,
                              SmallVectorImpl<StringAttr> &names,
                              SmallVectorImpl<int64_t> &sizes) {
  return failure(parseName(parser, names.emplace_back()) ||
                 parser.parseEqual() ||
                 parser.parseInteger(sizes.emplace_back()));
}

static void printSized(AsmPrinter &printer, ArrayRef<StringAttr> names,
                       ArrayRef<int64_t> sizes) {
  llvm::interleaveComma(llvm::zip_equal(names, sizes), printer, [&](auto item) {
    printName(printer, std::get<0>(item));
    printer << " = " << std::get<1>(item);
  });
}

/// (dp, gtp)
static ParseResult parseAxisList(AsmParser &parser,
                                 SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
    return parseName(parser, axes.emplace_back());
  });
}

static void printAxisList(AsmPrinter &printer, ArrayRef<StringAttr> axes) {
  printer << '(';
  llvm::interleaveComma(axes, printer,
                        [&](StringAttr axis) { printName(printer, axis); });
  printer << ')';
}

std::string gtp::dist::axesText(ArrayRef<StringAttr> axes) {
  std::string text = "(";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(axes, os,
                        [&](StringAttr axis) { os << axis.getValue(); });
  return text + ")";
}

/// The first name that occurs twice; null when none does.
static StringAttr findRepeated(ArrayRef<StringAttr> names) {
  for (auto [index, name] : llvm::enumerate(names))
    if (llvm::is_contained(names.take_front(index), name))
      return name;
  return {};
}

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> degrees;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        return parseSized(parser, names, degrees);
      }))
    return {};
  return parser.getChecked<MeshAttr>(parser.getContext(), names, degrees);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printSized(printer, getNames(), getDegrees());
  printer << '>';
}

LogicalResult MeshAttr::verify(EmitError emitError, ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> degrees) {
  if (names.size() != degrees.size())
    return emitError() << "mesh has " << names.size() << " axes but "
                       << degrees.size() << " degrees";
  // C1
  if (StringAttr name = findRepeated(names))
    return emitError() << "mesh names axis " << name << " twice";
  // C2
  constexpr int64_t kMaxRanks = int64_t(1) << 24;
  int64_t ranks = 1;
  for (auto [name, degree] : llvm::zip_equal(names, degrees)) {
    if (degree < 1)
      return emitError() << "axis " << name << " has degree " << degree
                         << ", expected at least 1";
    if (degree > kMaxRanks / ranks)
      return emitError() << "mesh has more than " << kMaxRanks << " ranks";
    ranks *= degree;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DimAttr
//===----------------------------------------------------------------------===//

/// size {q = 64, k = 16} cut (tp) stored (gtp) granule 4
static DimAttr parseDim(AsmParser &parser) {
  int64_t size = 0, granule = 1;
  SmallVector<StringAttr> segmentNames, computeAxes, storageAxes;
  SmallVector<int64_t> segmentSizes;
  if (parser.parseInteger(size))
    return {};
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalBraces, [&] {
        return parseSized(parser, segmentNames, segmentSizes);
      }))
    return {};
  if (succeeded(parser.parseOptionalKeyword("cut")) &&
      parseAxisList(parser, computeAxes))
    return {};
  if (succeeded(parser.parseOptionalKeyword("stored"))) {
    if (parseAxisList(parser, storageAxes))
      return {};
    if (succeeded(parser.parseOptionalKeyword("granule")) &&
        parser.parseInteger(granule))
      return {};
  }
  return parser.getChecked<DimAttr>(parser.getContext(), size, segmentNames,
                                    segmentSizes, computeAxes, storageAxes,
                                    granule);
}

static void printDim(AsmPrinter &printer, DimAttr dim) {
  printer << dim.getSize();
  if (!dim.getSegmentNames().empty()) {
    printer << " {";
    printSized(printer, dim.getSegmentNames(), dim.getSegmentSizes());
    printer << '}';
  }
  if (!dim.getComputeAxes().empty()) {
    printer << " cut ";
    printAxisList(printer, dim.getComputeAxes());
  }
  if (!dim.getStorageAxes().empty()) {
    printer << " stored ";
    printAxisList(printer, dim.getStorageAxes());
    if (dim.getGranule() != 1)
      printer << " granule " << dim.getGranule();
  }
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  DimAttr dim = parseDim(parser);
  if (!dim || parser.parseGreater())
    return {};
  return dim;
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

LogicalResult DimAttr::verify(EmitError emitError, int64_t size,
                              ArrayRef<StringAttr> segmentNames,
                              ArrayRef<int64_t> segmentSizes,
                              ArrayRef<StringAttr> computeAxes,
                              ArrayRef<StringAttr> storageAxes,
                              int64_t granule) {
  // C1
  if (size < 1 || size > int64_t(1) << 40)
    return emitError() << "dimension has size " << size
                       << ", expected 1 to 2^40";
  if (granule < 1 || granule > int64_t(1) << 20)
    return emitError() << "dimension has granule " << granule
                       << ", expected 1 to 2^20";
  // C2
  if (segmentNames.size() != segmentSizes.size())
    return emitError() << "dimension has " << segmentNames.size()
                       << " segment names but " << segmentSizes.size()
                       << " segment sizes";
  if (StringAttr name = findRepeated(segmentNames))
    return emitError() << "dimension names segment " << name << " twice";
  int64_t sum = 0;
  for (auto [name, segment] : llvm::zip_equal(segmentNames, segmentSizes)) {
    if (segment < 1 || segment > size)
      return emitError() << "segment " << name << " has size " << segment
                         << ", expected 1 to the dimension's " << size;
    sum += segment;
  }
  if (!segmentNames.empty() && sum != size)
    return emitError() << "segments sum to " << sum
                       << " but the dimension has size " << size;
  // C3
  SmallVector<StringAttr> axes(computeAxes);
  llvm::append_range(axes, storageAxes);
  if (StringAttr axis = findRepeated(axes))
    return emitError() << "axis " << axis << " cuts a dimension twice";
  // C4
  if (granule != 1 && storageAxes.empty())
    return emitError() << "granule " << granule << " without storage axes";
  return success();
}

//===----------------------------------------------------------------------===//
// PlacementAttr
//===----------------------------------------------------------------------===//

// <#mesh, [dim, ...], sum (dp, gtp) in f32>
Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  MeshAttr mesh;
  SmallVector<DimAttr> dims;
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&]() -> ParseResult {
                                       DimAttr dim = parseDim(parser);
                                       dims.push_back(dim);
                                       return success(dim != nullptr);
                                     }))
    return {};
  PartialKind kind = PartialKind::None;
  SmallVector<StringAttr> axes;
  Type accumulation;
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    std::optional<PartialKind> parsed = symbolizePartialKind(keyword);
    if (!parsed || *parsed == PartialKind::None) {
      parser.emitError(loc, "expected sum or max, found ") << keyword;
      return {};
    }
    kind = *parsed;
    if (parseAxisList(parser, axes) || parser.parseKeyword("in") ||
        parser.parseType(accumulation))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PlacementAttr>(parser.getContext(), mesh, dims, kind,
                                          axes, accumulation);
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer,
                        [&](DimAttr dim) { printDim(printer, dim); });
  printer << ']';
  if (isPartial()) {
    printer << ", " << stringifyPartialKind(getPartialKind()) << ' ';
    printAxisList(printer, getPartialAxes());
    printer << " in " << getAccumulation();
  }
  printer << '>';
}

LogicalResult PlacementAttr::verify(EmitError emitError, MeshAttr mesh,
                                    ArrayRef<DimAttr> dims, PartialKind kind,
                                    ArrayRef<StringAttr> partialAxes,
                                    Type accumulation) {
  if (!mesh)
    return emitError() << "placement has no mesh";
  SmallVector<StringAttr> axes;
  for (DimAttr dim : dims)
    llvm::append_range(axes, dim.axes());
  llvm::append_range(axes, partialAxes);
  // C1
  for (StringAttr axis : axes) {
    if (!mesh.has(axis))
      return emitError() << "axis " << axis << " is not one of " << mesh;
    if (mesh.degree(axis) == 1)
      return emitError() << "axis " << axis
                         << " has degree 1 and cuts nothing: leave it out";
  }
  // C2
  if (StringAttr axis = findRepeated(axes))
    return emitError() << "axis " << axis << " is used twice in a placement";
  // C3
  if ((kind == PartialKind::None) != partialAxes.empty())
    return emitError() << "partial " << stringifyPartialKind(kind) << " over "
                       << partialAxes.size() << " axes";
  if (mesh.sorted(partialAxes) != SmallVector<StringAttr>(partialAxes))
    return emitError() << "partial axes are not in the order of " << mesh;
  if (kind == PartialKind::None)
    return success();
  if (!accumulation || !(accumulation.isF32() || accumulation.isF64() ||
                         accumulation.isSignlessInteger(64)))
    return emitError() << "accumulation type is " << accumulation
                       << ", expected i64, f32 or f64";
  return success();
}

LogicalResult PlacementAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                            Type elementType,
                                            EmitError emitError) const {
  // After an error in the type the parser asks all the same.
  if (!elementType)
    return failure();
  // E1
  if (shape.size() != getDims().size())
    return emitError() << "placement has " << getDims().size()
                       << " dimensions but the tensor has " << shape.size();
  // E2
  SmallVector<int64_t> logical = logicalShape(), local = localShape();
  if (shape != ArrayRef<int64_t>(logical) &&
      shape != ArrayRef<int64_t>(local)) {
    InFlightDiagnostic diagnostic = emitError() << "tensor has shape [";
    llvm::interleaveComma(shape, diagnostic);
    diagnostic << "], expected the placement's logical shape [";
    llvm::interleaveComma(logical, diagnostic);
    diagnostic << "] or that of a rank, [";
    llvm::interleaveComma(local, diagnostic);
    return diagnostic << ']';
  }
  // E3
  if (!isPartial())
    return success();
  if (!elementType.isIntOrFloat() ||
      isa<IntegerType>(elementType) != isa<IntegerType>(getAccumulation()) ||
      elementType.getIntOrFloatBitWidth() >
          getAccumulation().getIntOrFloatBitWidth())
    return emitError() << "partial tensor of " << elementType
                       << " cannot accumulate in " << getAccumulation();
  return success();
}
