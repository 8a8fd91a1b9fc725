//===- JobTest.cpp - Which rank a process is, and how ranks talk ----------===//

#include "gtp-rt/ControlChannel.h"
#include "gtp-rt/JobPlace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

namespace {

StatusOr<std::optional<JobPlace>>
placeOf(const std::map<std::string, std::string> &variables) {
  return jobPlace([&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(JobPlace, ComesFromLaunchers) {
  auto none = placeOf({{"SLURM_PROCID", "0"}});
  ASSERT_TRUE(none.isOk()) << none.message();
  EXPECT_FALSE(*none);
  EXPECT_FALSE(*placeOf({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));

  auto torchrun = placeOf({{"RANK", "3"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "node7"},
                           {"MASTER_PORT", "1234"}});
  ASSERT_TRUE(torchrun.isOk() && *torchrun) << torchrun.message();
  EXPECT_EQ((*torchrun)->rank, 3u);
  EXPECT_EQ((*torchrun)->size, 4u);
  EXPECT_EQ((*torchrun)->localRank, 1u);
  EXPECT_EQ((*torchrun)->address, "node7");
  EXPECT_EQ((*torchrun)->port, 1234);

  auto mpirun = placeOf({{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(mpirun.isOk() && *mpirun) << mpirun.message();
  EXPECT_EQ((*mpirun)->address, "127.0.0.1");

  auto srun = placeOf({{"SLURM_PROCID", "1"},
                       {"SLURM_STEP_NUM_TASKS", "2"},
                       {"SLURM_LOCALID", "0"},
                       {"MASTER_ADDR", "node0"}});
  ASSERT_TRUE(srun.isOk() && *srun) << srun.message();
  EXPECT_EQ((*srun)->size, 2u);
  EXPECT_EQ((*srun)->localRank, 0u);
}

TEST(JobPlace, NamesWhatIsMissing) {
  EXPECT_EQ(placeOf({{"RANK", "0"}}).message(),
            "RANK is set, as torchrun does, but WORLD_SIZE is not; set all of "
            "them or none");
  EXPECT_EQ(placeOf({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).message(),
            "RANK=x: expected an integer, 0 or more");
  EXPECT_EQ(placeOf({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}})
                .message(),
            "RANK=2: expected below WORLD_SIZE=2");
  EXPECT_EQ(
      placeOf({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}})
          .message(),
      "MASTER_ADDR is not set; it must name the machine of rank 0, which the "
      "other ranks connect to");
  EXPECT_EQ(placeOf({{"RANK", "1"},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_RANK", "0"},
                     {"MASTER_ADDR", "a"},
                     {"MASTER_PORT", "0"}})
                .message(),
            "MASTER_PORT=0: expected a port, 1 to 65535");
}

/// Ranks as threads; each runs `body` with its channel.
void runJob(uint64_t size, const ChannelOptions &options,
            const std::function<void(std::unique_ptr<ControlChannel>)> &body) {
  static std::atomic<uint16_t> port{
      static_cast<uint16_t>(20000 + getpid() % 9000)};
  JobPlace place;
  place.size = size;
  place.address = "127.0.0.1";
  place.port = ++port;
  std::vector<std::thread> threads;
  for (uint64_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank, place]() mutable {
      place.rank = rank;
      auto channel = ControlChannel::open(place, options);
      ASSERT_TRUE(channel.isOk()) << channel.message();
      body(std::move(*channel));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(ControlChannel, ExchangesAndCollects) {
  runJob(4, {}, [](std::unique_ptr<ControlChannel> channel) {
    for (int round = 0; round < 3; ++round) {
      auto all = channel->exchange(std::string(1000, 'a' + char(round)) +
                                   std::to_string(channel->rank()));
      ASSERT_TRUE(all.isOk()) << all.message();
      for (uint64_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ((*all)[rank],
                  std::string(1000, 'a' + char(round)) + std::to_string(rank));
    }
    // More than a socket holds.
    std::string large(5000000, char('0' + channel->rank()));
    if (channel->rank() == 2) {
      Status sent = channel->send(large.data(), large.size());
      EXPECT_TRUE(sent.isOk()) << sent.message();
    }
    if (channel->rank() == 0) {
      auto got = channel->receive(2);
      ASSERT_TRUE(got.isOk()) << got.message();
      EXPECT_EQ(*got, std::string(5000000, '2'));
    }
    Status finished = channel->finish();
    EXPECT_TRUE(finished.isOk()) << finished.message();
  });
}

TEST(ControlChannel, AFailureReachesEveryRank) {
  runJob(3, {}, [](std::unique_ptr<ControlChannel> channel) {
    if (channel->rank() == 1)
      channel->fail("rank 1: out of memory");
    // Would wait for rank 1 for ever.
    auto all = channel->exchange("x");
    if (channel->rank() == 1)
      return;
    EXPECT_EQ(all.message(), "rank 1: out of memory");
  });
}

TEST(ControlChannel, ARankThatEndsOrHangsIsNamed) {
  std::atomic<int> hangs{0};
  ChannelOptions options;
  options.silenceSeconds = 1;
  options.graceSeconds = 0.2;
  options.onHang = [&](const std::string &why) {
    EXPECT_EQ(why, "rank 2 ended before the job did");
    ++hangs;
  };
  std::atomic<bool> over{false};
  runJob(3, options, [&](std::unique_ptr<ControlChannel> channel) {
    if (channel->rank() == 2)
      return;
    auto all = channel->exchange("x");
    EXPECT_EQ(all.message(), "rank 2 ended before the job did");
    // A rank that does not end by itself is told to.
    while (hangs < 2 && !over)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_EQ(hangs, 2);
}

} // namespace
