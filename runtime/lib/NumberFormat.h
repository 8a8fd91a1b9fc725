//===- NumberFormat.h - float32 to and from what buffers hold -------------===//

#ifndef GTP_RT_LIB_NUMBERFORMAT_H
#define GTP_RT_LIB_NUMBERFORMAT_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/BFloat16.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace gtp::rt {

/// Whether buffers of parameters may have this type.
inline bool isParameterType(plan::pb::DType type) {
  return type == plan::pb::F32 || type == plan::pb::BF16;
}

/// `value` in `type`, a parameter's type, to `bytes`.
inline void encode(float value, plan::pb::DType type, uint8_t *bytes) {
  if (type == plan::pb::BF16) {
    BFloat16 narrow(value);
    std::memcpy(bytes, &narrow, sizeof narrow);
  } else {
    std::memcpy(bytes, &value, sizeof value);
  }
}

/// Master weights from the two halves of each.
inline std::vector<float> join(const std::vector<uint8_t> &published,
                               const std::vector<uint8_t> &remainders) {
  std::vector<float> masters(published.size() / 2);
  for (size_t i = 0; i < masters.size(); ++i) {
    BFloat16 high;
    int16_t low;
    std::memcpy(&high, &published[2 * i], 2);
    std::memcpy(&low, &remainders[2 * i], 2);
    masters[i] = SplitFloat(high, low).join();
  }
  return masters;
}

/// The values that `encode` wrote.
inline std::vector<float> decode(const std::vector<uint8_t> &bytes,
                                 plan::pb::DType type) {
  bool isNarrow = type == plan::pb::BF16;
  std::vector<float> values(bytes.size() / (isNarrow ? 2 : 4));
  if (!isNarrow)
    std::memcpy(values.data(), bytes.data(), bytes.size());
  else
    for (size_t i = 0; i < values.size(); ++i) {
      BFloat16 narrow;
      std::memcpy(&narrow, &bytes[2 * i], 2);
      values[i] = narrow;
    }
  return values;
}

} // namespace gtp::rt

#endif // GTP_RT_LIB_NUMBERFORMAT_H
