//===- Philox.h - The counter-based random numbers of a run ---------------===//
//
// Philox4x32-10 as Random123 defines it (Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC11). A number is a pure function of its key
// and counter, so that no result depends on the mesh or on evaluation order.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_PHILOX_H
#define GTP_RT_PHILOX_H

#include <array>
#include <cstdint>

namespace gtp::rt {

using PhiloxBlock = std::array<uint32_t, 4>;

/// Ten rounds over `counter` with `key`, words in Random123's order.
inline PhiloxBlock philox4x32(PhiloxBlock counter,
                              std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t even = uint64_t(0xD2511F53) * counter[0];
    uint64_t odd = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(odd >> 32) ^ counter[1] ^ key[0], uint32_t(odd),
               uint32_t(even >> 32) ^ counter[3] ^ key[1], uint32_t(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The two u64 of a block whose key and counter are u64s, low words first.
inline std::array<uint64_t, 2> philox2x64(uint64_t key, uint64_t counterLow,
                                          uint64_t counterHigh) {
  PhiloxBlock block =
      philox4x32({uint32_t(counterLow), uint32_t(counterLow >> 32),
                  uint32_t(counterHigh), uint32_t(counterHigh >> 32)},
                 {uint32_t(key), uint32_t(key >> 32)});
  return {block[0] | uint64_t(block[1]) << 32, block[2] | uint64_t(block[3])
                                                              << 32};
}

} // namespace gtp::rt

#endif // GTP_RT_PHILOX_H
