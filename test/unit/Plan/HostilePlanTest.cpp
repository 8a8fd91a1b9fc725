//===- HostilePlanTest.cpp ------------------------------------------------===//
//
// Plans made to exhaust what reads them. Damage by chance is test/fuzz's.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

TEST(HostilePlan, DeepNestingIsRefused) {
  // A group inside a group inside a group, unknown to the schema.
  std::string bytes(100000, '\x7b');
  StatusOr<pb::Plan> plan = parsePlan(bytes);
  EXPECT_FALSE(plan.isOk());
  EXPECT_FALSE(plan.message().empty());
}

TEST(HostilePlan, ManyOverlappingAccessesEndInTime) {
  // Operations that each write a byte, and others that each read them all.
  pb::Plan plan = buildStep();
  pb::Region *once = plan.mutable_programs(0)->mutable_regions(0);
  constexpr uint64_t bytes = 1 << 12;
  uint32_t buffer = static_cast<uint32_t>(plan.buffers_size());
  for (uint64_t i = 0; i < 2; ++i) {
    pb::Buffer *added = plan.add_buffers();
    added->set_size(bytes);
    added->set_offset(plan.memory(0).size());
    plan.mutable_memory(0)->set_size(plan.memory(0).size() + bytes);
  }
  auto operand = [](uint32_t index, uint64_t offset, uint64_t size) {
    pb::Operand result;
    result.set_buffer(index);
    result.set_offset(offset);
    result.set_dtype(pb::U8);
    result.add_dims(size);
    return result;
  };
  for (uint64_t i = 0; i < bytes; ++i) {
    pb::Fill *fill = once->add_operations()->mutable_fill();
    *fill->mutable_destination() = operand(buffer, i, 1);
    fill->set_byte_value(static_cast<uint32_t>(1 + i % 2));
  }
  for (uint64_t i = 0; i < 10000; ++i) {
    pb::Copy *copy = once->add_operations()->mutable_copy();
    *copy->mutable_source() = operand(buffer, 0, bytes);
    *copy->mutable_destination() = operand(buffer + 1, 0, bytes);
  }
  CheckReport report;
  EXPECT_FALSE(checkPlan(plan, &report).isOk());
  EXPECT_NE(report.findings.front().message.find(
                "the plan is too complex to check: its accesses overlap"),
            std::string::npos);
}
