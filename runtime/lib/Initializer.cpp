//===- Initializer.cpp - Initial weights as a function of their names -----===//

#include "gtp-rt/Initializer.h"
#include "gtp-rt/Philox.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>

using namespace gtp;

void gtp::rt::initializeNormal(uint64_t seed, std::string_view name,
                               double range, uint64_t begin, uint64_t count,
                               float *destination) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  constexpr double kUnit = 0x1p-53;
  uint64_t key = XXH64(name.data(), name.size(), seed);
  uint64_t end = begin + count;
  for (uint64_t index = begin; index < end;) {
    auto [first, second] = philox2x64(key, index / 2, 0);
    // Never zero, so that the logarithm is finite.
    double u = double((first >> 11) + 1) * kUnit;
    double v = double(second >> 11) * kUnit;
    double radius = range * std::sqrt(-2 * std::log(u));
    if (index % 2 == 0) {
      *destination++ = float(radius * std::cos(kTwoPi * v));
      if (++index == end)
        return;
    }
    *destination++ = float(radius * std::sin(kTwoPi * v));
    ++index;
  }
}
