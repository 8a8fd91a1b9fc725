//===- Operand.h - Sizes of what an operation touches ---------------------===//
//
// Arithmetic on `pb::Operand` that checker and backends share. Nothing here
// trusts the plan: a size that does not fit is no size.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_OPERAND_H
#define GTP_PLAN_OPERAND_H

#include "gtp/Plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gtp::plan {

/// Bytes an element; 0 for a type that does not exist.
uint64_t dtypeSize(pb::DType type);
/// "f32"; "invalid" for a type that does not exist.
const char *dtypeName(pb::DType type);
bool isFloat(pb::DType type);

/// Elements of the local shape, 1 for a scalar; none when the product of dims
/// exceeds 2^62.
std::optional<uint64_t> elementCount(const pb::Operand &operand);

/// Elements a row, which is the last dimension; 1 for a scalar.
uint64_t rowElements(const pb::Operand &operand);
/// Distance of two rows in elements.
uint64_t rowPitch(const pb::Operand &operand);
/// Whether rows follow each other without a gap.
bool isDense(const pb::Operand &operand);

/// Bytes from the first to behind the last element, gaps included; none when it
/// does not fit 2^62 or the type does not exist.
std::optional<uint64_t> byteExtent(const pb::Operand &operand);

/// "f32[4, 16, 8]", for messages.
std::string describe(const pb::Operand &operand);

/// a * b and a + b, none above 2^62.
std::optional<uint64_t> checkedMul(uint64_t a, uint64_t b);
std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b);

} // namespace gtp::plan

#endif // GTP_PLAN_OPERAND_H
