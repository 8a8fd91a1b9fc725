//===- TokenFileTest.cpp --------------------------------------------------===//

#include "gtp-rt/TokenFile.h"
#include "DatasetFiles.h"
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

TEST_F(TokenFileTest, LabelsOfDocumentSeparatorsAreNotCounted) {
  for (bool ownLabels : {false, true}) {
    TokenFileOptions options;
    options.data = folder.write("data", std::string("\0a\0\0bc\0d", 8));
    if (ownLabels)
      options.labels = folder.write("labels", int32s({9, 8, 7, 6, 5, 4, 3, 2}));
    options.vocabulary = 256;
    options.sequence = 7;
    options.documentSeparator = 0;
    auto file = TokenFile::open(options);
    ASSERT_TRUE(file.isOk()) << file.message();
    int32_t tokens[7], labels[7];
    file->readSample(0, tokens, labels);
    // Only what a separator predicts, whatever the label says.
    EXPECT_EQ(std::vector<int32_t>(labels, labels + 7),
              ownLabels
                  ? (std::vector<int32_t>{-100, 7, -100, -100, 4, 3, -100})
                  : (std::vector<int32_t>{-100, 0, -100, -100, 'c', 0, -100}));
  }
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

TEST_F(TokenFileTest, ADatasetIsItsIdsOneAfterTheOther) {
  test::IndexFile index;
  TokenFileOptions options;
  options.data = folder.write("d.idx", index.bytes());
  std::string ids;
  for (uint64_t id : {5, 6, 7, 300, 9, 10, 11})
    ids += test::littleEndian(id, 2);
  folder.write("d.bin", ids);
  options.vocabulary = 301;
  options.sequence = 4;
  auto file = TokenFile::open(options);
  ASSERT_TRUE(file.isOk()) << file.message();
  EXPECT_EQ(file->size(), 7u);
  EXPECT_EQ(file->documents(), 2u);
  int32_t tokens[4], labels[4];
  file->readSample(2, tokens, labels);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 4),
            (std::vector<int32_t>{7, 300, 9, 10}));
  EXPECT_EQ(labels[3], 11);
  // The widest ids there are.
  index.type = 5;
  index.offsets = {0, 24, 24};
  folder.write("d.idx", index.bytes());
  ids.clear();
  for (uint64_t id : {5, 6, 7, 300, 9, 10, 11})
    ids += test::littleEndian(id, 8);
  folder.write("d.bin", ids);
  file = TokenFile::open(options);
  ASSERT_TRUE(file.isOk()) << file.message();
  EXPECT_EQ(file->token(3), 300);
}

TEST_F(TokenFileTest, EveryWrongDatasetIsOneMessage) {
  test::IndexFile index;
  TokenFileOptions options;
  options.data = folder.write("d.idx", index.bytes());
  options.vocabulary = 301;
  options.sequence = 4;
  auto message = [&] { return error(TokenFile::open(options)); };
  EXPECT_EQ(message(), "d.bin: cannot open: No such file or directory");
  folder.write("d.bin", std::string(13, '\0'));
  EXPECT_EQ(message(), "d.bin: has 13 bytes; the 7 tokens of its index " +
                           folder.path("d.idx") + " make 14");
  folder.write("d.bin", std::string(13, '\0') + '\2');
  EXPECT_EQ(message(), "d.bin: token 6 (byte offset 12) is 512, outside the "
                       "vocabulary: expected 0 to 300");
  options.sequence = 7;
  EXPECT_EQ(message(), "d.idx: has 7 tokens; a sequence of 7 and its last "
                       "label need at least 8");
  options.sequence = 4;
  index.type = 3; // int16
  folder.write("d.idx", index.bytes());
  folder.write("d.bin", std::string(12, '\0') + "\xfe\xff");
  EXPECT_EQ(message(), "d.bin: token 6 (byte offset 12) is -2, outside the "
                       "vocabulary: expected 0 to 300");
  folder.write("d.idx", index.bytes() + "1");
  EXPECT_EQ(message(),
            "d.idx: has 95 bytes; 3 sequences and 3 document bounds make 94");
  folder.write("d.idx", "MMIDIDX");
  EXPECT_EQ(message(),
            "d.idx: has 7 bytes; the index of a dataset has at least 34");
  // Its ids alone would be read as bytes.
  options.data = folder.path("d.bin");
  EXPECT_EQ(message(),
            "d.bin: has an index beside it; --data=" + folder.path("d.idx") +
                " reads the dataset, --token-bits=16|32 only ids");
  options.tokenBits = 16;
  options.vocabulary = 65536;
  EXPECT_EQ(message(), "");
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
