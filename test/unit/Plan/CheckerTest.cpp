//===- CheckerTest.cpp ----------------------------------------------------===//
//
// Legal steps pass; each way to break one is found by the rule it breaks.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

namespace {

std::string findings(const CheckReport &report) {
  std::string text;
  for (const Finding &finding : report.findings)
    text += "[" + finding.rule + "] " + finding.message + "\n";
  return text;
}

void expectLegal(const pb::Plan &plan) {
  CheckReport report;
  Status status = checkPlan(plan, &report);
  EXPECT_TRUE(status.isOk()) << findings(report) << planToText(plan);
}

void expectFinding(const pb::Plan &plan, const std::string &rule,
                   const std::string &text = "") {
  CheckReport report;
  Status status = checkPlan(plan, &report);
  EXPECT_FALSE(status.isOk()) << "accepted, expected a finding of " << rule;
  EXPECT_TRUE(report.has(rule)) << "expected " << rule << ", found\n"
                                << findings(report);
  EXPECT_NE(findings(report).find(text), std::string::npos)
      << "expected '" << text << "', found\n"
      << findings(report);
}

/// Breaks a step and expects the rule.
void expectBroken(const std::function<void(pb::Plan &)> &change,
                  const std::string &rule, const std::string &text = "",
                  const StepOptions &options = {}) {
  pb::Plan plan = buildStep(options);
  change(plan);
  expectFinding(plan, rule, text);
}

/// Replaces a collective by a copy of its source, as if it were skipped.
void skip(pb::Plan &plan, const std::string &name) {
  pb::Operation *operation = findOperation(plan, name);
  pb::Copy copy;
  *copy.mutable_source() = operation->collective().sources(0);
  *copy.mutable_destination() = operation->collective().destinations(0);
  copy.mutable_destination()->clear_accumulate();
  *operation->mutable_copy() = copy;
}

/// Removes an operation that nobody waits for.
void erase(pb::Plan &plan, const std::string &name) {
  auto [region, index] = findPlace(plan, name);
  ASSERT_NE(region, nullptr) << name;
  region->mutable_operations()->DeleteSubrange(index, 1);
}

pb::Operand *operand(pb::Plan &plan, const std::string &name, int index) {
  return findOperation(plan, name)->mutable_kernel()->mutable_operands(index);
}

pb::Collective *collective(pb::Plan &plan, const std::string &name) {
  return findOperation(plan, name)->mutable_collective();
}

uint32_t bufferNamed(const pb::Plan &plan, const std::string &name) {
  for (int i = 0; i < plan.buffers_size(); ++i)
    if (plan.strings(static_cast<int>(plan.buffers(i).name())) == name)
      return static_cast<uint32_t>(i);
  ADD_FAILURE() << "no buffer " << name;
  return 0;
}

StepOptions mesh(uint64_t dp, uint64_t gtp, uint64_t microbatches = 1) {
  StepOptions options;
  options.dp = dp;
  options.gtp = gtp;
  options.microbatches = microbatches;
  return options;
}

StepOptions tied() {
  StepOptions options;
  options.tied = true;
  return options;
}

StepOptions apart(uint64_t microbatches = 1) {
  StepOptions options;
  options.microbatches = microbatches;
  options.reuse = false;
  return options;
}

// Communicators of `buildStep`.
constexpr uint32_t gtpScatter = 1, dpReduce = 2, gtpScalar = 4;

std::vector<StepOptions> allOptions() {
  std::vector<StepOptions> all;
  for (auto [dp, gtp] : {std::pair(1, 1), std::pair(1, 2), std::pair(1, 3),
                         std::pair(2, 1), std::pair(3, 4)})
    for (uint64_t microbatches : {1, 2, 3, 1000})
      for (bool tied : {false, true})
        for (bool bf16 : {false, true})
          for (bool reuse : {false, true}) {
            StepOptions options;
            options.dp = static_cast<uint64_t>(dp);
            options.gtp = static_cast<uint64_t>(gtp);
            options.microbatches = microbatches;
            options.tied = tied;
            options.bf16 = bf16;
            options.reuse = reuse;
            all.push_back(options);
          }
  return all;
}

} // namespace

TEST(Checker, AcceptsLegalSteps) {
  for (const StepOptions &options : allOptions())
    expectLegal(buildStep(options));
}

