//===- TransportTest.cpp - Which transports compute what ------------------===//

#include "gtp/Plan/Transport.h"

#include "CheckerTest.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;
using pb::Collective;

namespace {

CollectiveMeaning meaning(Collective::Kind kind, uint64_t ranks,
                          pb::DType type = pb::F32, pb::DType wire = pb::F32,
                          pb::DType accumulation = pb::F32) {
  CollectiveMeaning result;
  result.kind = kind;
  result.ranks = ranks;
  result.type = type;
  result.wire = wire;
  result.accumulation = accumulation;
  return result;
}

std::string why(Collective::Transport transport, const CollectiveMeaning &m) {
  return whyNotBy(transport, m);
}

} // namespace

TEST(Transport, GathersMoveBytesByAnyButPairs) {
  for (pb::DType type : {pb::F32, pb::BF16, pb::I64}) {
    CollectiveMeaning m = meaning(Collective::ALL_GATHER, 8, type, type, type);
    for (Collective::Transport transport :
         {Collective::COPY_ENGINE, Collective::SYMMETRIC,
          Collective::RING_TRANSPORT, Collective::HOST, Collective::AUTO}) {
      EXPECT_EQ(why(transport, m), "");
      EXPECT_EQ(memberScratchBytes(transport, m, 1000, false), 0u);
    }
    EXPECT_EQ(why(Collective::PAIRWISE, m), "by PAIRWISE, which reduces only");
  }
}

TEST(Transport, LibrarySumsOfTwoRanksAreFlat) {
  for (Collective::Transport transport :
       {Collective::SYMMETRIC, Collective::RING_TRANSPORT})
    for (Collective::Kind kind :
         {Collective::REDUCE_SCATTER, Collective::ALL_REDUCE}) {
      std::string by = "by " + Collective::Transport_Name(transport) + ", ";
      EXPECT_EQ(why(transport, meaning(kind, 2)), "");
      EXPECT_EQ(why(transport, meaning(kind, 2, pb::BF16, pb::BF16)), "");
      EXPECT_EQ(why(transport, meaning(kind, 3)),
                by + "which sums 3 ranks in another order than FLAT");
      EXPECT_EQ(why(transport, meaning(kind, 2, pb::F32, pb::BF16)),
                by + "which sends f32 as it is, not bf16");
      EXPECT_EQ(why(transport, meaning(kind, 2, pb::F32, pb::F32, pb::F64)),
                by + "which does not sum f32 in f64");
      CollectiveMeaning maximum = meaning(kind, 2);
      maximum.reduce = Collective::MAX;
      EXPECT_EQ(why(transport, maximum), by + "which sums, and does no MAX");
      CollectiveMeaning ring = meaning(kind, 2);
      ring.order = Collective::RING;
      EXPECT_EQ(why(transport, ring), by + "which does not sum in order RING");
    }
  // Integers have no rounding, and kernels on windows no such types.
  CollectiveMeaning counts =
      meaning(Collective::ALL_REDUCE, 8, pb::I64, pb::I64, pb::I64);
  EXPECT_EQ(why(Collective::RING_TRANSPORT, counts), "");
  EXPECT_EQ(why(Collective::SYMMETRIC, counts),
            "by SYMMETRIC, which sums f32 and bf16, not i64");
  CollectiveMeaning squares =
      meaning(Collective::ALL_REDUCE, 2, pb::F64, pb::F64, pb::F64);
  EXPECT_EQ(why(Collective::RING_TRANSPORT, squares), "");
  squares.ranks = 3;
  EXPECT_EQ(why(Collective::RING_TRANSPORT, squares),
            "by RING_TRANSPORT, which sums 3 ranks in another order than FLAT");
}

