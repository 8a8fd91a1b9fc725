//===- TfmExpect.cpp - What verifiers ask of operands and results ---------===//

#include "TfmExpect.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace gtp::tfm;

static std::string text(ArrayRef<int64_t> shape) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  stream << '[';
  llvm::interleaveComma(shape, stream);
  stream << ']';
  return result;
}

RankedTensorType gtp::tfm::typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Type gtp::tfm::elementOf(Value value) { return typeOf(value).getElementType(); }

Shape gtp::tfm::shapeOf(Value value) { return Shape(typeOf(value).getShape()); }

LogicalResult gtp::tfm::expectShape(Operation *op, StringRef name, Value value,
                                    ArrayRef<int64_t> expected) {
  if (typeOf(value).getShape() == expected)
    return success();
  return op->emitOpError() << "has " << name << " of shape "
                           << text(typeOf(value).getShape()) << ", expected "
                           << text(expected);
}

LogicalResult gtp::tfm::expectElement(Operation *op, StringRef name,
                                      Value value, Type expected) {
  if (elementOf(value) == expected)
    return success();
  return op->emitOpError() << "has " << name << " of element type "
                           << elementOf(value) << ", expected " << expected;
}

LogicalResult gtp::tfm::expectLike(Operation *op, StringRef name, Value value,
                                   Value model) {
  return failure(
      failed(expectShape(op, name, value, typeOf(model).getShape())) ||
      failed(expectElement(op, name, value, elementOf(model))));
}

LogicalResult gtp::tfm::expectRank(Operation *op, StringRef name, Value value,
                                   int64_t rank) {
  if (typeOf(value).getRank() == rank)
    return success();
  return op->emitOpError() << "has " << name << " of rank "
                           << typeOf(value).getRank() << ", expected " << rank;
}

LogicalResult gtp::tfm::expectRankAtLeast(Operation *op, StringRef name,
                                          Value value, int64_t rank) {
  if (typeOf(value).getRank() >= rank)
    return success();
  return op->emitOpError() << "has " << name << " of rank "
                           << typeOf(value).getRank() << ", expected at least "
                           << rank;
}

Shape gtp::tfm::withLast(Value value, int64_t last) {
  Shape shape = shapeOf(value);
  shape.back() = last;
  return shape;
}

Shape gtp::tfm::withAppended(Value value, int64_t last) {
  Shape shape = shapeOf(value);
  shape.push_back(last);
  return shape;
}

Type gtp::tfm::statisticsType(Value value) {
  return elementOf(value).isF64() ? elementOf(value)
                                  : Float32Type::get(value.getContext());
}
