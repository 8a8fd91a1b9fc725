//===- CudaCollectivesTest.cpp - Collectives of two GPUs ------------------===//
//
// Two threads stand for the processes of two ranks. What the plan means is what
// the host backend computes, so results must be the same bits.
//
//===----------------------------------------------------------------------===//

#include "HostPlan.h"
#include "gtp-rt/CudaBackend.h"
#include "gtp/Plan/Transport.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

using namespace gtp;
using namespace gtp::test;
using pb::Collective;

namespace {

constexpr uint64_t kRanks = 2;

/// The exchange of a job, between threads.
class Meeting {
public:
  std::vector<std::string> exchange(uint64_t rank, const std::string &text) {
    std::unique_lock<std::mutex> lock(mutex);
    texts[rank] = text;
    uint64_t round = rounds;
    if (++arrived == kRanks) {
      arrived = 0;
      ++rounds;
      all = texts;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return rounds != round; });
    return all;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> texts{kRanks}, all;
  uint64_t arrived = 0, rounds = 0;
};

struct Case {
  Collective::Kind kind;
  pb::DType type;
  pb::DType accumulation;
  uint64_t count; ///< elements of a source
  Collective::Reduce reduce = Collective::SUM;
  bool adds = false;
  Collective::Transport transport = Collective::HOST;
  /// That of the operands without one.
  pb::DType wire = pb::DTYPE_INVALID;
};

class CudaCollectives : public testing::Test {
protected:
  void SetUp() override {
    if (rt::countGpus() < int(kRanks))
      GTEST_SKIP() << "two GPUs are needed, this machine has "
                   << rt::countGpus();
  }
};

std::vector<std::byte> randomBytes(const Case &c, uint64_t elements,
                                   uint64_t seed) {
  uint64_t size = plan::dtypeSize(c.type);
  std::vector<std::byte> bytes(elements * size);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (uint64_t i = 0; i < elements; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto value = static_cast<int64_t>(state >> 40) - (1 << 23);
    auto put = [&](auto converted) {
      std::memcpy(&bytes[i * size], &converted, size);
    };
    if (c.type == pb::F32)
      put(float(value) / 1000);
    else if (c.type == pb::F64)
      put(double(value) / 1000);
    else
      put(value);
  }
  return bytes;
}

/// A body of three iterations, each with the collective; then what rank `rank`
/// has in its destination.
std::vector<std::byte> runRank(rt::Backend &backend, const Case &c,
                               uint64_t rank, uint64_t in, uint64_t out) {
  write(backend, rank, 0, randomBytes(c, in, rank + 1));
  write(backend, rank, 1, randomBytes(c, out, rank + 11));
  // The third and later steps are replays of a graph.
  for (int step = 0; step < 4; ++step) {
    Status status = backend.runStep(0, nullptr);
    EXPECT_TRUE(status.isOk()) << status.message();
  }
  return read<std::byte>(backend, rank, 1, out * plan::dtypeSize(c.type));
}

void compare(const Case &c) {
  SCOPED_TRACE(Collective::Kind_Name(c.kind) + " of " +
               std::to_string(c.count) + " " + plan::dtypeName(c.type) +
               (c.adds ? ", adding" : "") + " by " +
               Collective::Transport_Name(c.transport));
  uint64_t in = c.count, out = c.count;
  if (c.kind == Collective::ALL_GATHER)
    out *= kRanks;
  if (c.kind == Collective::REDUCE_SCATTER)
    out /= kRanks;
  HostPlan plan({{"gtp", kRanks}});
  uint64_t size = plan::dtypeSize(c.type);
  uint32_t from = plan.buffer(in * size, pb::Buffer::PERSISTENT);
  uint32_t to = plan.buffer(out * size, pb::Buffer::PERSISTENT);
  uint32_t communicator = plan.communicator({0});
  pb::Region *region = plan.region(pb::Region::BODY, 3);
  pb::Operand destination = operand(to, c.type, {out});
  destination.set_accumulate(c.adds);
  pb::Collective *collective =
      plan.collective(region, 1, c.kind, communicator,
                      operand(from, c.type, {in}), destination);
  collective->set_accumulation(c.accumulation);
  collective->set_reduce(c.reduce);
  collective->set_transport(c.transport);
  if (c.wire != pb::DTYPE_INVALID)
    collective->set_wire(c.wire);
  plan.plan.mutable_memory(0)->set_symmetric(true);
  pb::Communicator *group = plan.plan.mutable_communicators(0);
  group->set_needs_window(plan::needsWindow(c.transport));
  if (c.transport == Collective::COPY_ENGINE)
    group->set_cta_policy(pb::Communicator::ZERO);
  if (uint64_t bytes = plan::collectiveScratchBytes(*collective, kRanks))
    *collective->mutable_scratch() =
        operand(plan.buffer(bytes, pb::Buffer::TRANSIENT), pb::U8, {bytes});

  auto host = makeBackend(plan.plan);
  std::vector<std::byte> want[kRanks], got[kRanks];
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    write(*host, rank, 0, randomBytes(c, in, rank + 1));
    write(*host, rank, 1, randomBytes(c, out, rank + 11));
  }
  for (int step = 0; step < 4; ++step) {
    Status status = host->runStep(0, nullptr);
    ASSERT_TRUE(status.isOk()) << status.message();
  }
  Meeting meeting;
  std::vector<std::thread> threads;
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    want[rank] = read<std::byte>(*host, rank, 1, out * size);
    threads.emplace_back([&, rank] {
      rt::CudaPlace place;
      place.rank = rank;
      place.device = static_cast<int>(rank);
      place.exchange = [&, rank](const std::string &text) {
        return StatusOr<std::vector<std::string>>(meeting.exchange(rank, text));
      };
      auto backend = rt::createCudaBackend(plan.plan, {}, place);
      ASSERT_TRUE(backend.isOk()) << backend.message();
      got[rank] = runRank(**backend, c, rank, in, out);
      meeting.exchange(rank, "done");
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  for (uint64_t rank = 0; rank < kRanks; ++rank)
    EXPECT_TRUE(got[rank] == want[rank]) << "rank " << rank;
}

TEST_F(CudaCollectives, GatherLikeTheHost) {
  compare({Collective::ALL_GATHER, pb::F32, pb::F32, 1001});
  compare({Collective::ALL_GATHER, pb::F64, pb::F64, 300000});
}

TEST_F(CudaCollectives, ReduceLikeTheHost) {
  // Small ones go whole, large ones in pieces, which need not be equal.
  for (auto [kind, count] :
       {std::pair<Collective::Kind, uint64_t>{Collective::REDUCE_SCATTER, 2002},
        {Collective::REDUCE_SCATTER, 400002},
        {Collective::ALL_REDUCE, 1},
        {Collective::ALL_REDUCE, 1001},
        {Collective::ALL_REDUCE, 400001}})
    for (bool adds : {false, true}) {
      compare({kind, pb::F32, pb::F32, count, Collective::SUM, adds});
      compare({kind, pb::F32, pb::F64, count, Collective::SUM, adds});
      compare({kind, pb::I64, pb::I64, count, Collective::SUM, adds});
    }
  compare({Collective::ALL_REDUCE, pb::F64, pb::F64, 77, Collective::MAX});
}

TEST_F(CudaCollectives, EveryTransportLikeTheHost) {
  for (Collective::Transport transport :
       {Collective::COPY_ENGINE, Collective::SYMMETRIC,
        Collective::RING_TRANSPORT, Collective::PAIRWISE})
    for (Case c : {Case{Collective::ALL_GATHER, pb::F32, pb::F32, 100001},
                   Case{Collective::REDUCE_SCATTER, pb::F32, pb::F32, 400002,
                        Collective::SUM, true},
                   Case{Collective::REDUCE_SCATTER, pb::F32, pb::F32, 400002,
                        Collective::SUM, true, transport, pb::BF16},
                   Case{Collective::ALL_REDUCE, pb::F32, pb::F32, 400001,
                        Collective::SUM, true},
                   Case{Collective::ALL_REDUCE, pb::I64, pb::I64, 1}}) {
      c.transport = transport;
      plan::CollectiveMeaning meaning;
      meaning.kind = c.kind;
      meaning.type = c.type;
      meaning.wire = c.wire == pb::DTYPE_INVALID ? c.type : c.wire;
      meaning.accumulation = c.accumulation;
      meaning.ranks = kRanks;
      if (plan::whyNotBy(transport, meaning).empty())
        compare(c);
    }
}

} // namespace
