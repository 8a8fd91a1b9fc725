//===- PlanAttrs.cpp - Attributes of the plan dialect ---------------------===//

#include "dialects/Plan/PlanDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace gtp::planir;
using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

int64_t MeshAttr::getRanks() const {
  int64_t ranks = 1;
  for (int64_t degree : getDegrees())
    ranks *= degree;
  return ranks;
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> degrees) {
  if (names.size() != degrees.size())
    return emitError() << names.size() << " axes but " << degrees.size()
                       << " degrees";
  int64_t ranks = 1;
  for (auto [name, degree] : llvm::zip(names, degrees)) {
    if (degree < 1)
      return emitError() << "axis " << name << " has degree " << degree
                         << ", expected 1 or more";
    if (llvm::MulOverflow(ranks, degree, ranks) || ranks > (int64_t(1) << 31))
      return emitError() << "mesh has more than 2^31 ranks";
    if (llvm::count(names, name) != 1)
      return emitError() << "axis " << name << " appears more than once";
  }
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> degrees;
  auto axis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() ||
        parser.parseInteger(degrees.emplace_back()))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, axis))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    names, degrees);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(llvm::zip(getNames(), getDegrees()), printer,
                        [&](auto axis) {
                          auto [name, degree] = axis;
                          printer.printKeywordOrString(name);
                          printer << " = " << degree;
                        });
  printer << '>';
}

//===----------------------------------------------------------------------===//
// View
//===----------------------------------------------------------------------===//

int64_t ViewAttr::getElementBytes() const { return elementBytes(getDtype()); }

int64_t ViewAttr::getElements() const {
  int64_t elements = 1;
  for (int64_t dim : getDims())
    elements *= dim;
  return elements;
}

bool ViewAttr::isDense() const {
  return getPitch() == 0 || getDims().empty() ||
         getPitch() == getDims().back() || getElements() == getDims().back();
}

int64_t ViewAttr::getExtent() const {
  int64_t elements = getElements();
  if (elements != 0 && !isDense()) {
    int64_t columns = getDims().back();
    elements = (elements / columns - 1) * getPitch() + columns;
  }
  return elements * getElementBytes();
}

ViewAttr ViewAttr::withAccumulate(bool accumulate) const {
  return get(getContext(), getDtype(), getDims(), getOffset(), getPitch(),
             getIterationStride(), getRankStrides(), accumulate);
}

bool ViewAttr::samePlace(ViewAttr other) const {
  return getOffset() == other.getOffset() && getExtent() == other.getExtent() &&
         getPitch() == other.getPitch() &&
         getIterationStride() == other.getIterationStride() &&
         getRankStrides() == other.getRankStrides();
}

LogicalResult ViewAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               Type dtype, ArrayRef<int64_t> dims,
                               int64_t offset, int64_t pitch,
                               int64_t iterationStride,
                               ArrayRef<int64_t> rankStrides, bool) {
  int64_t bytes = elementBytes(dtype);
  if (bytes == 0)
    return emitError() << "element type " << dtype
                       << ", expected f32, bf16, f64, i32, i64, i16 or i8";
  int64_t elements = 1;
  for (int64_t dim : dims)
    if (dim < 0 || llvm::MulOverflow(elements, dim, elements) ||
        elements > (int64_t(1) << 56))
      return emitError() << "dimension " << dim
                         << " is negative or makes the view too large";
  if (offset < 0 || iterationStride < 0)
    return emitError() << "offset and iteration stride may not be negative";
  int64_t span;
  if (pitch != 0 &&
      (dims.empty() || pitch < dims.back() ||
       llvm::MulOverflow(std::max<int64_t>(elements, 1), pitch, span) ||
       span > (int64_t(1) << 56)))
    return emitError() << "pitch " << pitch
                       << " must be at least the last dimension";
  if (rankStrides.size() % 2 != 0)
    return emitError() << "rank strides are pairs of axis and stride";
  return success();
}

Attribute ViewAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Type dtype;
  SmallVector<int64_t> dims, rankStrides;
  int64_t offset = 0, pitch = 0, iteration = 0;
  bool accumulate = false;
  if (parser.parseLess() || parser.parseType(dtype) || parser.parseLSquare())
    return {};
  if (failed(parser.parseOptionalRSquare()))
    if (parser.parseDimensionList(dims, /*allowDynamic=*/false,
                                  /*withTrailingX=*/false) ||
        parser.parseRSquare())
      return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    SMLoc keyLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key))
      return {};
    ParseResult parsed = success();
    if (key == "offset")
      parsed = parser.parseInteger(offset);
    else if (key == "pitch")
      parsed = parser.parseInteger(pitch);
    else if (key == "iteration")
      parsed = parser.parseInteger(iteration);
    else if (key == "ranks")
      parsed =
          parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
            return parser.parseInteger(rankStrides.emplace_back());
          });
    else if (key == "accumulate")
      accumulate = true;
    else
      parsed = parser.emitError(keyLoc)
               << "unknown field '" << key
               << "', expected offset, pitch, iteration, ranks or accumulate";
    if (failed(parsed))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    dtype, dims, offset, pitch, iteration, rankStrides,
                    accumulate);
}

void ViewAttr::print(AsmPrinter &printer) const {
  printer << '<' << getDtype() << '[';
  llvm::interleave(getDims(), printer, "x");
  printer << ']';
  if (getOffset())
    printer << ", offset " << getOffset();
  if (getPitch())
    printer << ", pitch " << getPitch();
  if (getIterationStride())
    printer << ", iteration " << getIterationStride();
  if (!getRankStrides().empty()) {
    printer << ", ranks [";
    llvm::interleaveComma(getRankStrides(), printer);
    printer << ']';
  }
  if (getAccumulate())
    printer << ", accumulate";
  printer << '>';
}
