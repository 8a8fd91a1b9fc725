//===- PlanRepeatsTest.cpp ------------------------------------------------===//

#include "PlanRepeats.h"

#include <gtest/gtest.h>

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
