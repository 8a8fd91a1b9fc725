//===- EvaluationTest.cpp -------------------------------------------------===//

#include "gtp-rt/Evaluation.h"
#include "TemporaryFolder.h"
#include "TestPlan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

namespace {

class EvaluationTest : public testing::Test {
protected:
  EvaluationTest() {
    test.addEval();
    plan = *RunPlan::create(test.plan);
  }

  StatusOr<EvalData> open(const std::string &bytes, uint64_t sequence = 4,
                          const std::string &labels = "") {
    TokenFileOptions options;
    options.data = folder.write("text", bytes);
    if (!labels.empty())
      options.labels = folder.write("labels", labels);
    options.vocabulary = 257;
    options.sequence = sequence;
    return EvalData::open(options);
  }

  static std::string bytesTo(int end) {
    std::string text;
    for (int i = 0; i < end; ++i)
      text += char(i);
    return text;
  }

  static std::vector<int32_t> read(const EvalData &data, uint64_t sample) {
    std::vector<int32_t> both(8, 7);
    data.readSample(sample, &both[0], &both[4]);
    return both;
  }

  /// As if the loss of a label were its value: fills the outputs of a run from
  /// its inputs.
  void runOnIds(MemoryBackend &backend) {
    int64_t count = 0;
    double sum = 0;
    for (uint64_t rank = 0; rank < 4; ++rank) {
      std::vector<int32_t> labels(24);
      ASSERT_TRUE(
          backend.readBuffer(rank, plan.eval->labels, 0, labels.data(), 96)
              .isOk());
      for (int32_t label : labels)
        if (label != kIgnoredLabel) {
          ++count;
          sum += label;
          seen.push_back(label);
        }
    }
    float loss = count ? float(sum / double(count)) : NAN;
    for (uint64_t rank = 0; rank < 4; ++rank) {
      ASSERT_TRUE(
          backend.writeBuffer(rank, plan.eval->loss, 0, &loss, 4).isOk());
      ASSERT_TRUE(
          backend.writeBuffer(rank, plan.eval->count, 0, &count, 8).isOk());
    }
  }

  TemporaryFolder folder;
  TestPlan test{{{"gtp", 2}, {"dp", 2}}};
  RunPlan plan = *RunPlan::create(test.plan);
  std::vector<int32_t> seen;
};

} // namespace

TEST_F(EvaluationTest, SamplesAreOneBehindTheOther) {
  auto data = open(bytesTo(10));
  ASSERT_TRUE(data.isOk()) << data.message();
  EXPECT_EQ(data->samples(), 3u);
  EXPECT_EQ(read(*data, 0), (std::vector<int32_t>{0, 1, 2, 3, 1, 2, 3, 4}));
  EXPECT_EQ(read(*data, 1), (std::vector<int32_t>{4, 5, 6, 7, 5, 6, 7, 8}));
  // The last token is predicted, and predicts nothing.
  EXPECT_EQ(read(*data, 2),
            (std::vector<int32_t>{8, 0, 0, 0, 9, -100, -100, -100}));
  for (uint64_t behind : {uint64_t(3), UINT64_MAX})
    EXPECT_EQ(read(*data, behind),
              (std::vector<int32_t>{0, 0, 0, 0, -100, -100, -100, -100}));
  EXPECT_EQ(open(bytesTo(9))->samples(), 2u);
  EXPECT_EQ(open(bytesTo(2))->samples(), 1u);
}

TEST_F(EvaluationTest, ATextMustHaveALabelThatCounts) {
  std::string text = folder.path("text"), labels = folder.path("labels");
  EXPECT_EQ(open("a").message(),
            text + ": has 1 tokens; a sequence of 1 and its last label need at "
                   "least 2");
  std::string ignored;
  for (int i = 0; i < 3; ++i)
    ignored += "\x9c\xff\xff\xff";
  EXPECT_EQ(open("abc", 4, "12345678").message(),
            labels + ": has 8 bytes; one int32 for each of the 3 tokens of " +
                text + " makes 12");
  const std::string none =
      ": no token has a successor whose label counts (labels of -100 and "
      "document separators do not); a loss needs one";
  EXPECT_EQ(open("abc", 4, ignored).message(), labels + none);
  // The first token's label is nobody's.
  ignored.replace(0, 4, std::string("\1\0\0\0", 4));
  EXPECT_EQ(open("abc", 4, ignored).message(), labels + none);
}

