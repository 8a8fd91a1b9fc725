//===- HostCollectivesTest.cpp - Collectives, without an executor ---------===//

#include "Collectives.h"
#include "HostPlan.h"
#include "Ranks.h"
#include "gtp/Support/BFloat16.h"

#include <cstring>
#include <thread>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::host;
using namespace gtp::test;

namespace {

/// Each member of a group in a thread of its own.
template <typename Body>
void onThreads(uint32_t members, Body body) {
  std::vector<std::thread> threads;
  for (uint32_t me = 0; me < members; ++me)
    threads.emplace_back([&body, me] { body(me); });
  for (std::thread &thread : threads)
    thread.join();
}

/// A float32 sum, or gather, of one member.
CollectiveSpec oneMember(pb::Collective::Kind kind, uint64_t count) {
  return {kind, pb::Collective::SUM, pb::F32, pb::F32, pb::F32, {count}};
}

/// A collective over `counts.size()` coalesced members of a group.
template <typename T>
class Exchange {
public:
  Exchange(pb::Collective::Kind kind, uint32_t size,
           std::vector<uint64_t> counts, pb::DType type)
      : kind(kind), size(size), counts(counts),
        spec{kind, pb::Collective::SUM, type, type, type, counts},
        group(size, counts.size(), scratchBytes(spec)) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      sources.emplace_back();
      destinations.emplace_back();
      for (size_t i = 0; i < counts.size(); ++i) {
        sources[rank].emplace_back();
        for (uint64_t e = 0; e < counts[i]; ++e)
          sources[rank][i].push_back(value(rank, i, e));
        destinations[rank].emplace_back(outCount(i), T(7));
      }
    }
  }

  /// Of different sizes, so that the order of additions shows in the bits.
  static T value(uint32_t rank, size_t member, uint64_t element) {
    uint64_t hash = (element * 31 + member) * 17 + rank;
    return static_cast<T>(hash % 1009) * static_cast<T>(rank % 2 ? 1000 : 1) /
           static_cast<T>(3);
  }
  uint64_t outCount(size_t member) const {
    if (kind == pb::Collective::ALL_GATHER)
      return counts[member] * size;
    return kind == pb::Collective::ALL_REDUCE ? counts[member]
                                              : counts[member] / size;
  }
  /// What rank `rank` must get.
  T expected(uint32_t rank, size_t member, uint64_t element, bool add) const {
    if (kind == pb::Collective::ALL_GATHER)
      return value(static_cast<uint32_t>(element / counts[member]), member,
                   element % counts[member]);
    if (kind == pb::Collective::REDUCE_SCATTER)
      element += rank * outCount(member);
    T sum = value(0, member, element);
    for (uint32_t peer = 1; peer < size; ++peer)
      sum += value(peer, member, element);
    return add ? T(7) + sum : sum;
  }

  void run(bool add, bool inPlace, int times) {
    onThreads(size, [&](uint32_t me) {
      std::vector<Argument> in, out;
      for (size_t i = 0; i < counts.size(); ++i) {
        in.push_back({reinterpret_cast<std::byte *>(sources[me][i].data())});
        T *to = destinations[me][i].data();
        if (inPlace) {
          to = sources[me][i].data();
          if (kind == pb::Collective::ALL_GATHER) {
            to = destinations[me][i].data();
            std::memcpy(to + me * counts[i], sources[me][i].data(),
                        counts[i] * sizeof(T));
            in.back().data = reinterpret_cast<std::byte *>(to + me * counts[i]);
          } else if (kind == pb::Collective::REDUCE_SCATTER) {
            to += me * outCount(i);
          }
        }
        out.push_back({reinterpret_cast<std::byte *>(to), add});
      }
      for (int time = 0; time < times; ++time) {
        Status status = group.run(spec, static_cast<uint64_t>(time), me,
                                  in.data(), out.data(), ended);
        EXPECT_TRUE(status.isOk()) << status.message();
      }
    });
  }

  /// Bit for bit, everywhere.
  void expectResults(bool add, bool inPlace) {
    for (uint32_t rank = 0; rank < size; ++rank)
      for (size_t i = 0; i < counts.size(); ++i)
        for (uint64_t e = 0; e < outCount(i); ++e) {
          const T *got = destinations[rank][i].data();
          if (inPlace && kind != pb::Collective::ALL_GATHER)
            got = sources[rank][i].data() +
                  (kind == pb::Collective::REDUCE_SCATTER ? rank * outCount(i)
                                                          : 0);
          ASSERT_EQ(got[e], expected(rank, i, e, add))
              << "rank " << rank << " of " << size << ", member " << i
              << ", element " << e;
        }
  }

