//===- Random.h - Seeded choices, the same everywhere ---------------------===//

#ifndef GTP_TEST_FUZZ_RANDOM_H
#define GTP_TEST_FUZZ_RANDOM_H

#include <cstddef>
#include <cstdint>
#include <random>

namespace gtp::fuzz {

/// The same choices with every standard library: no distributions.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  uint64_t bits() { return engine(); }
  /// In [0, bound); 0 for a bound of 0.
  size_t below(uint64_t bound) {
    return bound ? static_cast<size_t>(engine() % bound) : 0;
  }
  template <typename List>
  auto &pick(List &list) {
    return list[below(std::size(list))];
  }

private:
  std::mt19937_64 engine;
};

} // namespace gtp::fuzz

#endif // GTP_TEST_FUZZ_RANDOM_H