TEST(Transport, OwnSumsAreFlatOnAnyNumberOfRanks) {
  for (pb::DType wire : {pb::F32, pb::BF16})
    for (uint64_t ranks : {2, 3, 64}) {
      CollectiveMeaning m =
          meaning(Collective::REDUCE_SCATTER, ranks, pb::F32, wire);
      EXPECT_EQ(why(Collective::COPY_ENGINE, m), "");
      EXPECT_EQ(why(Collective::PAIRWISE, m), "");
      m.kind = Collective::ALL_REDUCE;
      EXPECT_EQ(why(Collective::PAIRWISE, m), "");
      EXPECT_EQ(why(Collective::COPY_ENGINE, m),
                "by COPY_ENGINE, which gathers and scatters only");
      m.order = Collective::RING;
      EXPECT_EQ(why(Collective::PAIRWISE, m),
                "by PAIRWISE, which sums in order FLAT, not RING");
    }
  EXPECT_EQ(why(static_cast<Collective::Transport>(9),
                meaning(Collective::ALL_REDUCE, 2)),
            "by transport 9, which does not exist");
}

TEST(Transport, ScratchIsWhatIsPutSomewhereFirst) {
  CollectiveMeaning m = meaning(Collective::REDUCE_SCATTER, 4);
  // 1000 elements are four pieces of 250.
  EXPECT_EQ(memberScratchBytes(Collective::COPY_ENGINE, m, 1000, false), 4096u);
  EXPECT_EQ(memberScratchBytes(Collective::PAIRWISE, m, 1000, true), 4 * 1024u);
  m.wire = pb::BF16;
  // Half of it, and the contributions rounded.
  EXPECT_EQ(sentType(m), pb::BF16);
  EXPECT_EQ(memberScratchBytes(Collective::COPY_ENGINE, m, 1000, false),
            2 * 2048u);
  m = meaning(Collective::REDUCE_SCATTER, 2, pb::BF16, pb::F32);
  EXPECT_EQ(sentType(m), pb::BF16);
  // A sum that is added to what is there waits for it.
  EXPECT_EQ(memberScratchBytes(Collective::SYMMETRIC, m, 1000, false), 0u);
  EXPECT_EQ(memberScratchBytes(Collective::SYMMETRIC, m, 1000, true), 1024u);
  m.kind = Collective::ALL_REDUCE;
  EXPECT_EQ(memberScratchBytes(Collective::RING_TRANSPORT, m, 1000, true),
            2048u);
  // Few bytes go to every rank whole.
  EXPECT_TRUE(goesWhole(m, 1000));
  EXPECT_EQ(memberScratchBytes(Collective::PAIRWISE, m, 1000, false),
            2 * 2048u);
  EXPECT_FALSE(goesWhole(m, 1 << 20));
  EXPECT_EQ(memberScratchBytes(Collective::PAIRWISE, m, 1 << 20, false),
            uint64_t(2) << 20);
  EXPECT_EQ(memberScratchBytes(Collective::PAIRWISE, m, 1 << 20, true),
            uint64_t(4) << 20);
  m.ranks = 1;
  EXPECT_EQ(memberScratchBytes(Collective::PAIRWISE, m, 1000, true), 0u);
}

