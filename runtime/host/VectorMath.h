//===- VectorMath.h - Inner loops that compilers vectorize ----------------===//
//
// Sums run in a fixed number of lanes: the compiler may not reorder a float sum
// by itself, and the order must not depend on what it chooses.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_VECTORMATH_H
#define GTP_RUNTIME_HOST_VECTORMATH_H

#include <cstdint>
#include <cstring>

namespace gtp::rt::host {

/// e^x to about 2 ulp, without a branch; 0 below -87, e^88 above 88.
inline float fastExp(float x) {
  // Round x / ln 2 to an integer n: adding 1.5 * 2^23 leaves n in the low bits.
  constexpr float magic = 12582912.0f;
  float bounded = x > 88.0f ? 88.0f : x;
  bounded = bounded < -87.0f ? -87.0f : bounded;
  float shifted = bounded * 1.44269504088896341f + magic;
  float n = shifted - magic;
  float r = bounded - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  // Cephes' polynomial on [-ln 2 / 2, ln 2 / 2].
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits - 0x4B400000u + 127u) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return x < -87.0f ? 0.0f : p * power;
}

constexpr uint64_t kLanes = 8;

/// Sum of term(i) over [0, count) in double.
template <typename Term>
inline double sumOf(uint64_t count, Term term) {
  double lanes[kLanes] = {};
  uint64_t whole = count / kLanes * kLanes;
  for (uint64_t i = 0; i < whole; i += kLanes)
    for (uint64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += term(i + lane);
  for (uint64_t i = whole; i < count; ++i)
    lanes[i - whole] += term(i);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

inline double sumSquares(const float *x, uint64_t count) {
  return sumOf(count, [=](uint64_t i) {
    return static_cast<double>(x[i]) * static_cast<double>(x[i]);
  });
}

inline double dot(const float *x, const float *y, uint64_t count) {
  return sumOf(count, [=](uint64_t i) {
    return static_cast<double>(x[i]) * static_cast<double>(y[i]);
  });
}

/// The largest element; `count` is at least one.
inline float maximum(const float *x, uint64_t count) {
  float lanes[kLanes];
  for (float &lane : lanes)
    lane = x[0];
  uint64_t whole = count / kLanes * kLanes;
  for (uint64_t i = 0; i < whole; i += kLanes)
    for (uint64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  for (uint64_t i = whole; i < count; ++i)
    lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  for (float lane : lanes)
    lanes[0] = lane > lanes[0] ? lane : lanes[0];
  return lanes[0];
}

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_VECTORMATH_H
