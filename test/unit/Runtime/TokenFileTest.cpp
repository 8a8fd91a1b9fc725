//===- TokenFileTest.cpp --------------------------------------------------===//

#include "gtp-rt/TokenFile.h"
#include "TemporaryFolder.h"
#include "gtp-rt/Philox.h"

#include <gtest/gtest.h>

#include <vector>

using namespace gtp;
using namespace gtp::rt;
using gtp::test::TemporaryFolder;

namespace {

class TokenFileTest : public testing::Test {
protected:
  TemporaryFolder folder;

  StatusOr<TokenFile> open(const std::string &bytes, unsigned bits,
                           uint64_t vocabulary, uint64_t sequence,
                           const std::string &labels = "") {
    TokenFileOptions options;
    options.data = folder.write("data", bytes);
    if (!labels.empty())
      options.labels = folder.write("labels", labels);
    options.tokenBits = bits;
    options.vocabulary = vocabulary;
    options.sequence = sequence;
    return TokenFile::open(options);
  }

  std::string error(StatusOr<TokenFile> file) {
    return file.isOk() ? "" : file.message().substr(folder.path("").size());
  }
};

std::string int32s(const std::vector<int32_t> &values) {
  std::string bytes;
  for (int32_t value : values)
    for (int i = 0; i < 4; ++i)
      bytes += char(uint32_t(value) >> (8 * i));
  return bytes;
}

} // namespace

TEST_F(TokenFileTest, BytesAreIdsAndPredictTheirSuccessor) {
  auto file = open("abc\xff"
                   "e",
                   8, 256, 3);
  ASSERT_TRUE(file.isOk()) << file.message();
  int32_t tokens[3], labels[3];
  file->readSample(1, tokens, labels);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 3),
            (std::vector<int32_t>{'b', 'c', 255}));
  EXPECT_EQ(std::vector<int32_t>(labels, labels + 3),
            (std::vector<int32_t>{'c', 255, 'e'}));
}

TEST_F(TokenFileTest, WideIdsAreLittleEndian) {
  auto narrow = open(std::string("\x01\x02\x03\x00", 4), 16, 1000, 1);
  ASSERT_TRUE(narrow.isOk()) << narrow.message();
  EXPECT_EQ(narrow->token(0), 0x201);
  EXPECT_EQ(narrow->token(1), 3);
  auto wide = open(int32s({70000, 1}), 32, 70001, 1);
  ASSERT_TRUE(wide.isOk()) << wide.message();
  EXPECT_EQ(wide->token(0), 70000);
}

TEST_F(TokenFileTest, LabelsOfTheirOwnAreShiftedLikeTokens) {
  auto file = open("abcd", 8, 256, 3, int32s({9, -100, 7, 6}));
  ASSERT_TRUE(file.isOk()) << file.message();
  int32_t tokens[3], labels[3];
  file->readSample(0, tokens, labels);
  EXPECT_EQ(std::vector<int32_t>(labels, labels + 3),
            (std::vector<int32_t>{-100, 7, 6}));
}

TEST_F(TokenFileTest, OffsetsFollowTheFormulaAndStayInside) {
  auto file = open("0123456789", 8, 256, 8);
  ASSERT_TRUE(file.isOk()) << file.message();
  for (uint64_t step = 1; step < 50; ++step)
    for (uint64_t sample = 0; sample < 4; ++sample) {
      uint64_t offset = file->sampleOffset(5, sample, step);
      EXPECT_EQ(offset, philox2x64(5, sample, step)[0] % 2);
      EXPECT_LT(offset + 8, file->size());
    }
}

TEST_F(TokenFileTest, EveryWrongInputIsOneMessage) {
  EXPECT_EQ(
      error(open("abcd", 8, 256, 4)),
      "data: has 4 tokens; a sequence of 4 and its last label need at least 5");
  EXPECT_EQ(
      error(open("", 8, 256, 4)),
      "data: has 0 tokens; a sequence of 4 and its last label need at least 5");
  EXPECT_EQ(error(open("abcde", 16, 256, 1)),
            "data: has 5 bytes, which is not a whole number of 16-bit ids");
  EXPECT_EQ(error(open("ab\x83", 8, 131, 1)),
            "data: token 2 (byte offset 2) is 131, outside the vocabulary: "
            "expected 0 "
            "to 130");
  EXPECT_EQ(
      error(open(int32s({1, -1}), 32, 131, 1)),
      "data: token 1 (byte offset 4) is 4294967295, outside the vocabulary: "
      "expected 0 to 130");
  EXPECT_EQ(error(open("abc", 8, 256, 1, "xxxx")),
            "labels: has 4 bytes; one int32 for each of the 3 tokens of " +
                folder.path("data") + " makes 12");
  EXPECT_EQ(error(open("abc", 8, 256, 1, int32s({0, -1, 0}))),
            "labels: label 1 (byte offset 4) is -1, outside the vocabulary: "
            "expected 0 "
            "to 255, or -100 for a position not counted");
}

TEST_F(TokenFileTest, UnreadableFilesAreNamed) {
  TokenFileOptions options;
  options.data = folder.path("absent");
  EXPECT_EQ(TokenFile::open(options).message(),
            options.data + ": cannot open: No such file or directory");
  options.data = "/dev/null";
  EXPECT_EQ(
      TokenFile::open(options).message(),
      "/dev/null: is not a regular file; a file that can be mapped is needed");
}
