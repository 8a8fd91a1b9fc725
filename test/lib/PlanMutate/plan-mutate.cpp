//===- plan-mutate.cpp - Removes one wait of a plan -----------------------===//
//
// `gtp-plan-mutate PLAN` prints a line a wait: its number and place.
// `gtp-plan-mutate PLAN --drop-wait=N OUT` writes the plan without it, the hash
// redone.
//
// For test/Run/races.py.
//
//===----------------------------------------------------------------------===//

#include "gtp/Plan/PlanFile.h"

#include <cstdlib>
#include <iostream>
#include <string>

using namespace gtp;

/// Calls visit(number, region, index, operation, wait index) for every wait in
/// order, until it returns true.
template <typename Visitor>
static void forEachWait(plan::pb::Plan &plan, Visitor visit) {
  int number = 0;
  for (auto &program : *plan.mutable_programs())
    for (int r = 0; r < program.regions_size(); ++r) {
      auto &region = *program.mutable_regions(r);
      for (int i = 0; i < region.operations_size(); ++i) {
        auto &operation = *region.mutable_operations(i);
        for (int w = 0; w < operation.waits_size(); ++w)
          if (visit(number++, r, i, operation, w))
            return;
      }
    }
}

static int fail(const std::string &message) {
  std::cerr << "gtp-plan-mutate: error: " << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 4)
    return fail("expected PLAN, or PLAN --drop-wait=N OUT");
  auto loaded = plan::loadPlan(argv[1]);
  if (!loaded.isOk())
    return fail(loaded.message());
  plan::pb::Plan &plan = *loaded;
  if (argc == 2) {
    forEachWait(plan, [&](int number, int region, int index, auto &operation,
                          int wait) {
      std::cout << number << " region " << region << " operation " << index
                << " (" << plan.strings(operation.source())
                << ") waits for event " << operation.waits(wait).event()
                << "\n";
      return false;
    });
    return 0;
  }

  const std::string option = argv[2], prefix = "--drop-wait=";
  if (option.rfind(prefix, 0) != 0)
    return fail("expected --drop-wait=N, found " + option);
  const int wanted = std::atoi(option.c_str() + prefix.size());
  bool found = false;
  forEachWait(plan, [&](int number, int, int, auto &operation, int wait) {
    if (number != wanted)
      return false;
    operation.mutable_waits()->DeleteSubrange(wait, 1);
    return found = true;
  });
  if (!found)
    return fail("the plan has no wait " + std::to_string(wanted));
  Status saved = plan::savePlan(plan, argv[3]);
  return saved.isOk() ? 0 : fail(saved.message());
}
