//===- LoadedPlans.h - The plans of a command line ------------------------===//

#ifndef GTP_RT_LIB_LOADEDPLANS_H
#define GTP_RT_LIB_LOADEDPLANS_H

#include "gtp-rt/Options.h"
#include "gtp/Plan/plan.pb.h"

#include <map>
#include <memory>

namespace gtp::rt {

/// The plan, and those that `--rank-plan` gives to single ranks.
class LoadedPlans {
public:
  /// `built`, when given, is the plan, instead of the file.
  static StatusOr<LoadedPlans> load(const RunOptions &options,
                                    const plan::pb::Plan *built);

  const plan::pb::Plan &plan() const { return *main; }

  /// Runs the checker, on all ranks' plans if they differ; what it found, for
  /// people: "checked in 3 ms".
  StatusOr<std::string> check(const RunOptions &options) const;
  /// An error when a rank has another plan: no backend runs that.
  Status checkOnePlan(const RunOptions &options) const;

private:
  std::unique_ptr<plan::pb::Plan> main;
  std::map<uint64_t, std::unique_ptr<plan::pb::Plan>> ofRank;
};

} // namespace gtp::rt

#endif // GTP_RT_LIB_LOADEDPLANS_H
