//===- EvalProgramTest.cpp ------------------------------------------------===//
//
// A program that only evaluates, beside the training step: legal ones pass, and
// each way to break one is found by the rule it breaks.
//
//===----------------------------------------------------------------------===//

#include "CheckerTest.h"

#include <set>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

namespace {

/// Keeps of a region the operations of these sources, and of their waits those
/// that still have an event.
void keepOnly(const pb::Plan &plan, pb::Region &region,
              const std::set<std::string> &sources) {
  std::set<uint32_t> recorded;
  pb::Region kept = region;
  kept.clear_operations();
  for (pb::Operation &operation : *region.mutable_operations()) {
    if (!sources.count(plan.strings(static_cast<int>(operation.source()))))
      continue;
    pb::Operation &copy = *kept.add_operations() = operation;
    copy.clear_waits();
    for (const pb::Wait &wait : operation.waits())
      if (recorded.count(wait.event()))
        *copy.add_waits() = wait;
    if (operation.event_plus1())
      recorded.insert(operation.event_plus1() - 1);
  }
  // Events that are left, numbered anew.
  auto number = [&](uint32_t event) {
    return static_cast<uint32_t>(
        std::distance(recorded.begin(), recorded.find(event)));
  };
  for (pb::Operation &operation : *kept.mutable_operations()) {
    if (operation.event_plus1())
      operation.set_event_plus1(number(operation.event_plus1() - 1) + 1);
    for (pb::Wait &wait : *operation.mutable_waits())
      wait.set_event(number(wait.event()));
  }
  kept.set_events(static_cast<uint32_t>(recorded.size()));
  region = kept;
}

/// The forward half of `buildStep` as program 1, over the same buffers.
pb::Plan buildBoth(const StepOptions &options = {}) {
  pb::Plan plan = buildStep(options);
  pb::Program *eval = plan.add_programs();
  *eval = plan.programs(0);
  eval->set_kind(pb::Program::EVAL);
  keepOnly(plan, *eval->mutable_regions(0), {"count_labels", "count.reduce"});
  keepOnly(plan, *eval->mutable_regions(1),
           {"table.gather", "embedding", "rms_norm", "head.gather", "linear",
            "cross_entropy"});
  keepOnly(plan, *eval->mutable_regions(2), {"loss.reduce"});
  eval->mutable_regions(2)->set_kind(pb::Region::ONCE);
  eval->mutable_inputs()->RemoveLast();          // hyper
  eval->mutable_outputs()->DeleteSubrange(1, 1); // grad_norm
  return plan;
}

pb::Region &region(pb::Plan &plan, int index) {
  return *plan.mutable_programs(1)->mutable_regions(index);
}

/// The operation of the evaluation whose source is `name`.
pb::Operation &inEval(pb::Plan &plan, const std::string &name) {
  for (pb::Region &region : *plan.mutable_programs(1)->mutable_regions())
    for (pb::Operation &operation : *region.mutable_operations())
      if (plan.strings(static_cast<int>(operation.source())) == name)
        return operation;
  ADD_FAILURE() << "no operation " << name;
  return *region(plan, 0).mutable_operations(0);
}

void eraseInEval(pb::Plan &plan, const std::string &name) {
  std::set<std::string> others(plan.strings().begin(), plan.strings().end());
  others.erase(name);
  for (pb::Region &region : *plan.mutable_programs(1)->mutable_regions())
    keepOnly(plan, region, others);
}

void addFill(pb::Plan &plan, uint32_t buffer, uint64_t elements) {
  pb::Operand *target =
      region(plan, 0).add_operations()->mutable_fill()->mutable_destination();
  target->set_buffer(buffer);
  target->set_dtype(pb::F32);
  target->add_dims(elements);
}

using Change = std::function<void(pb::Plan &)>;

void expectBrokenEval(const Change &change, const std::string &rule,
                      const std::string &text, StepOptions options = {}) {
  options.gtp = 2;
  pb::Plan plan = buildBoth(options);
  expectLegal(plan);
  change(plan);
  expectFinding(plan, rule, text);
}

} // namespace

TEST(EvalProgram, LegalOnesPass) {
  for (auto [dp, gtp] : {std::pair(1, 1), std::pair(1, 3), std::pair(3, 4)})
    for (uint64_t microbatches : {1, 2, 1000})
      for (bool tied : {false, true})
        for (bool bf16 : {false, true}) {
          StepOptions options;
          options.dp = static_cast<uint64_t>(dp);
          options.gtp = static_cast<uint64_t>(gtp);
          options.microbatches = microbatches;
          options.tied = tied;
          options.bf16 = bf16;
          expectLegal(buildBoth(options));
        }
}

TEST(EvalProgram, ChangesNothingThatPersists) {
  for (const char *state : {"table.m", "gain.compute", "head.compute"})
    expectBrokenEval(
        [&](pb::Plan &plan) {
          uint32_t buffer = bufferNamed(plan, state);
          addFill(plan, buffer,
                  plan.buffers(static_cast<int>(buffer)).size() / 4);
        },
        "read-only", "EVAL, region 0 (ONCE)");
  // The training step's own update is not one that an evaluation may have.
  expectBrokenEval(
      [](pb::Plan &plan) {
        *region(plan, 2).add_operations() = *findOperation(plan, "adamw.0");
      },
      "read-only",
      ", which lives across steps: only the training step may change weights "
      "and states");
  expectBrokenEval(
      [](pb::Plan &plan) {
        *plan.mutable_programs(1)->add_regions() = plan.programs(0).regions(2);
      },
      "structure", "an evaluation has regions once and body only");
}