private:
  pb::Collective::Kind kind;
  uint32_t size;
  std::vector<uint64_t> counts;
  CollectiveSpec spec;
  CollectiveGroup group;
  std::vector<std::vector<std::vector<T>>> sources, destinations;
  std::atomic<bool> ended{false};
};

template <typename T>
void testAll(pb::DType type) {
  for (pb::Collective::Kind kind :
       {pb::Collective::ALL_GATHER, pb::Collective::REDUCE_SCATTER,
        pb::Collective::ALL_REDUCE})
    for (uint32_t size = 1; size <= 6; ++size)
      for (std::vector<uint64_t> counts :
           {std::vector<uint64_t>{1}, std::vector<uint64_t>{7, 601, 1}})
        for (bool inPlace : {false, true})
          for (bool add : {false, true}) {
            if (add && (inPlace || kind == pb::Collective::ALL_GATHER))
              continue;
            if (kind == pb::Collective::REDUCE_SCATTER)
              for (uint64_t &count : counts)
                count *= size;
            Exchange<T> exchange(kind, size, counts, type);
            // What it leaves in place is its next input.
            exchange.run(add, inPlace, add || inPlace ? 1 : 20);
            exchange.expectResults(add, inPlace);
          }
}

TEST(HostCollectives, FlatOrderInFloat32) { testAll<float>(pb::F32); }
TEST(HostCollectives, FlatOrderInFloat64) { testAll<double>(pb::F64); }
TEST(HostCollectives, FlatOrderInInt64) { testAll<int64_t>(pb::I64); }

TEST(HostCollectives, AccumulationInFloat64RoundsOnce) {
  CollectiveSpec spec{pb::Collective::ALL_REDUCE,
                      pb::Collective::SUM,
                      pb::F32,
                      pb::F32,
                      pb::F64,
                      {1}};
  CollectiveGroup group(3, 1, scratchBytes(spec));
  // In float32 the first sum would lose the 1.
  const float values[] = {1e8f, 1, -1e8f};
  float results[3];
  std::atomic<bool> ended{false};
  onThreads(3, [&](uint32_t me) {
    float value = values[me];
    Argument in{reinterpret_cast<std::byte *>(&value)};
    Argument out{reinterpret_cast<std::byte *>(&results[me])};
    EXPECT_TRUE(group.run(spec, 0, me, &in, &out, ended).isOk());
  });
  for (float result : results)
    EXPECT_EQ(result, 1);
}

/// Contributions and the sum are rounded to the type of the wire, the sums in
/// between are not; accumulating rounds once more.
TEST(HostCollectives, Bfloat16OperandsAndWire) {
  // bfloat16 has 8 bits: 257 is a tie, rounded to the even 256.
  const float values[] = {257, 1, 1, 2};
  auto sums = [&](pb::Collective::Kind kind, auto element, pb::DType type,
                  pb::DType wire, bool add) {
    using T = decltype(element);
    CollectiveSpec spec{kind, pb::Collective::SUM, type, wire, pb::F32, {4}};
    CollectiveGroup group(4, 1, scratchBytes(spec));
    std::atomic<bool> ended{false};
    std::vector<float> results(4);
    onThreads(4, [&](uint32_t me) {
      T source[4], out[4];
      for (int i = 0; i < 4; ++i) {
        source[i] = static_cast<T>(values[me]);
        out[i] = static_cast<T>(1.0f);
      }
      Argument in{reinterpret_cast<std::byte *>(source)};
      Argument to{reinterpret_cast<std::byte *>(out), add};
      EXPECT_TRUE(group.run(spec, 0, me, &in, &to, ended).isOk());
      results[me] = out[0];
    });
    return results;
  };
  auto expect = [&](float want, auto element, pb::DType type, pb::DType wire,
                    bool add) {
    for (auto kind :
         {pb::Collective::REDUCE_SCATTER, pb::Collective::ALL_REDUCE})
      EXPECT_EQ(sums(kind, element, type, wire, add),
                std::vector<float>(4, want));
  };
  // Rounded at each addition, 256 + 1 + 1 + 2 would be 258.
  expect(261, float(), pb::F32, pb::F32, false);
  expect(260, float(), pb::F32, pb::BF16, false);
  expect(261, float(), pb::F32, pb::BF16, true);
  expect(260, BFloat16(), pb::BF16, pb::BF16, false);
  expect(260, BFloat16(), pb::BF16, pb::F32, false);
  // 1 + 260 is again half way, to 260.
  expect(260, BFloat16(), pb::BF16, pb::BF16, true);
}