TEST(Transport, CheckerWantsACommunicatorMadeForIt) {
  auto by = [](const char *name, Collective::Transport transport,
               void (*change)(pb::Plan &, pb::Communicator &)) {
    return [=](pb::Plan &plan) {
      Collective *changed = collective(plan, name);
      changed->set_transport(transport);
      makeWindows(plan);
      change(plan, *plan.mutable_communicators(
                       static_cast<int>(changed->communicator())));
    };
  };
  using pb::Communicator;
  expectBroken(by("head.gather", Collective::COPY_ENGINE,
                  [](pb::Plan &, Communicator &c) {
                    c.set_needs_window(false);
                    c.set_cta_policy(Communicator::ZERO);
                  }),
               "transport",
               "goes by COPY_ENGINE, but communicator 0 has no "
               "window");
  expectBroken(by("head.gather", Collective::COPY_ENGINE,
                  [](pb::Plan &, Communicator &c) { c.set_spans_nodes(true); }),
               "transport", " spans nodes, and windows do not");
  expectBroken(by("head.gather", Collective::COPY_ENGINE,
                  [](pb::Plan &, Communicator &) {}),
               "transport", " has the CTA policy DEFAULT, expected ZERO");
  expectBroken(by("head.gather", Collective::SYMMETRIC,
                  [](pb::Plan &, Communicator &c) {
                    c.set_cta_policy(Communicator::ZERO);
                  }),
               "transport",
               " has the CTA policy ZERO, which gathers on copy engines");
  expectBroken(by("gain.reduce", Collective::SYMMETRIC,
                  [](pb::Plan &plan, Communicator &c) {
                    collective(plan, "gain.reduce")->set_ctas(9);
                    c.set_max_ctas(8);
                  }),
               "transport",
               "goes by SYMMETRIC with 9 CTAs, but communicator 3 has a "
               "max_ctas of 8; expected the same number");
  expectBroken(by("gain.reduce", Collective::HOST,
                  [](pb::Plan &plan, Communicator &) {
                    takeCtas(plan, "gain.reduce", 4);
                  }),
               "transport",
               "goes by HOST with 4 CTAs, which holds no multiprocessor; "
               "expected 0");
  expectBroken(by("gain.reduce", Collective::HOST,
                  [](pb::Plan &plan, Communicator &) {
                    collective(plan, "gain.reduce")->set_chunk_bytes(64);
                  }),
               "transport",
               "goes by HOST in chunks of 64 bytes; every transport sends "
               "whole, expected 0");
  expectBroken(by("head.scatter", Collective::PAIRWISE,
                  [](pb::Plan &, Communicator &) {}),
               "transport",
               "goes by PAIRWISE with 0 bytes of scratch, expected");
  expectBroken(by("gain.reduce", Collective::COPY_ENGINE,
                  [](pb::Plan &, Communicator &) {}),
               "transport", "which gathers and scatters only");
  expectBroken(by("gain.reduce", Collective::HOST,
                  [](pb::Plan &plan, Communicator &) {
                    plan.mutable_memory(0)->set_symmetric(false);
                  }),
               "structure",
               "communicator 0 needs a window, but the arena is not symmetric");
  expectBroken(by("gain.reduce", Collective::HOST,
                  [](pb::Plan &, Communicator &c) {
                    c.set_min_ctas(9);
                    c.set_max_ctas(8);
                  }),
               "structure", " has at least 9 CTAs and at most 8");
  expectBroken(by("gain.reduce", Collective::SYMMETRIC,
                  [](pb::Plan &plan, Communicator &) {
                    takeCtas(plan, "gain.reduce", 65);
                  }),
               "structure",
               "communicator 3 takes 0 to 65 CTAs, expected at most 64, or 0 "
               "for the library's default");
  expectBroken(by("gain.reduce", Collective::HOST,
                  [](pb::Plan &plan, Communicator &) {
                    plan.mutable_claims()->set_collective_ctas(1025);
                  }),
               "structure",
               "claims: collectives may hold 1025 CTAs together, expected at "
               "most 1024, more multiprocessors than a GPU has, or 0 for no "
               "limit");
  expectLegal([&] {
    pb::Plan most = buildStep();
    by("gain.reduce", Collective::SYMMETRIC,
       [](pb::Plan &plan, Communicator &) {
         takeCtas(plan, "gain.reduce", 64);
         plan.mutable_claims()->set_collective_ctas(1024);
       })(most);
    return most;
  }());
  expectBroken(by("gain.reduce", Collective::HOST,
                  [](pb::Plan &plan, Communicator &) {
                    Collective *c = collective(plan, "gain.reduce");
                    *c->mutable_scratch() = c->destinations(0);
                  }),
               "structure", "its scratch is ");
  pb::Plan plan = buildStep();
  by("head.gather", Collective::COPY_ENGINE,
     [](pb::Plan &changed, Communicator &c) {
       c.set_cta_policy(Communicator::ZERO);
       for (const char *name : {"table.gather"})
         collective(changed, name)->set_transport(Collective::COPY_ENGINE);
     })(plan);
  expectLegal(plan);
}