TEST(Checker, EveryWaitIsNeeded) {
  int dropped = 0;
  for (const StepOptions &options : allOptions()) {
    if (options.microbatches == 1000)
      continue;
    pb::Plan plan = buildStep(options);
    for (pb::Region &region : *plan.mutable_programs(0)->mutable_regions())
      for (pb::Operation &operation : *region.mutable_operations())
        for (int w = 0; w < operation.waits_size(); ++w) {
          pb::Operation before = operation;
          operation.mutable_waits()->DeleteSubrange(w, 1);
          expectFinding(plan, "race", "no wait orders the two");
          operation = before;
          ++dropped;
        }
  }
  EXPECT_GT(dropped, 100);
}

TEST(Checker, FindsRaces) {
  // A gather into a slot in use.
  expectBroken(
      [](pb::Plan &plan) { findOperation(plan, "head.gather")->clear_waits(); },
      "race", "'table.full', which shares their addresses");
  // A kernel on a stream that nothing orders.
  expectBroken(
      [](pb::Plan &plan) { findOperation(plan, "rms_norm")->set_stream(1); },
      "race", "rms_norm");
}

TEST(Checker, FindsUndefinedReads) {
  expectBroken([](pb::Plan &plan) { erase(plan, "full"); }, "undefined-read",
               "'dloss' in buffer");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "fill")
            ->mutable_fill()
            ->mutable_destination()
            ->set_dims(0, 1);
      },
      "undefined-read", "'head.dfull' bytes [0, 288)");
  // dy in the bytes of x, which is still needed.
  expectBroken(
      [](pb::Plan &plan) {
        plan.mutable_buffers(static_cast<int>(bufferNamed(plan, "dy")))
            ->set_offset(plan.buffers(static_cast<int>(bufferNamed(plan, "x")))
                             .offset());
      },
      "undefined-read", "'dy' has taken");
  // What one iteration needs of the one before is not there in the first.
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "cross_entropy_grad")
            ->set_when(pb::Operation::NOT_FIRST);
      },
      "undefined-read", "'dlogits'", mesh(1, 2, 3));
}

TEST(Checker, FindsWrongWeights) {
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.gather")
            ->mutable_sources(0)
            ->set_buffer(bufferNamed(plan, "table.compute"));
        collective(plan, "head.gather")->clear_parameter_plus1();
      },
      "weight-version", "found the whole of parameter 'table'");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "linear")->mutable_kernel()->set_parameter_plus1(1);
      },
      "weight-version", "as parameter 'table', found");
  expectBroken([](pb::Plan &plan) { skip(plan, "gain.reduce"); },
               "exactly-once", "still partial over gtp");
  // Master weights are f32, so this gathers the wrong bytes.
  StepOptions options;
  options.bf16 = true;
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operand *source =
            collective(plan, "head.gather")->mutable_sources(0);
        source->set_buffer(bufferNamed(plan, "head.master"));
      },
      "weight-version", "expected exactly all of it", options);
  // Half of the shard, twice.
  expectBroken(
      [](pb::Plan &plan) {
        pb::Collective *gather = collective(plan, "head.gather");
        gather->mutable_sources(0)->set_dims(0, 3);
        gather->mutable_destinations(0)->set_dims(0, 6);
      },
      "weight-version", "expected exactly all of it");
  // One row further.
  expectBroken(
      [](pb::Plan &plan) { operand(plan, "linear", 1)->set_offset(24); },
      "weight-version", "expected exactly all of it");
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "adamw.2", 6)
            ->set_buffer(bufferNamed(plan, "table.compute"));
      },
      "role", "expected all of buffer", options);
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "adamw.2")
            ->mutable_kernel()
            ->mutable_operands()
            ->RemoveLast();
      },
      "role", "does not publish", options);
}

