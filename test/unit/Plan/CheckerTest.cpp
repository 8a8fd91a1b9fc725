//===- CheckerTest.cpp ----------------------------------------------------===//
//
// Legal steps pass; each way to break one is found by the rule it breaks.
//
//===----------------------------------------------------------------------===//

#include "CheckerTest.h"

#include <chrono>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

static std::vector<StepOptions> allOptions() {
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
            options.split = bf16;
            if (options.split && microbatches < 3)
              all.push_back(options);
          }
  return all;
}

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

TEST(Checker, FindsUnorderedCollectives) {
  expectBroken(
      [](pb::Plan &plan) { findOperation(plan, "head.gather")->set_stream(2); },
      "collective-order", "use communicator 0", apart());
  auto crowd = [](uint32_t limit) {
    return [limit](pb::Plan &plan) {
      plan.mutable_claims()->set_collective_ctas(limit);
      makeWindows(plan);
      for (const char *name : {"head.scatter", "gain.reduce"}) {
        collective(plan, name)->set_transport(pb::Collective::SYMMETRIC);
        takeCtas(plan, name, 8);
      }
      findOperation(plan, "gain.reduce")->set_stream(1);
    };
  };
  expectBroken(crowd(15), "collective-ctas", "take 16 CTAs");
  expectBroken(
      [&](pb::Plan &plan) {
        crowd(16)(plan);
        takeCtas(plan, "gain.reduce", 0);
      },
      "collective-ctas",
      " may take as many CTAs as the library likes, and the plan has a limit "
      "of 16; expected communicator 3 to have a max_ctas");
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
               "peak", "a largest set of live buffers of");
  expectBroken(claim([](pb::Claims &claims) {
                 claims.set_max_live_bytes(claims.max_live_bytes() + 1);
               }),
               "peak", "a largest set of live buffers of");
  expectBroken(claim([](pb::Claims &claims) {
                 claims.set_gathered_peak_bytes(claims.gathered_peak_bytes() +
                                                1);
               }),
               "peak", "a largest set of gathered weights of");
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
      {[](pb::Plan &p) { p.set_schema_version(1); }, "schema version 1"},
      {[](pb::Plan &p) { p.mutable_mesh()->mutable_axes(0)->set_degree(0); },
       "degree 0"},
      {[](pb::Plan &p) { p.mutable_mesh()->mutable_axes(1)->set_degree(7); },
       "global batch"},
      {[](pb::Plan &p) { p.mutable_model()->set_sequence(UINT64_MAX); },
       "must be positive and fit"},
      {[](pb::Plan &p) {
         p.mutable_model()->set_document_separator(p.model().vocabulary());
       },
       "must be an id, below the vocabulary of"},
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
      {[](pb::Plan &p) { p.add_programs(); }, "program 1 is of kind 0"},
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

/// Gives the product scratch in the buffer.
static void addScratch(pb::Plan &plan, uint32_t buffer) {
  pb::Operand *scratch =
      findOperation(plan, "linear")->mutable_kernel()->add_operands();
  scratch->set_buffer(buffer);
  scratch->set_dtype(pb::U8);
  scratch->add_dims(plan.buffers(static_cast<int>(buffer)).size());
}

TEST(Checker, ScratchHasItsOwnMemory) {
  // Nothing is in dx yet.
  pb::Plan plan = buildStep();
  addScratch(plan, bufferNamed(plan, "dx"));
  restateClaims(plan);
  expectLegal(plan);
  // The norm's gradient reads x again.
  expectBroken(
      [](pb::Plan &broken) { addScratch(broken, bufferNamed(broken, "x")); },
      "undefined-read", "rms_norm_grad");
  expectBroken(
      [](pb::Plan &broken) {
        const auto x = static_cast<int>(bufferNamed(broken, "x"));
        *broken.add_buffers() = broken.buffers(x);
        addScratch(broken, static_cast<uint32_t>(broken.buffers_size() - 1));
      },
      "undefined-read", "rms_norm_grad");
  expectBroken(
      [](pb::Plan &broken) { addScratch(broken, bufferNamed(broken, "y")); },
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
    restateClaims(plan);
    expectLegal(plan);
  }
  // Every collective in the first stream, so that fewer buffers overlap.
  plan = buildStep();
  for (pb::Region &any : *plan.mutable_programs(0)->mutable_regions())
    for (pb::Operation &operation : *any.mutable_operations())
      operation.set_stream(0);
  restateClaims(plan);
  expectLegal(plan);
}

TEST(Checker, NamesPlaceAndBytes) {
  pb::Plan plan = buildStep();
  findOperation(plan, "linear")->clear_waits();
  CheckReport report;
  EXPECT_EQ(
      checkPlan(plan, &report).message(),
      "[race] region 1 (BODY), operation 4 (linear: linear) reads buffer "
      "22 'head.full' bytes [0, 240) while region 1 (BODY), operation 3 "
      "(head.gather: ALL_GATHER) writes them: no wait orders the two (and 1 "
      "more)");
  const Finding &race = report.findings.front();
  ASSERT_TRUE(race.operation && race.other);
  EXPECT_EQ(race.operation->region, 1u);
  EXPECT_EQ(race.operation->operation, 4u);
  EXPECT_EQ(race.other->region, 1u);
  EXPECT_EQ(race.other->operation, 3u);

  // What is about a table names no operation.
  plan = buildStep();
  plan.mutable_claims()->set_arena_bytes(1);
  EXPECT_FALSE(checkPlan(plan, &report).isOk());
  EXPECT_FALSE(report.findings.front().operation);
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
