//===- ClaimKinds.cpp - What a plan says of itself ------------------------===//

#include "Mutations.h"

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

using Change = void (*)(pb::Claims &);

/// Claims are what is broken, so nothing restates them.
std::vector<pb::Plan> changed(const pb::Plan &plan,
                              std::initializer_list<Change> changes) {
  std::vector<pb::Plan> mutants;
  for (Change change : changes) {
    mutants.push_back(plan);
    change(*mutants.back().mutable_claims());
  }
  return mutants;
}

std::vector<pb::Plan> overstatePeak(const pb::Plan &plan) {
  return changed(plan, {[](pb::Claims &claims) {
                   claims.set_max_live_bytes(claims.max_live_bytes() + 256);
                 }});
}
std::vector<pb::Plan> understatePeak(const pb::Plan &plan) {
  return changed(plan, {[](pb::Claims &claims) {
                   claims.set_max_live_bytes(claims.max_live_bytes() - 256);
                 }});
}
std::vector<pb::Plan> misstateGathered(const pb::Plan &plan) {
  if (plan.claims().gathered_peak_bytes() == 0)
    return {};
  return changed(
      plan,
      {[](pb::Claims &claims) {
         claims.set_gathered_peak_bytes(claims.gathered_peak_bytes() + 256);
       },
       [](pb::Claims &claims) {
         claims.set_gathered_peak_bytes(claims.gathered_peak_bytes() - 256);
       }});
}
std::vector<pb::Plan> misstatePersistent(const pb::Plan &plan) {
  return changed(
      plan, {[](pb::Claims &claims) {
               claims.set_persistent_bytes(claims.persistent_bytes() + 256);
             },
             [](pb::Claims &claims) {
               claims.set_persistent_bytes(claims.persistent_bytes() - 256);
             }});
}
std::vector<pb::Plan> misstateArena(const pb::Plan &plan) {
  return changed(plan, {[](pb::Claims &claims) {
                          claims.set_arena_bytes(claims.arena_bytes() + 256);
                        },
                        [](pb::Claims &claims) {
                          claims.set_arena_bytes(claims.arena_bytes() - 256);
                        }});
}

std::vector<pb::Plan> growArena(const pb::Plan &plan) {
  std::vector<pb::Plan> mutants = {plan};
  pb::MemoryRegion &arena = *mutants[0].mutable_memory(0);
  arena.set_size(arena.size() + arena.alignment());
  mutants[0].mutable_claims()->set_arena_bytes(arena.size());
  return mutants;
}

std::vector<pb::Plan> lowerBudget(const pb::Plan &plan) {
  return changed(plan, {[](pb::Claims &claims) {
                   claims.set_budget_bytes(claims.arena_bytes() +
                                           claims.overhead_bytes() - 1);
                 }});
}

} // namespace

std::vector<Kind> mutate::claimKinds() {
  return {
      {"overstate-peak",
       "256 bytes more are claimed to be live at once",
       Expect::Refused,
       {"peak"},
       overstatePeak},
      {"understate-peak",
       "256 bytes fewer are claimed to be live at once",
       Expect::Refused,
       {"peak"},
       understatePeak},
      {"misstate-gathered",
       "the claim of gathered bytes is wrong",
       Expect::Refused,
       {"peak"},
       misstateGathered},
      {"misstate-persistent",
       "the claim of persistent bytes is wrong",
       Expect::Refused,
       {"peak"},
       misstatePersistent},
      {"misstate-arena",
       "the claim of the arena is wrong",
       Expect::Refused,
       {"peak"},
       misstateArena},
      {"grow-arena",
       "the arena is larger than its buffers need",
       Expect::Refused,
       {"peak"},
       growArena},
      {"lower-budget",
       "the budget is a byte too small",
       Expect::Refused,
       {"budget"},
       lowerBudget},
  };
}
