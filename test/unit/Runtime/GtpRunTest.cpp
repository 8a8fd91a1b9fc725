//===- GtpRunTest.cpp -----------------------------------------------------===//
//
// The built gtp-run on a checked plan and the host backend, as a process.
//
//===----------------------------------------------------------------------===//

#include "BigramPlan.h"
#include "TemporaryFolder.h"
#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <sys/wait.h>

using namespace gtp;
using namespace gtp::test;

namespace {

class GtpRunTest : public testing::Test {
protected:
  GtpRunTest() : plan(folder.path("bigram.gtpplan")) {
    save(makeBigramPlan(), plan);
    std::string text;
    while (text.size() < 2000)
      text += "the quick brown fox jumps over the lazy dog. ";
    data = "--data=" + folder.write("text", text);
  }

  void save(const plan::pb::Plan &proto, const std::string &path) {
    Status saved = plan::savePlan(proto, path);
    ASSERT_TRUE(saved.isOk()) << saved.message();
  }

  struct Result {
    int code;
    std::string text; // both streams
  };
  Result run(const std::string &arguments) {
    return shell(std::string(GTP_RUN) + " " + arguments);
  }
  Result shell(const std::string &command) {
    std::FILE *pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
    Result result{-1, ""};
    char piece[4096];
    while (size_t size = std::fread(piece, 1, sizeof piece, pipe))
      result.text.append(piece, size);
    int status = ::pclose(pipe);
    if (WIFEXITED(status))
      result.code = WEXITSTATUS(status);
    return result;
  }

  std::vector<nlohmann::json> metrics() {
    std::vector<nlohmann::json> steps;
    std::istringstream lines(TemporaryFolder::read(folder.path("metrics")));
    for (std::string line; std::getline(lines, line);)
      steps.push_back(nlohmann::json::parse(line));
    return steps;
  }

  /// The initial weights but for a row of NaN: that of token `token`.
  std::string weightsWithNan(size_t token) {
    std::string path = folder.path("nan");
    EXPECT_EQ(run(plan + " --steps=0 --dump-weights=" + path).code, 0);
    std::string bytes = TemporaryFolder::read(path);
    size_t row = 128 * 4, table = bytes.size() - 128 * row;
    bytes.replace(table + token * row, row, std::string(row, '\xff'));
    return folder.write("nan", bytes);
  }

  /// The losses of a run's metrics.
  std::vector<double> losses(const std::string &arguments) {
    std::string path = folder.path("metrics");
    Result result =
        run(plan + " " + data + " --metrics=" + path + " " + arguments);
    EXPECT_EQ(result.code, 0) << result.text;
    std::vector<double> losses;
    for (const nlohmann::json &step : metrics())
      losses.push_back(step["loss"]);
    return losses;
  }

  void expectError(const Result &result, const std::string &text) {
    EXPECT_EQ(result.code, 1) << result.text;
    EXPECT_EQ(result.text.rfind("gtp-run: error: ", 0), 0u) << result.text;
    EXPECT_NE(result.text.find(text), std::string::npos) << result.text;
  }

  TemporaryFolder folder;
  std::string plan, data;
};

} // namespace

TEST_F(GtpRunTest, TimesOfOperationsAreWritten) {
  const std::string profile = folder.path("p.json"), trace = folder.path("t");
  std::vector<double> plain = losses("--steps=6 --lr=1");
  EXPECT_EQ(
      losses("--steps=6 --lr=1 --profile=" + profile + " --trace=" + trace),
      plain);
  auto measured =
      nlohmann::json::parse(TemporaryFolder::read(profile)).at("measured");
  EXPECT_GT(measured.at("step").at("step_ns"), 0);
  EXPECT_GT(measured.at("step").at("compute_ns"), 0);
  std::set<std::string> kernels;
  for (const auto &entry : measured.at("kernels")) {
    kernels.insert(entry.at("kernel"));
    EXPECT_GT(entry.at("alone_ns"), 0);
    EXPECT_GT(entry.at("beside_ns"), 0);
    EXPECT_GT(entry.at("calls"), 0);
    EXPECT_NE(entry.at("operands"), "");
  }
  EXPECT_TRUE(kernels.count("embedding")) << measured;
  std::map<int, std::set<std::string>> slices;
  auto whole = nlohmann::json::parse(TemporaryFolder::read(trace));
  for (const auto &event : whole.at("traceEvents"))
    if (event.at("ph") == "X")
      slices[event.at("pid")].insert(event.at("name"));
  EXPECT_FALSE(slices[1].empty());
  EXPECT_EQ(slices[1], slices[2]);
}

