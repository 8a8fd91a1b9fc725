//===- NumberFormat.h - float32 to and from what buffers hold -------------===//

#ifndef GTP_RT_LIB_NUMBERFORMAT_H
#define GTP_RT_LIB_NUMBERFORMAT_H

#include "gtp/Plan/plan.pb.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace gtp::rt {

/// Whether buffers of parameters may have this type.
inline bool isParameterType(plan::pb::DType type) {
  return type == plan::pb::F32 || type == plan::pb::BF16;
}

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Nearest bfloat16, ties to even; a NaN stays one.
inline uint16_t toBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// `values` in `type`, a parameter's type.
inline std::vector<uint8_t> encode(const std::vector<float> &values,
                                   plan::pb::DType type) {
  bool isNarrow = type == plan::pb::BF16;
  std::vector<uint8_t> bytes(values.size() * (isNarrow ? 2 : 4));
  if (!isNarrow)
    std::memcpy(bytes.data(), values.data(), bytes.size());
  else
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t narrow = toBFloat16(values[i]);
      std::memcpy(&bytes[2 * i], &narrow, 2);
    }
  return bytes;
}

/// The reverse of `encode`.
inline std::vector<float> decode(const std::vector<uint8_t> &bytes,
                                 plan::pb::DType type) {
  bool isNarrow = type == plan::pb::BF16;
  std::vector<float> values(bytes.size() / (isNarrow ? 2 : 4));
  if (!isNarrow)
    std::memcpy(values.data(), bytes.data(), bytes.size());
  else
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t narrow;
      std::memcpy(&narrow, &bytes[2 * i], 2);
      values[i] = floatFromBits(uint32_t(narrow) << 16);
    }
  return values;
}

} // namespace gtp::rt

#endif // GTP_RT_LIB_NUMBERFORMAT_H