TEST_F(EvaluationTest, NothingIsPredictedAcrossDocuments) {
  TokenFileOptions options;
  options.data = folder.write("text", "ab.cd");
  options.vocabulary = 257;
  options.sequence = 4;
  options.documentSeparator = '.';
  auto data = EvalData::open(options);
  ASSERT_TRUE(data.isOk()) << data.message();
  EXPECT_EQ(read(*data, 0),
            (std::vector<int32_t>{'a', 'b', '.', 'c', 'b', '.', -100, 'd'}));
  options.data = folder.write("text", "...");
  EXPECT_NE(EvalData::open(options).message().find("no token has a successor"),
            std::string::npos);
}

TEST_F(EvaluationTest, EveryTokenButTheFirstCountsOnce) {
  ASSERT_TRUE(plan.eval);
  EXPECT_EQ(plan.eval->program, 1u);
  // 24 samples of 4 a batch: two batches, the second of 31 labels.
  auto data = open(bytesTo(128));
  MemoryBackend backend(test.plan);
  backend.onStep = [&] { runOnIds(backend); };
  EXPECT_EQ(*evalBatches(plan, *data, 0), 2u);
  EXPECT_EQ(*evalBatches(plan, *data, 1), 1u);
  EXPECT_EQ(*evalBatches(plan, *data, 9), 2u);
  auto found = evaluate(plan, backend, *data, 2);
  ASSERT_TRUE(found.isOk()) << found.message();
  EXPECT_EQ(found->count, 127u);
  EXPECT_NEAR(found->loss, 64, 1e-6);
  EXPECT_EQ(backend.programs, (std::vector<uint32_t>{1, 1}));
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 127u);
  for (int i = 0; i < 127; ++i)
    EXPECT_EQ(seen[size_t(i)], i + 1);
}

TEST_F(EvaluationTest, BatchesWithoutALabelDoNotMatter) {
  // Labels of the second batch only; the loss of the first is not a number.
  std::string labels;
  for (int i = 0; i < 128; ++i)
    labels += i < 100 ? "\x9c\xff\xff\xff" : std::string("\5\0\0\0", 4);
  auto data = open(bytesTo(128), 4, labels);
  ASSERT_TRUE(data.isOk()) << data.message();
  MemoryBackend backend(test.plan);
  backend.onStep = [&] { runOnIds(backend); };
  auto found = evaluate(plan, backend, *data, 2);
  ASSERT_TRUE(found.isOk()) << found.message();
  EXPECT_EQ(found->count, 28u);
  EXPECT_EQ(found->loss, 5);
}

TEST_F(EvaluationTest, ALimitMustLeaveALabelThatCounts) {
  // A batch is 24 samples of 4: the first has no label, or its last one.
  for (int first : {96, 95}) {
    std::string labels;
    for (int i = 0; i < 200; ++i)
      labels += i <= first ? "\x9c\xff\xff\xff" : std::string("\5\0\0\0", 4);
    auto data = open(bytesTo(128) + bytesTo(72), 4, labels);
    ASSERT_TRUE(data.isOk()) << data.message();
    auto one = evalBatches(plan, *data, 1);
    EXPECT_EQ(one.isOk(), first == 95);
    if (!one.isOk())
      EXPECT_EQ(one.message(),
                "--eval-steps=1: reads no label that counts; the first is in "
                "global batch 2 of --eval-data");
    EXPECT_EQ(*evalBatches(plan, *data, 2), 2u);
    EXPECT_EQ(*evalBatches(plan, *data, 0), 3u);
  }
}

TEST_F(EvaluationTest, ThePlanSaysWhereItsValuesAre) {
  TestPlan lacking{{{"gtp", 2}}};
  EXPECT_FALSE(RunPlan::create(lacking.plan)->eval);
  lacking.addEval();
  EXPECT_TRUE(RunPlan::create(lacking.plan)->eval);
  lacking.plan.mutable_programs(1)->mutable_outputs()->RemoveLast();
  EXPECT_EQ(RunPlan::create(lacking.plan).message(),
            "evaluation has no output 'count'");
}
