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

/// `values` in `type`, a parameter's type.
inline std::vector<uint8_t> encode(const std::vector<float> &values,
                                   plan::pb::DType type) {
  bool isNarrow = type == plan::pb::BF16;
  std::vector<uint8_t> bytes(values.size() * (isNarrow ? 2 : 4));
  if (!isNarrow)
    std::memcpy(bytes.data(), values.data(), bytes.size());
  else
    for (size_t i = 0; i < values.size(); ++i) {
      BFloat16 narrow(values[i]);
      std::memcpy(&bytes[2 * i], &narrow, 2);
    }
  return bytes;
}

/// The compute copy of master weights that are apart: rounded as the update
/// kernels round what they publish.
inline std::vector<uint8_t> publish(std::vector<float> masters,
                                    plan::pb::DType type) {
  if (type == plan::pb::BF16)
    for (float &value : masters)
      value = SplitFloat(value).high;
  return encode(masters, type);
}

/// What `publish` leaves of each in bfloat16.
inline std::vector<uint8_t> remainders(const std::vector<float> &masters) {
  std::vector<uint8_t> bytes(masters.size() * 2);
  for (size_t i = 0; i < masters.size(); ++i) {
    int16_t low = SplitFloat(masters[i]).low;
    std::memcpy(&bytes[2 * i], &low, 2);
  }
  return bytes;
}

/// Master weights of what `publish` and `remainders` made.
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

/// The reverse of `encode`.
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