TEST(EvalProgram, StartsFromWhatPersistsAndItsInputs) {
  // What the training step left in an output or a transient is not there.
  expectBrokenEval(
      [](pb::Plan &plan) {
        eraseInEval(plan, "count_labels");
        eraseInEval(plan, "count.reduce");
      },
      "undefined-read", "EVAL, region 1 (BODY)");
  expectBrokenEval([](pb::Plan &plan) { eraseInEval(plan, "embedding"); },
                   "undefined-read", "buffer");
  // Nor is an input of another program.
  expectBrokenEval(
      [](pb::Plan &plan) {
        pb::Copy *copy = region(plan, 0).add_operations()->mutable_copy();
        copy->mutable_source()->set_buffer(bufferNamed(plan, "hyper"));
        copy->mutable_source()->set_dtype(pb::F32);
        copy->mutable_source()->add_dims(1);
        *copy->mutable_destination() = copy->source();
        copy->mutable_destination()->set_buffer(bufferNamed(plan, "dloss"));
      },
      "undefined-read", "'hyper'");
}

TEST(EvalProgram, ReadsWholeWeightsOfThisVersion) {
  expectBrokenEval([](pb::Plan &plan) { eraseInEval(plan, "table.gather"); },
                   "undefined-read", "reads 'table' in buffer");
  expectBrokenEval(
      [](pb::Plan &plan) {
        inEval(plan, "head.gather")
            .mutable_collective()
            ->mutable_sources(0)
            ->set_buffer(bufferNamed(plan, "table.compute"));
      },
      "weight-version", "found the whole of parameter 'table'");
}

TEST(EvalProgram, OutputsAreWhole) {
  expectBrokenEval(
      [](pb::Plan &plan) {
        eraseInEval(plan, "loss.reduce");
        inEval(plan, "cross_entropy")
            .mutable_kernel()
            ->mutable_operands(3)
            ->set_buffer(bufferNamed(plan, "loss"));
      },
      "partial", "EVAL: at its end, buffer");
  expectBrokenEval([](pb::Plan &plan) { eraseInEval(plan, "loss.reduce"); },
                   "undefined-read", "EVAL: at its end, buffer");
}

TEST(EvalProgram, HasNoRaces) {
  expectBrokenEval([](pb::Plan &plan) { inEval(plan, "linear").clear_waits(); },
                   "race", "EVAL, region 1 (BODY), operation 3 (head.gather");
  pb::Plan plan = buildBoth();
  inEval(plan, "linear").clear_waits();
  CheckReport report;
  EXPECT_FALSE(checkPlan(plan, &report).isOk());
  ASSERT_TRUE(report.findings.front().operation);
  EXPECT_EQ(report.findings.front().operation->program, 1u);
}

TEST(EvalProgram, ClaimsCoverAllPrograms) {
  // A buffer that only the evaluation touches, and that it needs most.
  auto grow = [](pb::Plan &plan) {
    pb::Buffer *buffer = plan.add_buffers();
    uint64_t arena = plan.memory(0).size();
    buffer->set_offset(arena);
    buffer->set_size(1 << 20);
    plan.mutable_memory(0)->set_size(arena + (1 << 20));
    plan.mutable_claims()->set_arena_bytes(arena + (1 << 20));
    addFill(plan, static_cast<uint32_t>(plan.buffers_size() - 1), 1 << 18);
  };
  expectBrokenEval(grow, "peak", "a largest set of live buffers");
  pb::Plan plan = buildBoth();
  grow(plan);
  restateClaims(plan);
  expectLegal(plan);
  plan.mutable_claims()->set_budget_bytes(1 << 20);
  expectFinding(plan, "budget", "exceed the budget");
}

TEST(EvalProgram, IsTheSecondOfAtMostTwo) {
  expectBrokenEval(
      [](pb::Plan &plan) { *plan.add_programs() = plan.programs(1); },
      "unsupported",
      "plan has 3 programs, expected the training step and at most one "
      "evaluation");
  expectBrokenEval(
      [](pb::Plan &plan) { plan.mutable_programs()->SwapElements(0, 1); },
      "unsupported", "program 0 must be a training step");
  expectBrokenEval(
      [](pb::Plan &plan) {
        plan.mutable_programs(1)->set_kind(pb::Program::COLD_START);
      },
      "unsupported", "expected EVAL");
  for (bool input : {false, true})
    expectBrokenEval(
        [&](pb::Plan &plan) {
          pb::Program *eval = plan.mutable_programs(1);
          if (input)
            *eval->add_inputs() = plan.programs(0).inputs(2);
          else
            *eval->add_outputs() = plan.programs(0).outputs(1);
        },
        "structure",
        input ? "EVAL: input 'hyper'" : "EVAL: output 'grad_norm'");
}

TEST(EvalProgram, RanksAgreeOnIt) {
  StepOptions options;
  options.gtp = 2;
  pb::Plan plan = buildBoth(options), other = plan;
  EXPECT_TRUE(checkRanks({&plan, &other}).isOk());
  inEval(other, "head.gather").mutable_collective()->set_chunk_bytes(64);
  std::string message = checkRanks({&plan, &other}).message();
  EXPECT_NE(message.find("'EVAL BODY"), std::string::npos) << message;
  other = plan;
  other.mutable_programs()->RemoveLast();
  message = checkRanks({&plan, &other}).message();
  EXPECT_NE(message.find("has the programs TRAIN_STEP, that of rank 0 "
                         "TRAIN_STEP, EVAL"),
            std::string::npos)
      << message;
}
