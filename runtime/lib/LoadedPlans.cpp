//===- LoadedPlans.cpp - The plans of a command line ----------------------===//

#include "LoadedPlans.h"
#include "gtp/Plan/Checker.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/PlanFile.h"

#include <chrono>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

static StatusOr<std::unique_ptr<pb::Plan>> loadOne(const std::string &path) {
  GTP_ASSIGN_OR_RETURN(pb::Plan plan, loadPlan(path));
  return std::make_unique<pb::Plan>(std::move(plan));
}

StatusOr<LoadedPlans> LoadedPlans::load(const RunOptions &options,
                                        const pb::Plan *built) {
  LoadedPlans plans;
  if (built) {
    plans.main = std::make_unique<pb::Plan>(*built);
  } else {
    GTP_ASSIGN_OR_RETURN(plans.main, loadOne(options.plan));
  }
  for (const auto &[rank, path] : options.rankPlans) {
    GTP_ASSIGN_OR_RETURN(plans.ofRank[rank], loadOne(path));
    Status mesh = verifyMesh(plans.main->mesh());
    if (!mesh.isOk())
      return std::move(mesh).in(options.plan);
    if (uint64_t ranks = rankCount(plans.main->mesh()); rank >= ranks)
      return Status::error("--rank-plan=" + std::to_string(rank) + ":" + path +
                           ": the mesh of " + options.plan +
                           " has ranks 0 to " + std::to_string(ranks - 1));
  }
  return plans;
}

StatusOr<std::string> LoadedPlans::check(const RunOptions &options) const {
  if (options.unchecked)
    return std::string("not checked");
  auto start = std::chrono::steady_clock::now();
  CheckReport report;
  Status status = checkPlan(*main, &report);
  if (!status.isOk())
    return std::move(status).in(options.plan);
  for (const auto &[rank, path] : options.rankPlans) {
    status = checkPlan(*ofRank.at(rank));
    if (!status.isOk())
      return std::move(status).in(path);
  }
  if (!ofRank.empty()) {
    std::vector<const pb::Plan *> plans(rankCount(main->mesh()), main.get());
    for (const auto &[rank, plan] : ofRank)
      plans[rank] = plan.get();
    status = checkRanks(plans);
    if (!status.isOk())
      return std::move(status).in(options.plan + " with --rank-plan");
  }
  auto time = std::chrono::steady_clock::now() - start;
  auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return std::to_string(report.operations) + " operations, " +
         std::to_string(report.collectives) + " collectives and " +
         std::to_string(report.waits) + " waits checked in " +
         std::to_string(milliseconds) + " ms";
}

Status LoadedPlans::checkOnePlan(const RunOptions &options) const {
  for (const auto &[rank, path] : options.rankPlans)
    if (!(hashPlan(*ofRank.at(rank)) == hashPlan(*main)))
      return Status::error("--rank-plan=" + std::to_string(rank) + ":" + path +
                           ": the host backend runs one plan on all ranks; "
                           "--verify-only checks different ones together");
  return Status::ok();
}
