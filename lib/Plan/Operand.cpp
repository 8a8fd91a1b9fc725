//===- Operand.cpp - Sizes of what an operation touches -------------------===//

#include "gtp/Plan/Operand.h"

using namespace gtp::plan;

namespace {
/// Sums of a few checked values still fit 64 bits.
constexpr uint64_t limit = uint64_t(1) << 62;
} // namespace

uint64_t gtp::plan::dtypeSize(pb::DType type) {
  switch (type) {
  case pb::F32:
  case pb::I32:
    return 4;
  case pb::BF16:
  case pb::I16:
    return 2;
  case pb::F64:
  case pb::I64:
    return 8;
  case pb::U8:
    return 1;
  default:
    return 0;
  }
}

const char *gtp::plan::dtypeName(pb::DType type) {
  switch (type) {
  case pb::F32:
    return "f32";
  case pb::BF16:
    return "bf16";
  case pb::F64:
    return "f64";
  case pb::I32:
    return "i32";
  case pb::I64:
    return "i64";
  case pb::U8:
    return "u8";
  case pb::I16:
    return "i16";
  default:
    return "invalid";
  }
}

bool gtp::plan::isFloat(pb::DType type) {
  return type == pb::F32 || type == pb::BF16 || type == pb::F64;
}

std::optional<uint64_t> gtp::plan::checkedMul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product > limit)
    return std::nullopt;
  return product;
}

std::optional<uint64_t> gtp::plan::checkedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum) || sum > limit)
    return std::nullopt;
  return sum;
}

std::optional<uint64_t> gtp::plan::elementCount(const pb::Operand &operand) {
  // A zero must not hide that the rest does not fit.
  bool empty = false;
  std::optional<uint64_t> count = 1;
  for (uint64_t dim : operand.dims()) {
    empty |= dim == 0;
    if (dim != 0 && count)
      count = checkedMul(*count, dim);
  }
  if (count && empty)
    return 0;
  return count;
}

uint64_t gtp::plan::rowElements(const pb::Operand &operand) {
  return operand.dims().empty() ? 1 : operand.dims(operand.dims_size() - 1);
}

uint64_t gtp::plan::rowPitch(const pb::Operand &operand) {
  return operand.pitch() ? operand.pitch() : rowElements(operand);
}

bool gtp::plan::isDense(const pb::Operand &operand) {
  if (rowPitch(operand) == rowElements(operand))
    return true;
  std::optional<uint64_t> count = elementCount(operand);
  return count && *count == rowElements(operand);
}

std::optional<uint64_t> gtp::plan::byteExtent(const pb::Operand &operand) {
  uint64_t size = dtypeSize(operand.dtype());
  std::optional<uint64_t> count = elementCount(operand);
  if (!size || !count)
    return std::nullopt;
  if (*count == 0)
    return 0;
  uint64_t row = rowElements(operand);
  std::optional<uint64_t> extent =
      checkedMul(*count / row - 1, rowPitch(operand));
  if (extent)
    extent = checkedAdd(*extent, row);
  if (extent)
    extent = checkedMul(*extent, size);
  return extent;
}

std::string gtp::plan::describe(const pb::Operand &operand) {
  std::string text = dtypeName(operand.dtype());
  text += "[";
  for (int i = 0; i < operand.dims_size(); ++i)
    text += (i ? ", " : "") + std::to_string(operand.dims(i));
  text += "]";
  if (operand.pitch())
    text += " pitch " + std::to_string(operand.pitch());
  return text;
}
