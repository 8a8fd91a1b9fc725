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

#include <cstdio>
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
    std::string command = std::string(GTP_RUN) + " " + arguments + " 2>&1";
    std::FILE *pipe = ::popen(command.c_str(), "r");
    Result result{-1, ""};
    char piece[4096];
    while (size_t size = std::fread(piece, 1, sizeof piece, pipe))
      result.text.append(piece, size);
    int status = ::pclose(pipe);
    if (WIFEXITED(status))
      result.code = WEXITSTATUS(status);
    return result;
  }

  /// The losses of a run's metrics.
  std::vector<double> losses(const std::string &arguments) {
    std::string path = folder.path("metrics");
    Result result =
        run(plan + " " + data + " --metrics=" + path + " " + arguments);
    EXPECT_EQ(result.code, 0) << result.text;
    std::vector<double> losses;
    std::istringstream lines(TemporaryFolder::read(path));
    for (std::string line; std::getline(lines, line);)
      losses.push_back(nlohmann::json::parse(line)["loss"]);
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
