//===- DatasetIndexTest.cpp -----------------------------------------------===//

#include "gtp-rt/DatasetIndex.h"
#include "DatasetFiles.h"
#include "TemporaryFolder.h"
#include "gtp-rt/TokenFile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>

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

/// One to three changes of `bytes`: cut, grown, or numbers put where fields
/// may be.
static std::string mutate(std::string bytes, std::mt19937_64 &random) {
  static const uint64_t numbers[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     0x7fffffff,
                                     0x80000000,
                                     UINT64_MAX,
                                     uint64_t(1) << 62,
                                     uint64_t(1) << 63};
  for (uint64_t edits = random() % 3 + 1; edits > 0; --edits) {
    size_t at = random() % (bytes.size() + 1);
    switch (random() % 5) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes.insert(at, random() % 40, char(random()));
      break;
    case 2:
      if (at < bytes.size())
        bytes[at] = char(bytes[at] ^ (1 << random() % 8));
      break;
    default: {
      unsigned size = random() % 2 ? 8 : 4;
      uint64_t number =
          random() % 4 ? numbers[random() % std::size(numbers)] : random() % 64;
      if (random() % 2) // a field of the header
        at = random() % 2 ? 18 : 26;
      if (at + size <= bytes.size())
        bytes.replace(at, size, littleEndian(number, size));
    }
    }
  }
  return bytes;
}

// GTP_FUZZ_CASES and GTP_FUZZ_SEED make it longer or other.
TEST(DatasetIndex, MutantsAreErrorsOrDatasets) {
  auto setting = [](const char *name, uint64_t value) {
    const char *text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : value;
  };
  std::mt19937_64 random(setting("GTP_FUZZ_SEED", 1));
  TemporaryFolder folder;
  uint64_t accepted = 0;
  for (uint64_t i = setting("GTP_FUZZ_CASES", 10000); i > 0; --i) {
    IndexFile file;
    file.type = random() % 2 ? 8 : 1;
    if (file.type == 1)
      file.offsets = {0, 3, 3};
    std::string bytes = mutate(file.bytes(), random);
    auto index = parse(bytes);
    if (!index.isOk()) {
      EXPECT_FALSE(index.message().empty());
      continue;
    }
    ++accepted;
    if (accepted > 500)
      continue; // files are slow
    // Whatever it says, reading every sample stays in the .bin file.
    folder.write("d.idx", bytes);
    TokenFileOptions options;
    options.data = folder.path("d.idx");
    folder.write("d.bin", std::string(random() % 4 ? 14 : 7, '\1'));
    options.vocabulary = 1000;
    options.sequence = 2;
    auto text = TokenFile::open(options);
    if (!text.isOk())
      continue;
    int32_t tokens[2], labels[2];
    for (uint64_t offset = 0; offset + 2 < text->size(); ++offset)
      text->readSample(offset, tokens, labels);
  }
  EXPECT_GT(accepted, 0u);
}