TEST_F(GtpRunTest, ACheckedPlanTrains) {
  std::vector<double> found = losses("--steps=200 --lr=5");
  ASSERT_EQ(found.size(), 200u);
  EXPECT_NEAR(found.front(), std::log(128), 0.05);
  EXPECT_LT(found.back(), 2.5);
}

TEST_F(GtpRunTest, JitterAndDumpsDoNotChangeARun) {
  std::vector<double> expected = losses("--steps=4 --lr=5 --seed=3");
  EXPECT_EQ(
      losses("--steps=4 --lr=5 --seed=3 --eager --host-jitter=1 --dump-grads=" +
             folder.path("g") + " --dump-weights=" + folder.path("w")),
      expected);
  EXPECT_NE(losses("--steps=4 --lr=5 --seed=4"), expected);
  // A run from the dump continues where it ended: its loss is below.
  EXPECT_LT(losses("--steps=1 --seed=3 --weights=" + folder.path("w"))[0],
            expected[0]);
}

TEST_F(GtpRunTest, TheScheduleIsInTheMetrics) {
  losses("--steps=4 --lr=0.5 --lr-schedule=linear:2,0");
  std::vector<double> rates;
  for (const nlohmann::json &step : metrics())
    rates.push_back(step["lr"]);
  EXPECT_EQ(rates, (std::vector<double>{0.25, 0.5, 0.25, 0}));
}

TEST_F(GtpRunTest, SeveralFilesAreDrawnFrom) {
  std::string other = folder.write("other", std::string(300, 'x'));
  std::vector<double> alone = losses("--steps=2 --seed=3");
  // As if the other file were not there, or alone there.
  EXPECT_EQ(losses("--steps=2 --seed=3 --data=" + other + ":1e-30"), alone);
  std::vector<double> mixed = losses("--steps=2 --seed=3 --data=" + other);
  EXPECT_NE(mixed, alone);
  EXPECT_NE(losses("--steps=2 --seed=3 --data=" + other + ":1e30"), mixed);
}

TEST_F(GtpRunTest, AStepThatIsNotFiniteIsSkippedAndTrainingGoesOn) {
  std::string text;
  while (text.size() < 2000)
    text += "the quick brown fox jumps over the lazy dog. ";
  text[1000] = '~';
  std::string weights = folder.path("w");
  Result result = run(
      plan + " --data=" + folder.write("rare", text) +
      " --weights=" + weightsWithNan('~') + " --steps=150 --lr=5" +
      " --metrics=" + folder.path("metrics") + " --dump-weights=" + weights);
  ASSERT_EQ(result.code, 0) << result.text;
  size_t skipped = 0;
  for (const nlohmann::json &step : metrics()) {
    skipped += step.value("skipped", false);
    EXPECT_EQ(step["loss"].is_null(), step.value("skipped", false));
  }
  EXPECT_GT(skipped, 0u);
  EXPECT_LT(metrics().back()["loss"], 3.0);
  EXPECT_NE(result.text.find("update skipped"), std::string::npos);
  // No other row has seen the NaN.
  std::string bytes = TemporaryFolder::read(weights);
  std::vector<float> table(128 * 128);
  std::memcpy(table.data(), bytes.data() + bytes.size() - 4 * table.size(),
              4 * table.size());
  for (size_t i = 0; i < table.size(); ++i)
    ASSERT_EQ(std::isnan(table[i]), i / 128 == '~') << i;
}

TEST_F(GtpRunTest, StepsInARowThatAreNotFiniteEndTheRun) {
  Result result =
      run(plan + " --data=" + folder.write("bad", std::string(200, '~')) +
          " --weights=" + weightsWithNan('~') + " --steps=9" +
          " --max-nonfinite=2 --metrics=" + folder.path("metrics") +
          " --dump-weights=" + folder.path("w"));
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(
      result.text.find(
          "gtp-run: error: step 2: the loss is not a number, as the loss or "
          "the gradient norm was in each step from 1; 1 of 1 gradients are not "
          "finite, first that of 'table.weight'; a lower --lr, or clipping "
          "(--clip-norm of gtp-opt), may help\n"),
      std::string::npos)
      << result.text;
  EXPECT_EQ(metrics().size(), 2u);
  EXPECT_EQ(TemporaryFolder::read(folder.path("w")), "");
}

