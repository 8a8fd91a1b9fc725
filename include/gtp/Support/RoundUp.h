//===- RoundUp.h - Multiples of an alignment ------------------------------===//

#ifndef GTP_SUPPORT_ROUNDUP_H
#define GTP_SUPPORT_ROUNDUP_H

#include <cstdint>

namespace gtp {

/// The smallest multiple of `unit`, above 0, that is not below `value`. Wraps
/// only where the result does not fit.
constexpr uint64_t roundUp(uint64_t value, uint64_t unit) {
  return value + (unit - value % unit) % unit;
}

} // namespace gtp

#endif // GTP_SUPPORT_ROUNDUP_H
