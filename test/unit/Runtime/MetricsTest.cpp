//===- MetricsTest.cpp ----------------------------------------------------===//

#include "gtp-rt/Metrics.h"
#include "TemporaryFolder.h"
#include "gtp-rt/Console.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace gtp;
using namespace gtp::rt;
using gtp::test::TemporaryFolder;

static std::string written(const StepMetrics &metrics, bool unchecked) {
  TemporaryFolder folder;
  auto writer = MetricsWriter::create(folder.path("m"), unchecked);
  EXPECT_TRUE(writer.isOk()) << writer.message();
  EXPECT_TRUE(writer->write(metrics).isOk());
  return TemporaryFolder::read(folder.path("m"));
}

TEST(Metrics, ALineHoldsTheDocumentedKeys) {
  StepMetrics metrics;
  metrics.step = 3;
  metrics.loss = 5.5f;
  metrics.gradNorm = 2;
  metrics.learningRate = 0.001;
  metrics.tokens = 100;
  metrics.seconds = 0.5;
  metrics.wallSeconds = 0.75;
  metrics.modelFlops = 1e12;
  metrics.peakBytes = 4096;
  std::string line =
      R"({"step":3,"loss":5.5,"grad_norm":2.0,"lr":0.001,"tokens":100,)"
      R"("tokens_per_s":200.0,"step_ms":500.0,"wall_ms":750.0,)"
      R"("model_tflops":2.0,"peak_bytes":4096)";
  EXPECT_EQ(written(metrics, false), line + "}\n");
  EXPECT_EQ(written(metrics, true), line + ",\"unchecked\":true}\n");
  metrics.eval = EvalMetrics{2.25, 64};
  EXPECT_EQ(written(metrics, false),
            line + ",\"eval_loss\":2.25,\"eval_count\":64}\n");
  metrics.eval.reset();
  metrics.skipped = true;
  EXPECT_EQ(written(metrics, false), line + ",\"skipped\":true}\n");
  metrics.skipped = false;
  metrics.report.deviceSeconds = 0.25;
  metrics.report.launchSeconds = 0.125;
  metrics.report.deviceBytes = 8192;
  metrics.report.graph = StepReport::Graph{12, 0.5, 2};
  metrics.report.withoutCollectives = true;
  metrics.timing = Timing::OneByOne;
  EXPECT_EQ(
      written(metrics, false),
      line + R"(,"device_ms":250.0,"launch_ms":125.0,"device_bytes":8192,)"
             R"("graph_nodes":12,"capture_ms":500.0,"instantiate_ms":2000.0,)"
             R"("timed":"one by one","without_collectives":true})"
             "\n");
  metrics.loss = NAN;
  EXPECT_NE(written(metrics, false).find("\"loss\":null"), std::string::npos);
}

TEST(Metrics, AnEvaluationAloneIsALineOfStepZero) {
  TemporaryFolder folder;
  auto writer = MetricsWriter::create(folder.path("m"), true);
  ASSERT_TRUE(writer.isOk()) << writer.message();
  EXPECT_TRUE(writer->write(EvalMetrics{1.5, 7}).isOk());
  EXPECT_EQ(TemporaryFolder::read(folder.path("m")),
            "{\"step\":0,\"eval_loss\":1.5,\"eval_count\":7,\"unchecked\":"
            "true}\n");
}

TEST(Metrics, AnUnwritablePathIsNamed) {
  EXPECT_EQ(MetricsWriter::create("/nowhere/m", false).message(),
            "/nowhere/m: cannot write: No such file or directory");
}

TEST(Console, NumbersAreForPeople) {
  EXPECT_EQ(bytesText(7), "7 B");
  EXPECT_EQ(bytesText(1536), "1.5 KiB");
  EXPECT_EQ(bytesText(3 << 20), "3.0 MiB");
  EXPECT_EQ(bytesText(uint64_t(5) << 30), "5.00 GiB");
  EXPECT_EQ(durationText(4.4), "4s");
  EXPECT_EQ(durationText(61), "1:01");
  EXPECT_EQ(durationText(3723), "1:02:03");
  EXPECT_EQ(countText(9999), "9999");
  EXPECT_EQ(countText(12345), "12.3 k");
  EXPECT_EQ(countText(1.1e9), "1.10 G");
}