TEST(Checker, FindsWrongReductions) {
  expectBroken([](pb::Plan &plan) { skip(plan, "head.reduce"); },
               "exactly-once", "still partial over dp", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.reduce")->set_communicator(gtpScatter);
      },
      "exactly-once", "each axis must be reduced exactly once", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "gain.reduce")->set_communicator(gtpScatter);
      },
      "exactly-once", "still partial over dp", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operation *scatter = findOperation(plan, "head.scatter");
        pb::Operand sum = scatter->collective().destinations(0);
        scatter->mutable_fill();
        *scatter->mutable_fill()->mutable_destination() = sum;
      },
      "exactly-once", "found zeros");
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.scatter")
            ->mutable_destinations(0)
            ->clear_accumulate();
      },
      "exactly-once", "lacks microbatches", mesh(1, 2, 3));
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "head.scatter")->set_when(pb::Operation::LAST);
        collective(plan, "head.scatter")
            ->mutable_destinations(0)
            ->clear_accumulate();
      },
      "exactly-once", "lacks microbatches", apart(3));
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "linear_wgrad")
            ->mutable_kernel()
            ->set_parameter_plus1(1);
      },
      "exactly-once", "as the gradient of parameter 'head'");
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "linear_wgrad", 1)->set_buffer(bufferNamed(plan, "x"));
      },
      "exactly-once", "computed from another activation");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *add = findOperation(plan, "add")->mutable_kernel();
        *add->mutable_operands(1) = add->operands(0);
      },
      "exactly-once", "twice", tied());
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *add = findOperation(plan, "add")->mutable_kernel();
        add->mutable_operands()->DeleteSubrange(1, 1);
      },
      "exactly-once", "1 contributions a microbatch for 2 forward uses",
      tied());
  expectBroken([](pb::Plan &plan) { plan.mutable_parameters(0)->set_uses(1); },
               "exactly-once", "of which the plan declares 1", tied());
  expectBroken([](pb::Plan &plan) { erase(plan, "adamw.1"); }, "exactly-once",
               "does not update parameter 'gain'");
  expectBroken(
      [](pb::Plan &plan) {
        auto [region, index] = findPlace(plan, "adamw.1");
        pb::Operation again = region->operations(index);
        *region->add_operations() = again;
      },
      "exactly-once", "which was updated before");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "fill")->mutable_fill()->set_byte_value(1);
      },
      "role", "something else");
}

TEST(Checker, FindsPartialScalars) {
  expectBroken(
      [](pb::Plan &plan) {
        for (const char *name : {"cross_entropy", "cross_entropy_grad"})
          operand(plan, name, 2)->set_buffer(bufferNamed(plan, "count.mine"));
      },
      "partial", "'count.mine', which is still partial over gtp");
  expectBroken([](pb::Plan &plan) { skip(plan, "loss.reduce"); }, "partial",
               "'loss' is still partial over gtp");
  expectBroken([](pb::Plan &plan) { skip(plan, "norm.reduce"); }, "partial",
               "'square.all'");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "keep_first")
            ->mutable_kernel()
            ->mutable_attributes(0)
            ->set_i(0);
      },
      "partial", "adds a value that is partial over");
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "count.reduce")->set_communicator(gtpScalar);
      },
      "partial", "still partial over dp", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "norm.reduce")->set_communicator(dpReduce);
      },
      "partial", "each axis must be reduced exactly once", mesh(2, 2));
}

TEST(Checker, FindsUnorderedCollectives) {
  expectBroken(
      [](pb::Plan &plan) { findOperation(plan, "head.gather")->set_stream(2); },
      "collective-order", "use communicator 0", apart());
  auto crowd = [](uint32_t limit) {
    return [limit](pb::Plan &plan) {
      plan.mutable_claims()->set_collective_ctas(limit);
      for (const char *name : {"head.scatter", "gain.reduce"}) {
        collective(plan, name)->set_transport(pb::Collective::SYMMETRIC);
        collective(plan, name)->set_ctas(8);
      }
      findOperation(plan, "gain.reduce")->set_stream(1);
    };
  };
  expectBroken(crowd(15), "collective-ctas", "take 16 CTAs");
  pb::Plan plan = buildStep();
  crowd(16)(plan);
  expectLegal(plan);
}

TEST(Checker, FindsFalseClaims) {
  auto claim = [](void (*change)(pb::Claims &)) {
    return [change](pb::Plan &plan) { change(*plan.mutable_claims()); };
  };
  expectBroken(claim([](pb::Claims &claims) {
                 claims.set_max_live_bytes(claims.max_live_bytes() - 1);
               }),
               "peak", "live in issue order");
  expectBroken(claim([](pb::Claims &claims) {
                 claims.set_max_live_bytes(claims.arena_bytes() + 1);
               }),
               "peak");
  expectBroken(claim([](pb::Claims &claims) {
                 claims.set_arena_bytes(claims.arena_bytes() - 256);
               }),
               "peak", "an arena of");
  expectBroken(
      claim([](pb::Claims &claims) { claims.set_persistent_bytes(0); }), "peak",
      "persistent state");
  expectBroken(claim([](pb::Claims &claims) { claims.set_budget_bytes(1); }),
               "budget");
  expectBroken(
      [](pb::Plan &plan) {
        pb::MemoryRegion *arena = plan.mutable_memory(0);
        arena->set_size(arena->size() + 256);
        plan.mutable_claims()->set_arena_bytes(arena->size());
      },
      "peak", "its buffers need");
}

