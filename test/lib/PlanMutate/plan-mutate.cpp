//===- plan-mutate.cpp - Breaks plans for tests ---------------------------===//
//
// `gtp-plan-mutate PLAN` prints a line a wait: its number and place.
// `gtp-plan-mutate PLAN --drop-wait=N OUT` writes the plan without it, claims
// and hash redone.
// `gtp-plan-mutate --matrix=FOLDER PLAN...` runs every kind of mutation over
// the plans and says which rule refused it; some of the accepted ones are
// written to FOLDER. Exit status 1 when a kind is not judged as expected.
// `gtp-plan-mutate --kind=NAME PLAN OUT` writes the kind's first mutant.
//
// For test/Run/races.py and test/Run/mutations.py.
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/PlanFile.h"

#include <cstdlib>
#include <iostream>
#include <string>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::mutate;

static int fail(const std::string &message) {
  std::cerr << "gtp-plan-mutate: error: " << message << "\n";
  return 1;
}

static int listWaits(const pb::Plan &plan) {
  int number = 0;
  for (const Site &site : waitsOf(plan)) {
    const pb::Operation &operation = at(plan, site);
    std::cout << number++ << " region " << site.region << " operation "
              << site.operation << " ("
              << plan.strings(static_cast<int>(operation.source()))
              << ") waits for event " << operation.waits(site.part).event()
              << "\n";
  }
  return 0;
}

static int save(const pb::Plan &plan, const std::string &path) {
  Status saved = savePlan(plan, path);
  return saved.isOk() ? 0 : fail(saved.message());
}

static int dropWait(pb::Plan &plan, const std::string &number,
                    const std::string &path) {
  std::vector<Site> waits = waitsOf(plan);
  size_t wanted = std::strtoull(number.c_str(), nullptr, 10);
  if (wanted >= waits.size())
    return fail("the plan has no wait " + number);
  at(plan, waits[wanted])
      .mutable_waits()
      ->DeleteSubrange(waits[wanted].part, 1);
  restateClaims(plan);
  return save(plan, path);
}

static int writeKind(const pb::Plan &plan, const std::string &name,
                     const std::string &path) {
  for (const Kind &kind : allKinds())
    if (kind.name == name) {
      std::vector<pb::Plan> mutants = kind.make(plan);
      return mutants.empty() ? fail(name + " does not apply to the plan")
                             : save(mutants.front(), path);
    }
  return fail("no kind of mutation is called '" + name + "'");
}

/// "a/b/llama.gtpplan" is "llama".
static std::string stem(const std::string &path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  return name.substr(0, name.find_last_of('.'));
}

int main(int argc, char **argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc), paths;
  std::string matrix, kind, wait;
  for (const std::string &argument : arguments) {
    auto value = [&](const std::string &option, std::string &result) {
      if (argument.rfind(option, 0) != 0)
        return false;
      result = argument.substr(option.size());
      return true;
    };
    if (!value("--matrix=", matrix) && !value("--kind=", kind) &&
        !value("--drop-wait=", wait)) {
      if (argument.rfind("--", 0) == 0)
        return fail("unknown option '" + argument + "'");
      paths.push_back(argument);
    }
  }
  bool writes = !wait.empty() || !kind.empty();
  if (paths.size() != (writes ? 2 : 1) && (matrix.empty() || paths.empty()))
    return fail("expected PLAN, PLAN OUT with --drop-wait=N or --kind=NAME, or "
                "PLAN... with --matrix=FOLDER");

  std::vector<pb::Plan> plans;
  std::vector<std::string> names;
  for (const std::string &path : paths) {
    if (writes && !plans.empty())
      break;
    StatusOr<pb::Plan> plan = loadPlan(path);
    if (!plan.isOk())
      return fail(plan.message());
    plans.push_back(*plan);
    names.push_back(stem(path));
  }
  if (!matrix.empty())
    return runMatrix(names, plans, matrix, /*keepEach=*/1) ? 1 : 0;
  if (!wait.empty())
    return dropWait(plans.front(), wait, paths[1]);
  if (!kind.empty())
    return writeKind(plans.front(), kind, paths[1]);
  return listWaits(plans.front());
}
