//===- PlanRepeats.cpp - What repeats in a list ---------------------------===//

#include "PlanRepeats.h"

using namespace gtp;

/// A run that saves fewer entries is not worth a name of its own.
static constexpr size_t kLeastSaved = 4;

static void cut(const std::vector<int> &keys, size_t begin, size_t end,
                std::vector<Stretch> &stretches) {
  if (begin == end)
    return;
  Stretch best{begin, end - begin, 1};
  size_t saved = kLeastSaved - 1;
  for (size_t period = 1; period <= (end - begin) / 2; ++period) {
    // Entries that equal the one a period later, as long as they last.
    size_t alike = 0;
    for (size_t i = begin; i + period <= end; ++i) {
      bool same = i + period < end && keys[i] == keys[i + period];
      if (same) {
        ++alike;
        continue;
      }
      size_t pieces = alike / period;
      if (pieces * period > saved) {
        saved = pieces * period;
        best = {i - alike, period, pieces + 1};
      }
      alike = 0;
    }
  }
  if (best.count == 1) {
    stretches.push_back(best);
    return;
  }
  cut(keys, begin, best.begin, stretches);
  stretches.push_back(best);
  cut(keys, best.begin + best.period * best.count, end, stretches);
}

std::vector<Stretch> gtp::findRepeats(const std::vector<int> &keys) {
  std::vector<Stretch> stretches;
  cut(keys, 0, keys.size(), stretches);
  return stretches;
}
