//===- CheckerTest.h - Breaking plans for the checker -----------*- C++ -*-===//

#ifndef GTP_TEST_UNIT_PLAN_CHECKERTEST_H
#define GTP_TEST_UNIT_PLAN_CHECKERTEST_H

#include "PlanBuilder.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

#include <functional>

namespace gtp::plan::test {

inline std::string findings(const CheckReport &report) {
  std::string text;
  for (const Finding &finding : report.findings)
    text += "[" + finding.rule + "] " + finding.message + "\n";
  return text;
}

/// Makes the arena a window of every communicator.
inline void makeWindows(pb::Plan &plan) {
  plan.mutable_memory(0)->set_symmetric(true);
  for (pb::Communicator &communicator : *plan.mutable_communicators())
    communicator.set_needs_window(true);
}

inline void expectLegal(const pb::Plan &plan) {
  CheckReport report;
  Status status = checkPlan(plan, &report);
  EXPECT_TRUE(status.isOk()) << findings(report) << planToText(plan);
}

inline void expectFinding(const pb::Plan &plan, const std::string &rule,
                          const std::string &text = "") {
  CheckReport report;
  Status status = checkPlan(plan, &report);
  EXPECT_FALSE(status.isOk()) << "accepted, expected a finding of " << rule;
  EXPECT_TRUE(report.has(rule)) << "expected " << rule << ", found\n"
                                << findings(report);
  EXPECT_NE(findings(report).find(text), std::string::npos)
      << "expected '" << text << "', found\n"
      << findings(report);
}

/// Breaks a step and expects the rule.
inline void expectBroken(const std::function<void(pb::Plan &)> &change,
                         const std::string &rule, const std::string &text = "",
                         const StepOptions &options = {}) {
  pb::Plan plan = buildStep(options);
  change(plan);
  expectFinding(plan, rule, text);
}

/// Replaces a collective by a copy of its source, as if it were skipped.
inline void skip(pb::Plan &plan, const std::string &name) {
  pb::Operation *operation = findOperation(plan, name);
  pb::Copy copy;
  *copy.mutable_source() = operation->collective().sources(0);
  *copy.mutable_destination() = operation->collective().destinations(0);
  copy.mutable_destination()->clear_accumulate();
  *operation->mutable_copy() = copy;
}

/// Removes an operation that nobody waits for.
inline void erase(pb::Plan &plan, const std::string &name) {
  auto [region, index] = findPlace(plan, name);
  ASSERT_NE(region, nullptr) << name;
  region->mutable_operations()->DeleteSubrange(index, 1);
}

inline pb::Operand *operand(pb::Plan &plan, const std::string &name,
                            int index) {
  return findOperation(plan, name)->mutable_kernel()->mutable_operands(index);
}

inline pb::Collective *collective(pb::Plan &plan, const std::string &name) {
  return findOperation(plan, name)->mutable_collective();
}

/// The collective takes so many CTAs, all that its communicator allows.
inline void takeCtas(pb::Plan &plan, const std::string &name, uint32_t ctas) {
  pb::Collective &taking = *collective(plan, name);
  taking.set_ctas(ctas);
  plan.mutable_communicators(static_cast<int>(taking.communicator()))
      ->set_max_ctas(ctas);
}

inline uint32_t bufferNamed(const pb::Plan &plan, const std::string &name) {
  for (int i = 0; i < plan.buffers_size(); ++i)
    if (plan.strings(static_cast<int>(plan.buffers(i).name())) == name)
      return static_cast<uint32_t>(i);
  ADD_FAILURE() << "no buffer " << name;
  return 0;
}

inline StepOptions mesh(uint64_t dp, uint64_t gtp, uint64_t microbatches = 1) {
  StepOptions options;
  options.dp = dp;
  options.gtp = gtp;
  options.microbatches = microbatches;
  return options;
}

inline StepOptions tied() {
  StepOptions options;
  options.tied = true;
  return options;
}

inline StepOptions apart(uint64_t microbatches = 1) {
  StepOptions options;
  options.microbatches = microbatches;
  options.reuse = false;
  return options;
}

// Communicators of `buildStep`.
constexpr uint32_t gtpScatter = 1, dpReduce = 2, gtpScalar = 4;

} // namespace gtp::plan::test

#endif // GTP_TEST_UNIT_PLAN_CHECKERTEST_H
