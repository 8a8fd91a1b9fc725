//===- OldPlansTest.cpp - Plans that an earlier gtp-opt wrote -------------===//
//
// test/Plan/Inputs keeps a plan of each schema version. What this build no
// longer reads it must refuse, with the version, who wrote it, and what to do;
// what it reads must still train to the numbers it did.
//
// Raising kSchemaVersion needs the file of the version that ends, made by the
// last gtp-opt that writes it:
//   gtp-opt test/Plan/Inputs/old.json --mesh=dp=2,gtp=2 --seq=4
//   --global-batch=8
//     --dtype=f32 --emit=plan -o test/Plan/Inputs/schema-<version>.gtpplan
//
//===----------------------------------------------------------------------===//

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

struct OldPlan {
  uint32_t version;
  std::string producer;
};

/// The versions of which a plan is kept, oldest first.
const OldPlan kOldPlans[] = {{1, "gtp-opt 0.1.0"}};

/// Losses of all of these plans' first steps, in this build and in those that
/// wrote them: the model is one and the same.
const double kLosses[] = {4.885894, 4.884058, 4.885776};

std::string fileOf(uint32_t version) {
  return std::string(GTP_PLANS) + "/schema-" + std::to_string(version) +
         ".gtpplan";
}

struct Training {
  int code = -1;
  std::string text; ///< both streams
  std::vector<double> losses;
};

Training train(const std::string &plan) {
  TemporaryFolder folder;
  std::string text;
  while (text.size() < 1000)
    text += "the quick brown fox jumps over the lazy dog. ";
  std::string metrics = folder.path("metrics");
  std::string command = std::string(GTP_RUN) + " " + plan +
                        " --data=" + folder.write("text", text) +
                        " --steps=3 --metrics=" + metrics + " 2>&1";
  Training run;
  std::FILE *pipe = ::popen(command.c_str(), "r");
  char piece[4096];
  while (size_t size = std::fread(piece, 1, sizeof piece, pipe))
    run.text.append(piece, size);
  int status = ::pclose(pipe);
  if (WIFEXITED(status))
    run.code = WEXITSTATUS(status);
  std::istringstream lines(TemporaryFolder::read(metrics));
  for (std::string line; std::getline(lines, line);)
    run.losses.push_back(nlohmann::json::parse(line)["loss"]);
  return run;
}

} // namespace

TEST(OldPlans, EveryVersionBeforeThisOneIsKept) {
  size_t index = 0;
  for (uint32_t version = 1; version < plan::kSchemaVersion; ++version) {
    ASSERT_LT(index, std::size(kOldPlans))
        << "schema version " << version
        << " has ended: keep a plan of it, as the top of this file says";
    EXPECT_EQ(kOldPlans[index++].version, version);
  }
}

TEST(OldPlans, AreReadOrRefusedByVersion) {
  for (const OldPlan &old : kOldPlans) {
    std::string path = fileOf(old.version);
    plan::pb::Plan proto;
    ASSERT_TRUE(proto.ParseFromString(TemporaryFolder::read(path))) << path;
    ASSERT_EQ(proto.schema_version(), old.version) << path;
    ASSERT_EQ(proto.producer(), old.producer) << path;
    Training run = train(path);
    if (run.code == 0) {
      ASSERT_EQ(run.losses.size(), std::size(kLosses)) << path;
      for (size_t i = 0; i < run.losses.size(); ++i)
        EXPECT_NEAR(run.losses[i], kLosses[i], 1e-5) << path << " step " << i;
      continue;
    }
    EXPECT_EQ(run.code, 1) << run.text;
    EXPECT_EQ(run.text, "gtp-run: error: " + path +
                            ": the plan has schema version " +
                            std::to_string(old.version) + " (by '" +
                            old.producer + "'), this program reads version " +
                            std::to_string(plan::kSchemaVersion) +
                            "; compile the plan again with the gtp-opt of this "
                            "build\n");
    EXPECT_NE(old.version, plan::kSchemaVersion);
  }
}