TEST(HostCollectives, Maximum) {
  CollectiveSpec spec{pb::Collective::ALL_REDUCE,
                      pb::Collective::MAX,
                      pb::I64,
                      pb::I64,
                      pb::I64,
                      {2}};
  CollectiveGroup group(4, 1, scratchBytes(spec));
  std::atomic<bool> ended{false};
  onThreads(4, [&](uint32_t me) {
    int64_t values[] = {me == 2 ? 9 : -5, -static_cast<int64_t>(me) - 1};
    Argument place{reinterpret_cast<std::byte *>(values)};
    EXPECT_TRUE(group.run(spec, 0, me, &place, &place, ended).isOk());
    EXPECT_EQ(values[0], 9);
    EXPECT_EQ(values[1], -1);
  });
}

TEST(HostCollectives, DifferentCollectivesAreAnError) {
  CollectiveSpec spec = oneMember(pb::Collective::ALL_GATHER, 1);
  CollectiveGroup group(2, 1, 0);
  std::atomic<bool> ended{false};
  onThreads(2, [&](uint32_t me) {
    float value = 0, result[2];
    Argument in{reinterpret_cast<std::byte *>(&value)};
    Argument out{reinterpret_cast<std::byte *>(result)};
    std::string message =
        group.run(spec, me == 0 ? 12 : 14, me, &in, &out, ended).message();
    EXPECT_NE(message.find("the ranks of its communicator run different "
                           "collectives: member"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("operation 12"), std::string::npos) << message;
    EXPECT_NE(message.find("operation 14"), std::string::npos) << message;
  });
}

TEST(HostCollectives, EndedWhileWaiting) {
  CollectiveSpec spec = oneMember(pb::Collective::ALL_GATHER, 1);
  CollectiveGroup group(3, 1, 0);
  std::atomic<bool> ended{false};
  onThreads(3, [&](uint32_t me) {
    // Member 2 never comes.
    if (me == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ended = true;
      return;
    }
    float value = 0, result[3];
    Argument in{reinterpret_cast<std::byte *>(&value)};
    Argument out{reinterpret_cast<std::byte *>(result)};
    EXPECT_EQ(group.run(spec, 0, me, &in, &out, ended).message(),
              "the run was ended in a collective");
  });
}

TEST(HostCollectives, OverlapMustBeExact) {
  CollectiveSpec spec = oneMember(pb::Collective::ALL_REDUCE, 2);
  CollectiveGroup group(1, 1, scratchBytes(spec));
  float values[3] = {};
  std::atomic<bool> ended{false};
  Argument in{reinterpret_cast<std::byte *>(values)};
  Argument out{reinterpret_cast<std::byte *>(values + 1)};
  std::string message = group.run(spec, 0, 0, &in, &out, ended).message();
  EXPECT_EQ(message, "source and destination of member 0 overlap and are not "
                     "the same place");
}

/// Ranks of a 2 x 3 x 2 mesh are ((dp * 3) + gtp) * 2 + tp.
TEST(HostCollectives, GroupsOfSeveralAxes) {
  HostPlan plan({{"dp", 2}, {"gtp", 3}, {"tp", 2}});
  plan.communicator({1});
  plan.communicator({0, 1});
  Groups gtp = groupsOf(plan.plan.mesh(), plan.plan.communicators(0));
  EXPECT_EQ(gtp.size, 3u);
  EXPECT_EQ(gtp.count, 4u);
  EXPECT_EQ(gtp.group[1], gtp.group[5]);
  EXPECT_NE(gtp.group[0], gtp.group[1]);
  EXPECT_NE(gtp.group[0], gtp.group[6]);
  EXPECT_EQ(gtp.position[6], 0u);
  EXPECT_EQ(gtp.position[11], 2u);
  Groups both = groupsOf(plan.plan.mesh(), plan.plan.communicators(1));
  EXPECT_EQ(both.size, 6u);
  EXPECT_EQ(both.count, 2u);
  EXPECT_EQ(both.position[7], 3u);
  EXPECT_EQ(both.group[7], both.group[11]);
}

std::string refusal(const pb::Collective &collective, uint32_t groupSize) {
  return readCollective(collective, groupSize).message();
}

TEST(HostCollectives, WhatTheHostDoesNotHaveIsRefusedByName) {
  HostPlan plan;
  pb::Region *region = plan.region(pb::Region::ONCE);
  pb::Collective legal = *plan.collective(
      region, 0, pb::Collective::REDUCE_SCATTER, plan.communicator({}),
      operand(0, pb::F32, {6}), operand(0, pb::F32, {2}));
  EXPECT_EQ(refusal(legal, 3), "");
  EXPECT_NE(refusal(legal, 2).find("do not fit a group of 2 ranks"),
            std::string::npos);
  struct Row {
    void (*change)(pb::Collective &);
    const char *sentence;
  } rows[] = {
      {[](pb::Collective &c) { c.set_order(pb::Collective::RING); },
       "reductions are in order FLAT, not RING"},
      {[](pb::Collective &c) { c.set_wire(pb::F64); },
       "it reduces f32, sent as f64 and accumulated in f32; reductions are of "
       "f32 and bf16, sent as either and accumulated in f32 or f64, and of f64 "
       "and i64 as themselves"},
      {[](pb::Collective &c) { c.set_accumulation(pb::I64); },
       "it reduces f32, sent as f32 and accumulated in i64; reductions are "
       "of "},
      {[](pb::Collective &c) { c.set_kind(pb::Collective::ALL_TO_ALL); },
       "there is all-gather, reduce-scatter and all-reduce, not ALL_TO_ALL"},
      {[](pb::Collective &c) {
         c.set_reduce(static_cast<pb::Collective::Reduce>(9));
       },
       "it reduces with an operation that does not exist"},
      {[](pb::Collective &c) { c.mutable_sources(0)->set_dtype(pb::I32); },
       "it reduces i32, sent as f32 and accumulated in f32; reductions are "
       "of "},
      {[](pb::Collective &c) { c.mutable_destinations(0)->set_dtype(pb::F64); },
       "source and destination differ in type: f32[6] and f64[2]"},
      {[](pb::Collective &c) {
         c.mutable_sources(0)->add_dims(1);
         c.mutable_sources(0)->set_pitch(2);
       },
       "source and destination must be dense: "},
      {[](pb::Collective &c) {
         *c.add_sources() = operand(0, pb::F64, {6});
         *c.add_destinations() = operand(0, pb::F64, {2});
       },
       "its members differ in type"},
      {[](pb::Collective &c) { c.mutable_sources(0)->set_accumulate(true); },
       "only the destination of a reduction accumulates"},
      {[](pb::Collective &c) { c.set_transport(pb::Collective::SYMMETRIC); },
       "it goes by SYMMETRIC, which sums 3 ranks in another order than FLAT"},
      {[](pb::Collective &c) { c.set_transport(pb::Collective::PAIRWISE); },
       "it goes by PAIRWISE with 0 bytes of scratch, expected 768"},
      {[](pb::Collective &c) { c.clear_sources(); },
       "it has 0 sources and 1 destinations; it needs as many, at least one"},
  };
  for (const Row &row : rows) {
    pb::Collective changed = legal;
    row.change(changed);
    EXPECT_EQ(refusal(changed, 3).rfind(row.sentence, 0), 0u)
        << "expected '" << row.sentence << "', found '" << refusal(changed, 3)
        << "'";
  }
}

} // namespace