TEST(Checker, FindsBrokenStructure) {
  using Change = std::function<void(pb::Plan &)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](pb::Plan &p) { p.set_schema_version(2); }, "schema version 2"},
      {[](pb::Plan &p) { p.mutable_mesh()->mutable_axes(0)->set_degree(0); },
       "degree 0"},
      {[](pb::Plan &p) { p.mutable_mesh()->mutable_axes(1)->set_degree(7); },
       "global batch"},
      {[](pb::Plan &p) { p.mutable_model()->set_sequence(UINT64_MAX); },
       "must be positive and fit"},
      {[](pb::Plan &p) { p.mutable_buffers(3)->set_offset(1); },
       "multiple of 256"},
      {[](pb::Plan &p) { p.mutable_buffers(3)->set_size(UINT64_MAX); },
       "of memory 0"},
      {[](pb::Plan &p) {
         p.mutable_buffers(1)->set_offset(p.buffers(0).offset());
       },
       "must be apart"},
      {[](pb::Plan &p) { p.mutable_parameters(0)->set_layout(99); },
       "layout 99, which does not exist"},
      {[](pb::Plan &p) { p.mutable_parameters(0)->set_shape(0, 11); },
       "its layout 10"},
      {[](pb::Plan &p) { p.mutable_parameters(0)->set_compute_buffer(1); },
       "is also a buffer of"},
      {[](pb::Plan &p) {
         p.mutable_layouts(0)->mutable_dims(0)->set_granule(1);
       },
       "for a shard in f32"},
      {[](pb::Plan &p) { p.mutable_communicators(0)->add_axes(0); },
       "in mesh order"},
      {[](pb::Plan &p) {
         p.mutable_programs(0)->mutable_outputs(0)->set_name(0);
       },
       "none that the runtime knows"},
      {[](pb::Plan &p) {
         p.mutable_programs(0)->mutable_regions(1)->set_repeat(uint64_t(1)
                                                               << 32);
       },
       "runs 4294967296 times, expected 1"},
      {[](pb::Plan &p) {
         p.mutable_programs(0)->mutable_regions()->SwapElements(0, 1);
       },
       "order of regions"},
      {[](pb::Plan &p) {
         p.mutable_programs(0)->mutable_regions(1)->set_events(UINT32_MAX);
       },
       "operations to record them"},
      {[](pb::Plan &p) {
         findOperation(p, "linear")->mutable_waits(0)->set_event(7);
       },
       "which no earlier operation"},
      {[](pb::Plan &p) { findOperation(p, "linear")->set_event_plus1(1); },
       "which an earlier operation records too"},
      {[](pb::Plan &p) { findOperation(p, "linear")->set_stream(3); },
       "stream 3, which does not exist"},
      {[](pb::Plan &p) { findOperation(p, "linear")->clear_body(); },
       "does nothing"},
      {[](pb::Plan &p) { operand(p, "linear", 0)->set_offset(256); },
       "ends at byte"},
      {[](pb::Plan &p) { operand(p, "linear", 0)->set_buffer(999); },
       "buffer 999, which does not exist"},
      {[](pb::Plan &p) { operand(p, "linear", 0)->set_dims(2, 7); },
       "shapes must be"},
      {[](pb::Plan &p) {
         operand(p, "embedding", 0)->set_iteration_stride(UINT64_MAX / 2);
       },
       "ends at byte infinity"},
      {[](pb::Plan &p) {
         pb::AxisStride *stride =
             operand(p, "embedding", 0)->add_rank_strides();
         stride->set_axis(1);
         stride->set_stride(UINT64_MAX);
       },
       "ends at byte infinity"},
      {[](pb::Plan &p) {
         findOperation(p, "linear")->mutable_kernel()->clear_parameter_plus1();
       },
       "must name the parameter"},
      {[](pb::Plan &p) {
         collective(p, "head.gather")->mutable_sources(0)->set_dims(0, 5);
       },
       "as many times the source's"},
      {[](pb::Plan &p) { collective(p, "head.gather")->set_wire(pb::BF16); },
       "no combination that collectives have"},
      {[](pb::Plan &p) { collective(p, "head.gather")->set_communicator(9); },
       "communicator 9, which does not exist"},
      {[](pb::Plan &p) { collective(p, "head.gather")->clear_sources(); },
       "0 sources and 1 destinations"},
  };
  for (const auto &[change, text] : cases)
    expectBroken(change, "structure", text, mesh(1, 2, text[0] == 'e' ? 3 : 1));
}

