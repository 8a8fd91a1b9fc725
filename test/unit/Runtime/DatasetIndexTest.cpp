//===- DatasetIndexTest.cpp -----------------------------------------------===//

#include "gtp-rt/DatasetIndex.h"
#include "DatasetFiles.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

/// From memory of exactly this size, so that a sanitizer sees what is beyond.
static StatusOr<DatasetIndex> parse(const std::string &bytes) {
  std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return DatasetIndex::parse(copy.get(), bytes.size());
}

static std::string error(const std::function<void(IndexFile &)> &change) {
  IndexFile file;
  change(file);
  auto index = parse(file.bytes());
  return index.isOk() ? "" : index.message();
}

TEST(DatasetIndex, SaysWhereSequencesAndDocumentsAre) {
  auto index = parse(IndexFile().bytes());
  ASSERT_TRUE(index.isOk()) << index.message();
  EXPECT_EQ(index->tokenBytes, 2u);
  EXPECT_FALSE(index->isSigned);
  EXPECT_EQ(index->sequences, 3u);
  EXPECT_EQ(index->documents, 2u);
  EXPECT_EQ(index->tokens, 7u);
  const unsigned bytes[] = {1, 1, 2, 4, 8, 0, 0, 2};
  for (unsigned type = 1; type <= 8; ++type) {
    IndexFile file;
    file.type = type;
    for (int64_t &offset : file.offsets)
      offset = offset / 2 * bytes[type - 1];
    auto index = parse(file.bytes());
    ASSERT_EQ(index.isOk(), bytes[type - 1] != 0) << type;
    if (index.isOk()) {
      EXPECT_EQ(index->tokenBytes, bytes[type - 1]);
      EXPECT_EQ(index->isSigned, type != 1 && type != 8);
    }
  }
}

TEST(DatasetIndex, AnEmptyDatasetHasOneBound) {
  IndexFile file;
  file.lengths.clear();
  file.offsets.clear();
  file.bounds = {0};
  auto index = parse(file.bytes());
  ASSERT_TRUE(index.isOk()) << index.message();
  EXPECT_EQ(index->documents, 0u);
  EXPECT_EQ(index->tokens, 0u);
}

TEST(DatasetIndex, EveryWrongFieldIsOneMessage) {
  struct Case {
    std::function<void(IndexFile &)> change;
    const char *message;
  } cases[] = {
      {[](IndexFile &file) { file.magic = "TNTIDX\0\0\0"; },
       "does not start with MMIDIDX; expected the index of a dataset that "
       "Megatron-LM wrote"},
      {[](IndexFile &file) { file.version = 2; }, "has version 2; expected 1"},
      {[](IndexFile &file) { file.type = 9; },
       "has ids of type 9, which does not exist; expected uint8, int8, int16, "
       "uint16, int32 or int64"},
      {[](IndexFile &file) { file.type = 0; },
       "has ids of type 0, which does not exist; expected uint8, int8, int16, "
       "uint16, int32 or int64"},
      {[](IndexFile &file) { file.type = 7; },
       "has ids of type float32; expected uint8, int8, int16, uint16, int32 or "
       "int64"},
      {[](IndexFile &file) { file.tail = "12345"; },
       "has 99 bytes; 3 sequences and 3 document bounds make 94"},
      {[](IndexFile &file) { file.tail = "123"; },
       "has a mode for each sequence, as datasets with images do; expected one "
       "of text alone"},
      {[](IndexFile &file) { file.bounds.clear(); },
       "has no document bounds; expected at least 1, of 0"},
      {[](IndexFile &file) { file.lengths[1] = -1; },
       "sequence 1 has length -1; expected 0 or more"},
      {[](IndexFile &file) { file.offsets[2] = 8; },
       "sequence 2 starts at byte 8, where those before it end at byte 6"},
      {[](IndexFile &file) { file.offsets[0] = -2; },
       "sequence 0 starts at byte -2, where those before it end at byte 0"},
      {[](IndexFile &file) { file.bounds[0] = 1; },
       "document bound 0 is 1; expected 0"},
      {[](IndexFile &file) { file.bounds = {0, 3, 2, 3}; },
       "document bound 2 is 2; expected 3 or more"},
      {[](IndexFile &file) { file.bounds = {0, 2}; },
       "the last document bound is 2; expected the number of sequences, 3"},
  };
  for (const Case &test : cases)
    EXPECT_EQ(error(test.change), test.message);
  EXPECT_EQ(parse("MMIDIDX").message(),
            "has 7 bytes; the index of a dataset has at least 34");
  // Counts whose products overflow.
  std::string bytes = IndexFile().bytes();
  for (uint64_t count : {uint64_t(4), uint64_t(1) << 62, UINT64_MAX}) {
    std::string many = bytes;
    many.replace(18, 8, littleEndian(count, 8));
    EXPECT_EQ(parse(many).message(),
              "has 94 bytes; " + std::to_string(count) +
                  " sequences and 3 document bounds need more");
    many = bytes;
    many.replace(26, 8, littleEndian(count, 8));
    EXPECT_EQ(parse(many).message(), "has 94 bytes; 3 sequences and " +
                                         std::to_string(count) +
                                         " document bounds need more");
  }
}
