//===- TensorBoardTest.cpp ------------------------------------------------===//

#include "gtp-rt/TensorBoard.h"
#include "Crc32c.h"
#include "TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

using namespace gtp;
using namespace gtp::rt;
using gtp::test::TemporaryFolder;

static uint64_t number(const std::string &bytes, size_t at, unsigned size) {
  uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i)
    value |= uint64_t(uint8_t(bytes.at(at + i))) << (8 * i);
  return value;
}

/// The events of a folder's one file; every checksum is right.
static std::vector<std::string> events(const std::string &folder) {
  std::vector<std::string> events;
  std::filesystem::directory_iterator file(folder);
  EXPECT_EQ(file->path().filename().string().rfind("events.out.tfevents.", 0),
            0u);
  std::string bytes = TemporaryFolder::read(file->path().string());
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size = number(bytes, at, 8);
    EXPECT_EQ(number(bytes, at + 8, 4), maskedCrc32c(bytes.substr(at, 8)));
    events.push_back(bytes.substr(at + 12, size));
    EXPECT_EQ(number(bytes, at + 12 + size, 4), maskedCrc32c(events.back()));
    at += 16 + size;
  }
  EXPECT_EQ(++file, std::filesystem::directory_iterator());
  return events;
}

/// A field of a number of 4 bytes, as protobuf writes it.
static std::string scalar(const char *tag, float value) {
  std::string bits(4, 0);
  std::memcpy(bits.data(), &value, 4);
  std::string inner =
      std::string("\x0a") + char(std::strlen(tag)) + tag + "\x15" + bits;
  return std::string("\x0a") + char(inner.size()) + inner;
}

TEST(Crc32c, HasTheKnownAnswers) {
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
  // The length of the first record of every file of events that TensorFlow
  // writes, 24, and its checksum there.
  EXPECT_EQ(maskedCrc32c(std::string("\x18\0\0\0\0\0\0\0", 8)), 0x224b7fa3u);
}

TEST(TensorBoard, AStepIsAnEventOfItsScalars) {
  TemporaryFolder folder;
  std::string path = folder.path("new/folder");
  auto writer = TensorBoardWriter::create(path);
  ASSERT_TRUE(writer.isOk()) << writer.message();
  StepMetrics metrics;
  metrics.step = 3;
  metrics.loss = 2.5f;
  metrics.gradNorm = 0; // a zero is a value, too
  metrics.learningRate = 0.001;
  ASSERT_TRUE(writer->write(metrics).isOk());
  metrics.step = 300;
  metrics.loss = NAN;
  ASSERT_TRUE(writer->write(metrics).isOk());
  metrics.step = 4;
  metrics.loss = 2.5f;
  metrics.eval = EvalMetrics{1.25, 7};
  ASSERT_TRUE(writer->write(metrics).isOk());

  std::vector<std::string> found = events(path);
  ASSERT_EQ(found.size(), 4u);
  // Each starts with the time, a double of field 1: 9 bytes.
  EXPECT_EQ(found[0].substr(9), "\x1a\x0d"
                                "brain.Event:2");
  std::string scalars =
      scalar("loss", 2.5f) + scalar("grad_norm", 0) + scalar("lr", 0.001f);
  EXPECT_EQ(found[1].substr(9),
            std::string("\x10\x03\x2a") + char(scalars.size()) + scalars);
  EXPECT_EQ(found[2].substr(9, 3), "\x10\xac\x02");
  scalars += scalar("eval_loss", 1.25f);
  EXPECT_EQ(found[3].substr(9),
            std::string("\x10\x04\x2a") + char(scalars.size()) + scalars);
}

TEST(TensorBoard, AnImpossibleFolderIsNamed) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "");
  EXPECT_EQ(TensorBoardWriter::create(file).message(),
            file + ": cannot make the folder: Not a directory");
  EXPECT_EQ(TensorBoardWriter::create(file + "/x").message(),
            file + "/x: cannot make the folder: Not a directory");
}
