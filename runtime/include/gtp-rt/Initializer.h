//===- Initializer.h - Initial weights as a function of their names -------===//
//
// Element `i` of the checkpoint tensor `name` under `seed` is
//   x = Philox4x32-10(key = XXH64(name, seed), counter = (i / 2, 0)) as two
//   u64, u = ((x[0] >> 11) + 1) / 2^53 in (0, 1],  v = (x[1] >> 11) / 2^53 in
//   [0, 1), range * sqrt(-2 ln u) * (i even ? cos(2 pi v) : sin(2 pi v)),
// in double, rounded once to float32. No mesh, packing or order enters.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_INITIALIZER_H
#define GTP_RT_INITIALIZER_H

#include <cstdint>
#include <string_view>

namespace gtp::rt {

/// Elements [begin, begin + count) of the tensor `name`.
void initializeNormal(uint64_t seed, std::string_view name, double range,
                      uint64_t begin, uint64_t count, float *destination);

} // namespace gtp::rt

#endif // GTP_RT_INITIALIZER_H
