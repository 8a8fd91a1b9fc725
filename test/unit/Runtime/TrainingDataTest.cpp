//===- TrainingDataTest.cpp -----------------------------------------------===//

#include "gtp-rt/TrainingData.h"
#include "TemporaryFolder.h"
#include "gtp-rt/Philox.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::rt;
using gtp::test::TemporaryFolder;

namespace {

class TrainingDataTest : public testing::Test {
protected:
  /// A file of one letter each.
  StatusOr<TrainingData> open(const std::vector<double> &weights) {
    TrainingDataOptions options;
    for (size_t i = 0; i < weights.size(); ++i)
      options.data.push_back(
          {folder.write(std::to_string(i),
                        std::string(20 + 7 * i, char('a' + i))),
           weights[i]});
    options.vocabulary = 256;
    options.sequence = 4;
    return TrainingData::open(options);
  }

  TemporaryFolder folder;
};

} // namespace

TEST_F(TrainingDataTest, OneFileIsWhatItWasAlone) {
  auto data = open({0.125});
  ASSERT_TRUE(data.isOk()) << data.message();
  for (uint64_t sample = 0; sample < 1000; ++sample)
    EXPECT_EQ(data->fileOf(1, sample, 2), 0u);
}

TEST_F(TrainingDataTest, FilesAreDrawnInProportion) {
  auto data = open({1, 0.5, 2.5});
  ASSERT_TRUE(data.isOk()) << data.message();
  std::vector<int> drawn(3);
  for (uint64_t sample = 0; sample < 4000; ++sample) {
    size_t file = data->fileOf(7, sample, 3);
    // The formula of docs/running.md.
    double u = double(philox2x64(7, sample, 3)[1] >> 11) / 9007199254740992.0;
    EXPECT_EQ(file, u * 4 < 1 ? 0u : u * 4 < 1.5 ? 1u : 2u);
    ++drawn[file];
    int32_t tokens[4], labels[4];
    data->readSample(7, sample, 3, tokens, labels);
    EXPECT_EQ(tokens[3], int32_t('a' + file));
    EXPECT_EQ(labels[3], int32_t('a' + file));
  }
  EXPECT_NEAR(drawn[0], 1000, 100);
  EXPECT_NEAR(drawn[1], 500, 80);
  EXPECT_NEAR(drawn[2], 2500, 120);
}

TEST_F(TrainingDataTest, ExtremeWeightsStayInside) {
  auto data = open({1e-300, 1e300, 1e-300});
  ASSERT_TRUE(data.isOk()) << data.message();
  for (uint64_t sample = 0; sample < 1000; ++sample)
    EXPECT_EQ(data->fileOf(1, sample, 1), 1u);
}

TEST_F(TrainingDataTest, EachFileHasItsLabelsAndItsErrors) {
  TrainingDataOptions options;
  options.data = {{folder.write("a", "aaaaa")}, {folder.write("b", "bbb")}};
  options.vocabulary = 256;
  options.sequence = 2;
  std::string labels(12, '\0');
  labels[8] = 9;
  options.labels = {folder.write("la", std::string(20, '\0')),
                    folder.write("lb", labels)};
  auto data = TrainingData::open(options);
  ASSERT_TRUE(data.isOk()) << data.message();
  EXPECT_EQ(data->file(1).label(2), 9);
  options.sequence = 3;
  EXPECT_EQ(TrainingData::open(options).message(),
            folder.path("b") + ": has 3 tokens; a sequence of 3 and its last "
                               "label need at least 4");
}
