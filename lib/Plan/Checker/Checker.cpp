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
    deriveAccesses(context);
    checkAliases(context);
    checkOrder(context);
    checkMemory(context);
    checkValues(context);
  }
  if (result.findings.empty())
    return Status::ok();
  const Finding &first = result.findings.front();
  std::string message = "[" + first.rule + "] " + first.message;
  if (size_t more = result.findings.size() - 1)
    message += " (and " + std::to_string(more) + " more)";
  return Status::error(message);
}
