//===- CallSite.cpp - A plan's kernel call as a backend sees it -----------===//

#include "CallSite.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

Shape gtp::rt::shapeOf(const pb::Operand &operand) {
  Shape shape;
  shape.columns = rowElements(operand);
  shape.rows =
      shape.columns ? elementCount(operand).value_or(0) / shape.columns : 0;
  shape.pitch = rowPitch(operand);
  shape.elementBytes = dtypeSize(operand.dtype());
  return shape;
}

std::string CallSite::text(size_t index) const {
  const OperandSpec *operandKind = operandSpec(spec, index, count());
  return "'" + std::string(operandKind ? operandKind->name : "?") + "' " +
         describe(operand(index));
}
