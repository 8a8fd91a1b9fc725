//===- PlanRepeats.h - What repeats in a list -----------------------------===//
//
// Finds the layers of a plan without asking for their names: a list of keys is
// cut into pieces that follow each other once and runs of pieces that repeat.
// No IR.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_CONVERSION_PLANREPEATS_H
#define GTP_LIB_CONVERSION_PLANREPEATS_H

#include <cstddef>
#include <vector>

namespace gtp {

/// Entries [begin, begin + period * count): `count` pieces of `period` entries
/// with the same keys. A count of 1 is a stretch that does not repeat.
struct Stretch {
  size_t begin = 0;
  size_t period = 0;
  size_t count = 1;
};

/// Stretches that cover the list in order. The run that saves most entries is
/// taken first, then of what is left and right of it in the same way; of runs
/// that save the same, that of the shortest period, and of those the first.
/// Keys are not negative. Takes O(n log n).
std::vector<Stretch> findRepeats(const std::vector<int> &keys);

} // namespace gtp

#endif // GTP_LIB_CONVERSION_PLANREPEATS_H
