//===- BFloat16.h - The upper half of a float32 ---------------------------===//

#ifndef GTP_SUPPORT_BFLOAT16_H
#define GTP_SUPPORT_BFLOAT16_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace gtp {

/// The bit pattern of a float32.
inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// The reverse of `bitsOf`.
inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// A number of 8 exponent and 8 significant bits, in two bytes. Arithmetic is
/// that of float, to which it converts; back is a rounding that the code must
/// ask for: to nearest, ties to even. A NaN stays one.
class BFloat16 {
public:
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t wide = bitsOf(value);
    uint32_t rounded = (wide + 0x7fff + (wide >> 16 & 1)) >> 16;
    bool isNan = (wide & 0x7fffffff) > 0x7f800000;
    bits = static_cast<uint16_t>(isNan ? (wide >> 16 | 0x40) : rounded);
  }
  /// Rounded once: what float cannot hold is made odd in its last bit first,
  /// which no second rounding takes for a tie.
  explicit BFloat16(double value) {
    auto near = static_cast<float>(value);
    uint32_t wide = bitsOf(near);
    auto back = static_cast<double>(near);
    if (back != value && (wide & 1) == 0 && std::isfinite(near))
      wide += (back < value) == (value > 0) ? 1 : -1U;
    *this = BFloat16(floatFromBits(wide));
  }

  static BFloat16 fromBits(uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }

  operator float() const { return floatFromBits(uint32_t(bits) << 16); }
  uint16_t raw() const { return bits; }

private:
  uint16_t bits;
};

/// A float32 in two halves of 16 bits, from which it comes back exactly: `high`
/// is the nearest bfloat16, `low` the difference of the bit patterns. Ties go
/// away from zero; to even, 2^16 + 1 floats would have one even `high`. A NaN
/// becomes the quiet one without payload.
struct SplitFloat {
  BFloat16 high;
  int16_t low;

  SplitFloat(BFloat16 high, int16_t low) : high(high), low(low) {}
  explicit SplitFloat(float value) {
    uint32_t bits = bitsOf(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
      bits = (bits & 0x80000000) | 0x7fc00000;
    high = BFloat16::fromBits(static_cast<uint16_t>((bits + 0x8000) >> 16));
    low = static_cast<int16_t>(bits & 0xffff);
  }
  /// The float32 that was split.
  float join() const {
    return floatFromBits((uint32_t(high.raw()) << 16) +
                         static_cast<uint32_t>(int32_t(low)));
  }
};

static_assert(sizeof(BFloat16) == 2, "arrays of it are what buffers hold");

} // namespace gtp

#endif // GTP_SUPPORT_BFLOAT16_H
