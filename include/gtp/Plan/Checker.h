//===- Checker.h - Whether a plan is legal --------------------------------===//
//
// The independent checker: it reads the plan and the kernel registry and trusts
// no label that the compiler wrote. docs/plan-format.md numbers the rules; each
// finding names one. What passes has no race, reads defined bytes only, reads
// every weight in this step's version, reduces each gradient contribution
// exactly once, issues collectives in one order, and fits its claims. That is
// shown against the kernels' declared meaning; what kernels compute is for
// tests.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_CHECKER_H
#define GTP_PLAN_CHECKER_H

#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gtp::plan {

/// An operation, by position.
struct OperationPlace {
  uint32_t region = 0;
  uint32_t operation = 0;
  uint32_t program = 0;
};

/// A violated rule, where and by what.
struct Finding {
  std::string rule; ///< "race"; see docs/plan-format.md
  /// Names every place in words, those below included.
  std::string message;
  /// What it is about; none for a table or a whole region.
  std::optional<OperationPlace> operation = std::nullopt;
  /// The operation that the first one is at odds with.
  std::optional<OperationPlace> other = std::nullopt;
};

/// What a check found and counted.
struct CheckReport {
  /// In the order found, at most `kMaxFindings`.
  std::vector<Finding> findings;
  uint64_t operations = 0;
  uint64_t collectives = 0;
  uint64_t waits = 0;
  /// What `max_live_bytes` and `gathered_peak_bytes` of a legal plan's claims
  /// are.
  uint64_t liveBytes = 0;
  uint64_t gatheredBytes = 0;

  /// Whether a finding names the rule.
  bool has(const std::string &rule) const {
    for (const Finding &finding : findings)
      if (finding.rule == rule)
        return true;
    return false;
  }
};

/// Later findings are mostly consequences of earlier ones.
constexpr size_t kMaxFindings = 32;

/// Checks the plan of one rank, which is every rank's. The error is the first
/// finding and how many more there are; `report`, when given, has them all.
Status checkPlan(const pb::Plan &plan, CheckReport *report = nullptr);

/// Checks that ranks with different plans agree on what they do together.
/// `plans` has a plan a rank, each of which passed `checkPlan`; ranks that
/// share a plan pass the same pointer.
Status checkRanks(const std::vector<const pb::Plan *> &plans);

} // namespace gtp::plan

#endif // GTP_PLAN_CHECKER_H