TEST_F(GtpRunTest, SigtermEndsTheRunAfterTheStepWithItsDumps) {
  std::string path = folder.path("metrics");
  for (const std::string &dumps : {" --dump-weights=" + folder.path("w"),
                                   " --dump-weights=" + folder.path("v") +
                                       " --dump-grads=" + folder.path("g")}) {
    std::remove(path.c_str());
    Result result = shell(std::string(GTP_RUN) + " " + plan + " " + data +
                          " --steps=1000000000 --metrics=" + path + dumps +
                          " & p=$!; until [ -s " + path +
                          " ]; do sleep 0.02; done; kill -TERM $p; wait $p");
    EXPECT_EQ(result.code, 0) << result.text;
    std::string steps = std::to_string(metrics().size());
    EXPECT_NE(result.text.find("stopped   by SIGTERM after step " + steps +
                               " of 1000000000\n"),
              std::string::npos)
        << result.text;
  }
  for (const char *name : {"w", "v", "g"})
    EXPECT_GT(TemporaryFolder::read(folder.path(name)).size(), 128u * 128 * 4)
        << name;
}

TEST_F(GtpRunTest, VerifyOnlyChecksAndStops) {
  Result result = run(plan + " --verify-only");
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("9 operations"), std::string::npos) << result.text;
  EXPECT_EQ(run(plan + " --verify-only --rank-plan=0:" + plan).code, 0);
}

TEST_F(GtpRunTest, AnIllegalPlanIsRefusedUnlessUnchecked) {
  plan::pb::Plan illegal = makeBigramPlan();
  // The loss gradient is read without ever having been written.
  illegal.mutable_programs(0)
      ->mutable_regions(0)
      ->mutable_operations()
      ->RemoveLast();
  save(illegal, plan);
  expectError(run(plan + " --verify-only"), plan + ": ");
  expectError(run(plan + " " + data), plan + ": ");
  // Transient memory is poisoned with NaN.
  Result result = run(plan + " --unchecked " + data);
  EXPECT_EQ(result.code, 1) << result.text;
  EXPECT_NE(
      result.text.find("[unchecked] gtp-run: error: step 1: the gradient norm"),
      std::string::npos)
      << result.text;
}

TEST_F(GtpRunTest, APlanThatCannotEvaluateIsNamed) {
  expectError(run(plan + " " + data + " --eval-" + data.substr(2)),
              plan + ": has no program that evaluates, which --eval-data "
                     "needs; compile the model again with gtp-opt");
}

TEST_F(GtpRunTest, WrongInputsAreErrorsOfOneLine) {
  for (const std::string &arguments :
       {std::string(), folder.path("absent") + " --verify-only", plan,
        plan + " " + data + " --lr=nan", plan + " " + data + " --resume=x",
        plan + " --data=" + folder.path("absent"),
        plan + " " + data + " --weights=" + plan,
        plan + " " + data + " --token-bits=32"}) {
    Result result = run(arguments);
    expectError(result, "gtp-run: error: ");
    EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'), 1)
        << result.text;
  }
}

TEST_F(GtpRunTest, WhatCannotBeWrittenIsAnError) {
  const std::string full = "cannot write: No space left on device";
  std::string train = std::string(GTP_RUN) + " " + plan + " " + data;
  expectError(shell(train + " --metrics=/dev/full >/dev/null"),
              "/dev/full: " + full);
  expectError(shell(train + " --dump-weights=/dev/full >/dev/null"), full);
  // The run itself goes on to its end.
  std::string dump = folder.path("weights");
  expectError(shell(train + " --dump-weights=" + dump + " >/dev/full"),
              "standard output: cannot write: No space left on device");
  EXPECT_NE(TemporaryFolder::read(dump), "");
  expectError(shell(std::string(GTP_RUN) + " --help >/dev/full"),
              "standard output: cannot write: No space left on device");
  expectError(shell(train + " --verify-only >/dev/full"),
              "standard output: cannot write: No space left on device");
}
