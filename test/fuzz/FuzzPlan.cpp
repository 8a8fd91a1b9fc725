//===- FuzzPlan.cpp - Damaged plans, and rewritten ones -------------------===//
//
// Half of the cases keep the hash of the plan that they were made from, and so
// must be refused. The others redo it, and get as far as the checker lets them:
// what it accepts runs on the host, and must end well; what is still the same
// program must end with the same bits.
//
//===----------------------------------------------------------------------===//

#include "../unit/Plan/PlanBuilder.h"
#include "../unit/Runtime/TemporaryFolder.h"
#include "Fuzzer.h"
#include "Mutate.h"
#include "MutatePlan.h"
#include "PlanRun.h"
#include "RaceAnnotations.h"

#include "gtp-rt/ParameterStore.h"
#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"

#include <google/protobuf/stubs/logging.h>

#include <optional>

using namespace gtp;
using namespace gtp::fuzz;
using namespace gtp::plan;

namespace {

struct Seed {
  std::string bytes;
  pb::Plan plan;
  /// What it computes; none when the runtime does not take it.
  std::optional<RunResult> result;
};

class PlanFuzzer : public Fuzzer {
public:
  PlanFuzzer();
  void run(Case &c) override;

private:
  void damagedFile(Case &c, const Seed &seed);
  void rewrittenPlan(Case &c, const Seed &seed);
  /// What reads a plan before a run; whether the checker accepts it.
  bool check(Case &c, const pb::Plan &plan);
  void execute(Case &c, const Seed &seed, const pb::Plan &plan);

  gtp::test::TemporaryFolder folder;
  std::string data;
  std::vector<Seed> seeds;
};

} // namespace

PlanFuzzer::PlanFuzzer() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += static_cast<char>(i * 7 % 10);
  data = folder.write("data.bin", text);
  std::vector<std::string> files = compiledPlans();
  for (uint64_t microbatches : {1, 3})
    for (bool tied : {false, true}) {
      plan::test::StepOptions options;
      options.dp = 2;
      options.gtp = 3;
      options.microbatches = microbatches;
      options.tied = tied;
      pb::Plan plan = plan::test::buildStep(options);
      sealPlan(plan);
      files.push_back(serializePlan(plan));
    }
  for (std::string &bytes : files) {
    Seed seed;
    seed.plan = *parsePlan(bytes);
    seed.bytes = std::move(bytes);
    bool ran = false;
    auto result = runPlan(seed.plan, data, RunLimits(), &ran);
    if (result.isOk())
      seed.result = *result;
    seeds.push_back(std::move(seed));
  }
}

bool PlanFuzzer::check(Case &c, const pb::Plan &plan) {
  if (planToText(plan).empty())
    c.fail("the plan prints as nothing");
  CheckReport report;
  Status status = checkPlan(plan, &report);
  if (status.isOk() != report.findings.empty() ||
      report.findings.size() > kMaxFindings)
    c.fail("the verdict and the " + std::to_string(report.findings.size()) +
           " findings disagree");
  // The runtime trusts no plan either.
  auto run = rt::RunPlan::create(plan);
  if (run.isOk()) {
    for (uint64_t rank = 0; rank < run->ranks() && rank < 8; ++rank)
      if (run->dataRank(rank) >= run->dataRanks())
        c.fail("rank " + std::to_string(rank) + " reads for no data rank");
    auto store = rt::ParameterStore::create(*run);
    if (!store.isOk() && store.message().empty())
      c.fail("the runtime refuses without a sentence");
  }
  return status.isOk();
}

void PlanFuzzer::damagedFile(Case &c, const Seed &seed) {
  std::string bytes = seed.bytes;
  if (c.random.below(2)) {
    mutateBytes(bytes, c.random);
  } else {
    pb::Plan plan = seed.plan;
    mutateMessage(plan, c.random);
    bytes = serializePlan(plan);
  }
  c.keep(bytes);
  auto plan = parsePlan(bytes);
  if (!plan.isOk()) {
    if (plan.message().empty())
      c.fail("refused without a sentence");
    return;
  }
  // A few spellings, such as 3 for true, mean the plan that was written.
  c.accepted = check(c, *plan);
  if (serializePlan(*plan) != seed.bytes)
    c.fail("a plan was read whose hash is another's");
}

void PlanFuzzer::execute(Case &c, const Seed &seed, const pb::Plan &plan) {
  RunLimits limits;
  // Nobody vouches for what was refused: it may do nonsense, for a moment, and
  // must not touch what is not its own.
  if (!c.accepted) {
    limits.steps = 1;
    limits.secondsAStep = 0.02;
  }
  auto result = runPlan(plan, data, limits, &c.ran);
  if (!c.accepted || !c.ran) {
    c.ran = false;
    return;
  }
  if (!result.isOk())
    c.fail("the plan was accepted and does not run: " + result.message());
  else if (seed.result && sameProgram(seed.plan, plan) &&
           result->bits != seed.result->bits)
    c.fail("the same program on another schedule computes other bits");
}

void PlanFuzzer::rewrittenPlan(Case &c, const Seed &seed) {
  pb::Plan plan = seed.plan;
  switch (c.random.below(4)) {
  case 0: {
    std::string bytes = seed.bytes;
    mutateBytes(bytes, c.random);
    google::protobuf::LogSilencer silence;
    if (!plan.ParseFromString(bytes))
      plan = seed.plan;
    break;
  }
  case 1:
    for (uint64_t changes = 1 + c.random.below(3); changes-- > 0;)
      mutateMessage(plan, c.random);
    break;
  default: {
    mutateSchedule(plan, c.random);
    // How many bytes are then live at once is not what is tried here.
    CheckReport report;
    (void)checkPlan(plan, &report);
    plan.mutable_claims()->set_max_live_bytes(report.liveBytes);
    plan.mutable_claims()->set_gathered_peak_bytes(report.gatheredBytes);
  }
  }
  sealPlan(plan);
  std::string bytes = serializePlan(plan);
  c.keep(bytes);
  auto parsed = parsePlan(bytes);
  // Text that is not UTF-8 was serialized, and does not parse.
  if (!parsed.isOk())
    return;
  c.accepted = check(c, *parsed);
#ifdef GTP_THREAD_SANITIZER
  // What was refused may race.
  if (!c.accepted)
    return;
#endif
  if (c.accepted || c.random.below(16) == 0)
    execute(c, seed, *parsed);
}

void PlanFuzzer::run(Case &c) {
  const Seed &seed = c.random.pick(seeds);
  if (c.number % 2)
    damagedFile(c, seed);
  else
    rewrittenPlan(c, seed);
}

std::unique_ptr<Fuzzer> gtp::fuzz::createPlanFuzzer() {
  return std::make_unique<PlanFuzzer>();
}

#ifndef GTP_FUZZ_COMPILER
std::vector<std::string> gtp::fuzz::compiledPlans() { return {}; }
#endif
