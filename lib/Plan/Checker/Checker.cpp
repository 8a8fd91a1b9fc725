//===- Checker.cpp - Whether a plan is legal ------------------------------===//

#include "Context.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

Status gtp::plan::checkPlan(const pb::Plan &plan, CheckReport *report) {
  CheckReport local;
  CheckReport &result = report ? *report : local;
  result = CheckReport();
  Context context(plan, result);
  checkStructure(context);
  if (result.findings.empty()) {
    uint32_t programs = static_cast<uint32_t>(plan.programs_size());
    for (uint32_t index = 0; index < programs && !context.full(); ++index) {
      context.programIndex = index;
      deriveAccesses(context);
      checkAliases(context);
      checkReadOnly(context);
      checkOrder(context);
      countLive(context);
      checkValues(context);
    }
    checkMemory(context);
  }
  if (result.findings.empty())
    return Status::ok();
  const Finding &first = result.findings.front();
  std::string message = "[" + first.rule + "] " + first.message;
  if (size_t more = result.findings.size() - 1)
    message += " (and " + std::to_string(more) + " more)";
  return Status::error(message);
}
