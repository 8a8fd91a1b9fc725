//===- PlanRepeats.cpp - What repeats in a list ---------------------------===//
//
// Runs are found by the method of Main and Lorentz: those that cross the middle
// of a list from how far each half agrees with itself and the other, those that
// do not in each half. That is O(n log n); a list of n entries has fewer than n
// runs.
//
//===----------------------------------------------------------------------===//

#include "PlanRepeats.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

using namespace gtp;

/// A run that saves fewer entries is not worth a name of its own.
static constexpr size_t kLeastSaved = 4;

namespace {

using Keys = std::vector<int>;

/// Entries [begin, end), of which each but the last `period` equals the one a
/// period later.
struct Run {
  size_t begin;
  size_t end;
  size_t period;

  size_t count() const { return (end - begin) / period; }
  /// Entries that need not be written; 0 of what does not repeat.
  size_t saved() const {
    return end - begin < period ? 0 : (count() - 1) * period;
  }
};

/// For `std::priority_queue`, whose top is the largest.
struct IsWorse {
  bool operator()(const Run &a, const Run &b) const {
    return std::tuple(a.saved(), b.period, b.begin) <
           std::tuple(b.saved(), a.period, a.begin);
  }
};

} // namespace

/// For each place, how many entries from there on equal those at the start.
static std::vector<size_t> prefixLengths(const Keys &keys) {
  std::vector<size_t> lengths(keys.size(), 0);
  // [begin, end) is the known stretch like the start that reaches furthest.
  size_t begin = 0, end = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    size_t length = i < end ? std::min(end - i, lengths[i - begin]) : 0;
    while (i + length < keys.size() && keys[length] == keys[i + length])
      ++length;
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
    lengths[i] = length;
  }
  return lengths;
}

/// `prefixLengths` of `text` against the start of `pattern`.
static std::vector<size_t> matchLengths(const Keys &pattern, const Keys &text) {
  Keys both = pattern;
  both.push_back(-1); // equals no key
  both.insert(both.end(), text.begin(), text.end());
  std::vector<size_t> lengths = prefixLengths(both);
  return {lengths.begin() + static_cast<ptrdiff_t>(pattern.size() + 1),
          lengths.end()};
}

/// Adds the runs of `left` and `right`, one behind the other, that reach into
/// `right` and have a whole period in `left`. `emit(before, after, period)` is
/// told how many entries of the run are in each.
template <typename Emit>
static void crossingRuns(const Keys &left, const Keys &right, Emit emit) {
  Keys backwards(left.rbegin(), left.rend());
  Keys whole = left;
  whole.insert(whole.end(), right.begin(), right.end());
  // How far the end of `left` is like what is a period before it, and what
  // starts a period before `right` like `right`.
  std::vector<size_t> before = prefixLengths(backwards);
  std::vector<size_t> after = matchLengths(right, whole);
  for (size_t period = 1; period <= left.size(); ++period) {
    size_t back = period < left.size() ? before[period] : 0;
    size_t ahead = after[left.size() - period];
    if (back + ahead >= period)
      emit(period + back, ahead, period);
  }
}

/// Adds the runs of `keys`' entries [begin, end), and some that are pieces of
/// longer ones.
static void findRuns(const Keys &keys, size_t begin, size_t end,
                     std::vector<Run> &runs) {
  if (end - begin < 2)
    return;
  size_t middle = begin + (end - begin) / 2;
  findRuns(keys, begin, middle, runs);
  findRuns(keys, middle, end, runs);
  auto at = [&](size_t i) { return keys.begin() + static_cast<ptrdiff_t>(i); };
  Keys left(at(begin), at(middle)), right(at(middle), at(end));
  crossingRuns(left, right, [&](size_t before, size_t after, size_t period) {
    runs.push_back({middle - before, middle + after, period});
  });
  // The same backwards: a whole period in the right half.
  std::reverse(left.begin(), left.end());
  std::reverse(right.begin(), right.end());
  crossingRuns(right, left, [&](size_t after, size_t before, size_t period) {
    runs.push_back({middle - before, middle + after, period});
  });
}

/// The runs of `keys`, each once, with its shortest period.
static std::vector<Run> allRuns(const Keys &keys) {
  std::vector<Run> runs;
  findRuns(keys, 0, keys.size(), runs);
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const Run &run) {
                              auto goesOn = [&](size_t i) {
                                return keys[i] == keys[i + run.period];
                              };
                              return (run.begin > 0 && goesOn(run.begin - 1)) ||
                                     (run.end < keys.size() &&
                                      goesOn(run.end - run.period));
                            }),
             runs.end());
  std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) {
    return std::tie(a.begin, a.end, a.period) <
           std::tie(b.begin, b.end, b.period);
  });
  runs.erase(std::unique(runs.begin(), runs.end(),
                         [](const Run &a, const Run &b) {
                           return a.begin == b.begin && a.end == b.end;
                         }),
             runs.end());
  return runs;
}

std::vector<Stretch> gtp::findRepeats(const std::vector<int> &keys) {
  std::priority_queue<Run, std::vector<Run>, IsWorse> candidates;
  auto consider = [&](const Run &run) {
    if (run.saved() >= kLeastSaved)
      candidates.push(run);
  };
  for (const Run &run : allRuns(keys))
    consider(run);

  // By where they begin; no two share an entry.
  std::map<size_t, Stretch> taken;
  auto endOf = [](const Stretch &stretch) {
    return stretch.begin + stretch.period * stretch.count;
  };
  while (!candidates.empty()) {
    Run run = candidates.top();
    candidates.pop();
    // What is left of it between those taken before.
    size_t free = run.begin;
    bool whole = true;
    auto next = taken.upper_bound(run.begin);
    if (next != taken.begin() && endOf(std::prev(next)->second) > run.begin)
      --next;
    for (; next != taken.end() && next->first < run.end; ++next) {
      whole = false;
      if (next->first > free)
        consider({free, next->first, run.period});
      free = endOf(next->second);
    }
    if (whole)
      taken[run.begin] = {run.begin, run.period, run.count()};
    else if (free < run.end)
      consider({free, run.end, run.period});
  }

  std::vector<Stretch> stretches;
  size_t covered = 0;
  auto coverUntil = [&](size_t end) {
    if (end > covered)
      stretches.push_back({covered, end - covered, 1});
  };
  for (const auto &[begin, stretch] : taken) {
    coverUntil(begin);
    stretches.push_back(stretch);
    covered = endOf(stretch);
  }
  coverUntil(keys.size());
  return stretches;
}
