//===- PlanFileTest.cpp ---------------------------------------------------===//

#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

using namespace gtp;
using namespace gtp::plan;

static pb::Plan small() {
  pb::Plan plan;
  plan.set_producer("test");
  plan.add_strings("");
  plan.add_strings("x");
  plan.add_buffers()->set_size(7);
  return plan;
}

static std::string tempPath(const std::string &name) {
  return ::testing::TempDir() + name;
}

TEST(PlanFile, RoundTrips) {
  std::string path = tempPath("round-trip.gtpplan");
  ASSERT_TRUE(savePlan(small(), path).isOk());
  StatusOr<pb::Plan> loaded = loadPlan(path);
  ASSERT_TRUE(loaded.isOk()) << loaded.message();
  pb::Plan sealed = small();
  sealPlan(sealed);
  EXPECT_EQ(serializePlan(*loaded), serializePlan(sealed));
  EXPECT_EQ(loaded->schema_version(), kSchemaVersion);
  std::remove(path.c_str());
}

TEST(PlanFile, HashCoversEverything) {
  pb::Plan a = small(), b = small();
  sealPlan(a);
  EXPECT_TRUE(hashPlan(a) == sealedHash(a));
  b.mutable_buffers(0)->set_size(8);
  EXPECT_FALSE(hashPlan(a) == hashPlan(b));
}

TEST(PlanFile, RefusesWithTheReason) {
  auto message = [](const pb::Plan &plan) {
    return parsePlan(plan.SerializeAsString()).message();
  };
  pb::Plan plan = small();
  sealPlan(plan);
  EXPECT_EQ(message(plan), "");
  pb::Plan changed = plan;
  changed.mutable_buffers(0)->set_size(8);
  EXPECT_EQ(message(changed),
            "the plan's hash does not match its contents: the file is damaged "
            "or was changed; compile it again");
  pb::Plan newer = plan;
  newer.set_schema_version(kSchemaVersion + 1);
  EXPECT_NE(message(newer).find("schema version 3"), std::string::npos);
  EXPECT_EQ(parsePlan("").message(),
            "not a plan, or cut short: expected a file that gtp-opt "
            "--emit=plan wrote, found 0 bytes that do not parse as one");
  EXPECT_NE(parsePlan("hello").message().find("not a plan"), std::string::npos);
  EXPECT_EQ(loadPlan("/nonexistent/plan").message(),
            "cannot open '/nonexistent/plan': No such file or directory");
  EXPECT_EQ(loadPlan("/").message(), "cannot read '/': Is a directory");
  EXPECT_EQ(savePlan(plan, "/nonexistent/plan").message(),
            "cannot write '/nonexistent/plan': No such file or directory");
  EXPECT_EQ(savePlan(plan, "/dev/full").message(),
            "cannot write '/dev/full': No space left on device");
  EXPECT_TRUE(savePlan(plan, "/dev/null").isOk());
}

TEST(PlanFile, TextNamesWhatIsOutOfRange) {
  pb::Plan plan = small();
  plan.mutable_buffers(0)->set_name(9);
  pb::Operation *operation =
      plan.add_programs()->add_regions()->add_operations();
  operation->mutable_kernel()->add_operands()->set_buffer(3);
  std::string text = planToText(plan);
  EXPECT_NE(text.find("buffer %<string 9?> "), std::string::npos) << text;
  EXPECT_NE(text.find("operand %3? invalid[]"), std::string::npos) << text;
}
