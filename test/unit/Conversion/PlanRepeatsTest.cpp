//===- PlanRepeatsTest.cpp ------------------------------------------------===//

#include "PlanRepeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>
#include <string>

using namespace gtp;

/// The stretches of a list of letters: "ab(cde)x3f".
static std::string cut(const std::string &letters) {
  std::string text;
  size_t covered = 0;
  for (const Stretch &stretch :
       findRepeats(std::vector<int>(letters.begin(), letters.end()))) {
    EXPECT_EQ(stretch.begin, covered);
    covered += stretch.period * stretch.count;
    std::string piece = letters.substr(stretch.begin, stretch.period);
    if (stretch.count == 1)
      text += piece;
    else
      text += "(" + piece + ")x" + std::to_string(stretch.count);
    for (size_t i = 0; i < stretch.count; ++i)
      EXPECT_EQ(
          letters.substr(stretch.begin + i * stretch.period, stretch.period),
          piece);
  }
  EXPECT_EQ(covered, letters.size());
  return text;
}

TEST(PlanRepeats, LayersBetweenWhatIsOnce) {
  EXPECT_EQ(cut(""), "");
  EXPECT_EQ(cut("abcd"), "abcd");
  EXPECT_EQ(cut("eabcdabcdabcdh"), "e(abcd)x3h");
  // What begins like a layer is none.
  EXPECT_EQ(cut("eabcdabcdabcdabch"), "e(abcd)x3abch");
}

TEST(PlanRepeats, WhatSavesLittleStaysWrittenOut) {
  EXPECT_EQ(cut("xyzxyz"), "xyzxyz");
  EXPECT_EQ(cut("aaaa"), "aaaa");
  EXPECT_EQ(cut("aaaaa"), "(a)x5");
}

TEST(PlanRepeats, TheRunThatSavesMostComesFirst) {
  // Pieces of three letters save more than the letters that repeat in them.
  EXPECT_EQ(cut("aabaabaabaab"), "(aab)x4");
  // What is left and right of it is cut as well.
  EXPECT_EQ(cut("mnmnmnuvwxyuvwxyuvwxyqqqqqq"), "(mn)x3(uvwxy)x3(q)x6");
}

/// What `findRepeats` is documented to do, as it is written there.
static void cutByDefinition(const std::vector<int> &keys, size_t begin,
                            size_t end, std::vector<Stretch> &stretches) {
  Stretch best{begin, end - begin, 1};
  size_t saved = 3;
  for (size_t period = 1; period <= (end - begin) / 2; ++period)
    for (size_t i = begin; i < end; ++i) {
      size_t alike = i;
      while (alike + period < end && keys[alike] == keys[alike + period])
        ++alike;
      size_t count = (alike - i) / period + 1;
      if ((count - 1) * period > saved) {
        saved = (count - 1) * period;
        best = {i, period, count};
      }
    }
  if (best.count == 1) {
    if (begin < end)
      stretches.push_back(best);
    return;
  }
  cutByDefinition(keys, begin, best.begin, stretches);
  stretches.push_back(best);
  cutByDefinition(keys, best.begin + best.period * best.count, end, stretches);
}

static std::string list(const std::vector<Stretch> &stretches) {
  std::string text;
  for (const Stretch &s : stretches)
    text += std::to_string(s.begin) + "+" + std::to_string(s.period) + "x" +
            std::to_string(s.count) + " ";
  return text;
}

TEST(PlanRepeats, AsDefinedOnRandomLists) {
  std::mt19937 random(7);
  auto below = [&](size_t n) { return random() % n; };
  for (int repetition = 0; repetition < 3000; ++repetition) {
    std::vector<int> keys;
    while (keys.size() < 60 && below(30) != 0) {
      // A piece of what is there once more, or something new.
      size_t begin = keys.empty() ? 0 : below(keys.size());
      size_t length =
          below(3) == 0 ? 0 : std::min<size_t>(below(12), keys.size() - begin);
      for (size_t i = 0; i < length; ++i)
        keys.push_back(keys[begin + i]);
      keys.push_back(static_cast<int>(below(1 + below(5))));
    }
    std::vector<Stretch> expected;
    cutByDefinition(keys, 0, keys.size(), expected);
    ASSERT_EQ(list(findRepeats(keys)), list(expected))
        << "of " << testing::PrintToString(keys);
  }
}

/// Processor seconds that a list takes, the least of some, at least a tick.
static double secondsOf(const std::vector<int> &keys) {
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int repetition = 0; repetition < 3; ++repetition) {
    std::clock_t begin = std::clock();
    findRepeats(keys);
    least = std::min(least, std::clock() - begin);
  }
  return static_cast<double>(std::max<std::clock_t>(least, 1)) / CLOCKS_PER_SEC;
}

TEST(PlanRepeats, TimeGrowsAsTheListDoes) {
  // Nothing repeats; and runs of which each is a level of its own for whoever
  // searches left and right of the best anew.
  auto different = [](int size) {
    std::vector<int> keys;
    for (int i = 0; i < size; ++i)
      keys.push_back(i);
    return keys;
  };
  auto shortRuns = [](int size) {
    std::vector<int> keys;
    for (int i = 0; static_cast<int>(keys.size()) < size; ++i) {
      keys.insert(keys.end(), 6, 0);
      keys.push_back(i + 1);
    }
    return keys;
  };
  // Eight times the entries take some ten times as long, and would take 64
  // times as long by a search whose time is quadratic.
  for (const auto &made : {std::pair(different(20000), different(160000)),
                           std::pair(shortRuns(20000), shortRuns(160000))}) {
    double small = secondsOf(made.first), large = secondsOf(made.second);
    EXPECT_LT(large, 32 * small) << "grew from " << small << " s";
  }
}
