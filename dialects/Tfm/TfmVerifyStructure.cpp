//===- TfmVerifyStructure.cpp - What programs are put together with -------===//

#include "TfmExpect.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace gtp::tfm;

/// Two numbers a tensor; only matrices are transposed, and only rows that are
/// so many groups of so many parts are interleaved.
static LogicalResult verifyTensorLayouts(ParameterOp op) {
  std::optional<ArrayRef<int64_t>> layouts = op.getTensorLayouts();
  if (!layouts)
    return success();
  if (layouts->size() != 2 * op.getTensorRows().size())
    return op.emitOpError("has ")
           << layouts->size() << " numbers for the layouts of "
           << op.getTensorRows().size() << " checkpoint tensors, expected two "
           << "each";
  for (auto [index, rows] : llvm::enumerate(op.getTensorRows())) {
    int64_t groups = (*layouts)[2 * index], parts = (*layouts)[2 * index + 1];
    if (groups == 0 && parts == 0)
      continue;
    if (groups == ParameterOp::kTransposed && parts == 0) {
      if (op.getType().getRank() == 2)
        continue;
      return op.emitOpError("has a transposed checkpoint tensor but rank ")
             << op.getType().getRank();
    }
    if (groups < 1 || parts < 1 || rows % groups != 0 ||
        rows / groups % parts != 0)
      return op.emitOpError("has a checkpoint tensor of ")
             << rows << " rows interleaved " << groups << " by " << parts
             << ", expected a divisor of them";
  }
  return success();
}

LogicalResult ParameterOp::verify() {
  RankedTensorType type = getType();
  if (type.getEncoding())
    return emitOpError("has a placement in its type; a parameter is logical");
  if (type.getRank() != 1 && type.getRank() != 2)
    return emitOpError("has rank ")
           << type.getRank() << ", expected 1 or 2 ([rows] or [rows, columns])";
  if (type.getNumElements() == 0)
    return emitOpError("has no elements");
  if (!llvm::is_contained({"normal", "ones", "zeros"}, getInit()))
    return emitOpError("has init \"")
           << getInit() << "\", expected \"normal\", \"ones\" or \"zeros\"";
  if (getTensorNames().size() != getTensorRows().size())
    return emitOpError("has ")
           << getTensorNames().size() << " checkpoint tensors but "
           << getTensorRows().size() << " row counts";
  int64_t rows = 0;
  for (int64_t count : getTensorRows()) {
    if (count <= 0 || count > type.getDimSize(0))
      return emitOpError("has a checkpoint tensor of ")
             << count << " rows, expected 1 to " << type.getDimSize(0);
    rows += count;
  }
  if (rows != type.getDimSize(0))
    return emitOpError("has checkpoint tensors of ")
           << rows << " rows in all, expected " << type.getDimSize(0);
  if (failed(verifyTensorLayouts(*this)))
    return failure();
  if (std::optional<StringRef> prefetch = getPrefetch()) {
    uint32_t distance = 0;
    bool counts = !prefetch->getAsInteger(10, distance) && distance > 0;
    if (*prefetch != "off" && *prefetch != "auto" && !counts)
      return emitOpError("has prefetch \"")
             << *prefetch
             << "\", expected \"off\", \"auto\" or a distance of \"1\" or more";
  }
  llvm::StringSet<> seen;
  for (ArrayAttr names : {getTensorNames(), getTied()})
    for (StringRef name : names.getAsValueRange<StringAttr>()) {
      if (!llvm::json::isUTF8(name))
        return emitOpError("names a checkpoint tensor \"")
               << llvm::json::fixUTF8(name)
               << "\", whose bytes are not UTF-8, as safetensors' names are";
      if (!seen.insert(name).second)
        return emitOpError("names checkpoint tensor \"") << name << "\" twice";
    }
  return success();
}

LogicalResult MicrobatchesOp::verify() {
  if (getInputs().empty())
    return emitOpError("has no input, so no number of microbatches");
  if (getBody().getNumArguments() != getInputs().size())
    return emitOpError("has ")
           << getBody().getNumArguments() << " body arguments, expected "
           << getInputs().size() << ", one an input";
  for (auto [index, input, argument] :
       llvm::enumerate(getInputs(), getBody().getArguments())) {
    if (typeOf(input).getRank() == 0)
      return emitOpError("has input ") << index << " without a dimension";
    int64_t count = typeOf(input).getDimSize(0);
    int64_t expected = typeOf(getInputs().front()).getDimSize(0);
    if (count != expected)
      return emitOpError("has input ")
             << index << " of " << count << " microbatches, expected "
             << expected << " as input 0";
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getShape() != typeOf(input).getShape().drop_front() ||
        type.getElementType() != elementOf(input))
      return emitOpError("has body argument ")
             << index << " of type " << argument.getType()
             << ", expected one microbatch of " << input.getType();
  }
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield)
    return emitOpError("expects its body to end in tfm.yield");
  if (yield.getOperandTypes() != getResultTypes()) {
    InFlightDiagnostic diagnostic =
        emitOpError("has results whose types are not those yielded");
    diagnostic.attachNote(yield.getLoc()) << "yielded here";
    return diagnostic;
  }
  return success();
}