TEST(Checker, RefusesByNameWhatItCannotShow) {
  using Change = std::function<void(pb::Plan &)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](pb::Plan &p) {
         pb::MeshAxis *axis = p.mutable_mesh()->add_axes();
         axis->set_name("tp");
         axis->set_degree(2);
       },
       "mesh axis 'tp' of degree 2"},
      {[](pb::Plan &p) {
         findOperation(p, "linear")->mutable_waits(0)->set_distance(1);
       },
       "iterations back, which is not supported yet"},
      {[](pb::Plan &p) {
         collective(p, "head.gather")->set_kind(pb::Collective::ALL_TO_ALL);
       },
       "all-to-all is not supported yet"},
      {[](pb::Plan &p) { p.mutable_programs(0)->set_rotated(true); },
       "rotated programs"},
      {[](pb::Plan &p) { p.add_programs(); }, "2 programs"},
  };
  for (const auto &[change, text] : cases)
    expectBroken(change, "unsupported", text);
}

TEST(Checker, FindsAliases) {
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "rms_norm", 2)->set_buffer(bufferNamed(plan, "x"));
      },
      "alias");
}

TEST(Checker, AcceptsHarmlessRewrites) {
  // Independent operations in another order.
  pb::Plan plan = buildStep(apart());
  auto [region, head] = findPlace(plan, "head.gather");
  for (int i = head; i > 1; --i)
    region->mutable_operations()->SwapElements(i, i - 1);
  expectLegal(plan);
  // One wait more than needed.
  plan = buildStep();
  *findOperation(plan, "rms_norm")->add_waits() =
      findOperation(plan, "embedding")->waits(0);
  expectLegal(plan);
  // Labels and predictions mean nothing.
  plan = buildStep();
  for (pb::Operation &operation :
       *plan.mutable_programs(0)->mutable_regions(1)->mutable_operations()) {
    operation.set_source(0);
    operation.set_duration(123);
  }
  for (pb::Buffer &buffer : *plan.mutable_buffers())
    buffer.set_name(0);
  expectLegal(plan);
  // One reduction for all microbatches, of the accumulated full gradient.
  for (uint64_t microbatches : {2, 3, 1000}) {
    plan = buildStep(apart(microbatches));
    operand(plan, "linear_wgrad", 2)->set_accumulate(true);
    findOperation(plan, "head.scatter")->set_when(pb::Operation::LAST);
    collective(plan, "head.scatter")
        ->mutable_destinations(0)
        ->clear_accumulate();
    plan.mutable_claims()->set_max_live_bytes(plan.claims().arena_bytes());
    expectLegal(plan);
  }
  // A claim above what the checker finds may be exact.
  plan = buildStep();
  plan.mutable_claims()->set_max_live_bytes(plan.claims().arena_bytes());
  expectLegal(plan);
  // Every collective in the first stream.
  plan = buildStep();
  for (pb::Region &any : *plan.mutable_programs(0)->mutable_regions())
    for (pb::Operation &operation : *any.mutable_operations())
      operation.set_stream(0);
  expectLegal(plan);
}

TEST(Checker, NamesPlaceAndBytes) {
  pb::Plan plan = buildStep();
  findOperation(plan, "linear")->clear_waits();
  EXPECT_EQ(
      checkPlan(plan).message(),
      "[race] region 1 (BODY), operation 4 (linear: linear) reads buffer "
      "22 'head.full' bytes [0, 240) while region 1 (BODY), operation 3 "
      "(head.gather: ALL_GATHER) writes them: no wait orders the two (and 1 "
      "more)");
}

TEST(Checker, RanksAgreeOnCollectives) {
  pb::Plan plan = buildStep(), other = plan;
  EXPECT_TRUE(checkRanks({&plan, &plan}).isOk());
  EXPECT_TRUE(checkRanks({&plan, &other}).isOk());
  EXPECT_FALSE(checkRanks({&plan}).isOk());
  auto message = [&] { return checkRanks({&plan, &other}).message(); };
  collective(other, "head.gather")->set_chunk_bytes(64);
  EXPECT_NE(message().find("ranks 0 and 1 disagree"), std::string::npos)
      << message();
  other = plan;
  erase(other, "loss.reduce");
  EXPECT_NE(message().find("'none'"), std::string::npos) << message();
  other = plan;
  other.mutable_mesh()->mutable_axes(1)->set_name("tp");
  EXPECT_NE(message().find("another mesh"), std::string::npos) << message();
}

TEST(Checker, ChecksALargePlanInASecond) {
  StepOptions options;
  options.chain = 8000;
  options.microbatches = 1000;
  pb::Plan plan = buildStep(options);
  auto start = std::chrono::steady_clock::now();
  expectLegal(plan);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
  // A second where nothing else runs and no sanitizer does.
  EXPECT_LT(seconds.count(), 20);
}
