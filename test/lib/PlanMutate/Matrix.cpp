//===- Matrix.cpp - All kinds of mutations over some plans ----------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/PlanFile.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

/// A kind that applies to fewer plans shows too little.
constexpr size_t kLeastPlans = 3;

struct Outcome {
  size_t mutants = 0;
  size_t accepted = 0;
  /// Mutants by the expected rule that refused them.
  std::map<std::string, size_t> refused;
  std::vector<std::string> problems;
};

std::string expectText(const Kind &kind) {
  switch (kind.expect) {
  case Expect::Refused:
    return "refused";
  case Expect::Legal:
    return "legal";
  case Expect::Either:
    return "either";
  case Expect::RanksDiffer:
    return "ranks";
  }
  return "";
}

std::string findingsText(const CheckReport &report) {
  std::string text;
  for (const Finding &finding : report.findings) {
    text += "\n      [" + finding.rule + "] " + finding.message;
    if (&finding == &report.findings[2])
      break;
  }
  return text.empty() ? " accepted" : text;
}

/// One mutant beside the plan it came from, on the last rank.
void judgeRanks(const Kind &kind, const pb::Plan &plan, const pb::Plan &mutant,
                Outcome &outcome) {
  std::vector<const pb::Plan *> ranks(
      static_cast<size_t>(rankCount(plan.mesh())), &plan);
  ranks.back() = &mutant;
  Status status = checkRanks(ranks);
  std::string rule(kind.rules.front());
  if (!status.isOk() && status.message().rfind("[" + rule + "]", 0) == 0)
    ++outcome.refused[rule];
  else
    outcome.problems.push_back(status.isOk() ? " accepted"
                                             : " " + status.message());
}

/// True when it was accepted as it may be.
bool judge(const Kind &kind, const pb::Plan &mutant, Outcome &outcome) {
  CheckReport report;
  bool legal = checkPlan(mutant, &report).isOk();
  auto rule = std::find_if(
      kind.rules.begin(), kind.rules.end(),
      [&](std::string_view name) { return report.has(std::string(name)); });
  if (legal && kind.expect != Expect::Refused) {
    ++outcome.accepted;
    return true;
  }
  if (!legal && rule != kind.rules.end())
    ++outcome.refused[std::string(*rule)];
  else
    outcome.problems.push_back(findingsText(report));
  return false;
}

/// Kinds change program 0; this makes them change the evaluation, and puts it
/// back behind the training step.
std::vector<pb::Plan> makeInEvaluation(const Kind &kind, pb::Plan plan) {
  plan.mutable_programs()->SwapElements(0, 1);
  std::vector<pb::Plan> made = kind.make(plan);
  for (pb::Plan &mutant : made) {
    mutant.mutable_programs()->SwapElements(0, 1);
    restateClaims(mutant);
  }
  return made;
}

std::string cell(const Outcome &outcome) {
  if (!outcome.problems.empty())
    return "ESCAPED";
  if (!outcome.mutants)
    return "-";
  std::string text = std::to_string(outcome.mutants);
  if (outcome.accepted && outcome.accepted < outcome.mutants)
    text += "/" + std::to_string(outcome.accepted);
  return text;
}

} // namespace

std::vector<Kind> mutate::allKinds() {
  std::vector<Kind> kinds;
  for (auto part :
       {orderKinds, memoryKinds, weightKinds, ownPieceKinds, transportKinds,
        gradientKinds, microbatchKinds, scalarKinds, claimKinds, harmlessKinds})
    for (Kind &kind : part())
      kinds.push_back(std::move(kind));
  return kinds;
}

int mutate::runMatrix(const std::vector<std::string> &names,
                      const std::vector<pb::Plan> &plans,
                      const std::string &folder, int keepEach) {
  std::printf("%-24s %-8s", "kind", "expected");
  for (const std::string &name : names)
    std::printf(" %*s", std::max(7, static_cast<int>(name.size())),
                name.c_str());
  std::printf("  by rule\n");
  int passed = 0, failed = 0;
  size_t illegal = 0, harmless = 0, mutants = 0;
  for (const Kind &kind : allKinds()) {
    std::printf("%-24s %-8s", std::string(kind.name).c_str(),
                expectText(kind).c_str());
    std::map<std::string, size_t> total;
    std::string problems;
    size_t applied = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
      Outcome outcome;
      bool ranks = kind.expect == Expect::RanksDiffer;
      std::vector<pb::Plan> made;
      if (!ranks || rankCount(plans[i].mesh()) > 1)
        made = kind.make(plans[i]);
      // Claims are those of the whole plan.
      bool claims = std::find(kind.rules.begin(), kind.rules.end(), "peak") !=
                        kind.rules.end() ||
                    std::find(kind.rules.begin(), kind.rules.end(), "budget") !=
                        kind.rules.end();
      if (plans[i].programs_size() > 1 && !ranks && !claims)
        for (pb::Plan &mutant : makeInEvaluation(kind, plans[i]))
          made.push_back(std::move(mutant));
      outcome.mutants = made.size();
      for (size_t m = 0; m < made.size(); ++m) {
        if (ranks) {
          judgeRanks(kind, plans[i], made[m], outcome);
        } else if (judge(kind, made[m], outcome) && !folder.empty() &&
                   outcome.accepted <= static_cast<size_t>(keepEach)) {
          std::string path = folder + "/" + names[i] + "." +
                             std::string(kind.name) + "." + std::to_string(m) +
                             ".gtpplan";
          if (Status saved = savePlan(made[m], path); !saved.isOk())
            outcome.problems.push_back(" " + saved.message());
        }
      }
      applied += !made.empty();
      mutants += made.size();
      for (const auto &[rule, count] : outcome.refused)
        total[rule] += count;
      if (outcome.accepted)
        total["accepted"] += outcome.accepted;
      for (const std::string &problem : outcome.problems)
        problems += "    " + names[i] + ":" + problem + "\n";
      std::printf(" %*s", std::max(7, static_cast<int>(names[i].size())),
                  cell(outcome).c_str());
    }
    for (const auto &[rule, count] : total)
      std::printf("  %s %zu", rule.c_str(), count);
    std::printf("\n");
    if (applied < std::min(kLeastPlans, plans.size()))
      problems += "    applies to " + std::to_string(applied) +
                  " plans, expected at least " +
                  std::to_string(std::min(kLeastPlans, plans.size())) + "\n";
    std::fputs(problems.c_str(), stdout);
    problems.empty() ? ++passed : ++failed;
    (kind.expect == Expect::Legal ? harmless : illegal) += problems.empty();
  }
  std::printf("%zu plans, %zu mutants: %zu kinds of mutations refused by their "
              "rule, %zu kinds of harmless rewrites accepted\n",
              plans.size(), mutants, illegal, harmless);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed;
}
