//===- JobTest.cpp - Which rank a process is, and how ranks talk ----------===//

#include "Job.h"
#include "ControlSocket.h"
#include "gtp-rt/ControlChannel.h"
#include "gtp-rt/JobPlace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

namespace {

using Variables = std::map<std::string, std::string>;

/// `variables` must outlive it.
Environment environmentOf(const Variables &variables) {
  return [&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

StatusOr<std::optional<JobPlace>> placeOf(const Variables &variables) {
  return jobPlace(environmentOf(variables));
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

/// torchrun's agent keeps the port for its own.
TEST(JobPlace, LeavesTheAgentItsPort) {
  Variables variables = {
      {"RANK", "1"},           {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "1"},     {"MASTER_ADDR", "node7"},
      {"MASTER_PORT", "1234"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  EXPECT_EQ((*placeOf(variables))->port, 1235);
  variables["MASTER_PORT"] = "65535";
  EXPECT_EQ((*placeOf(variables))->port, 65534);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ((*placeOf(variables))->port, 65535);
}

TEST(JobPlace, ComesFromHydra) {
  Variables variables = {{"PMI_RANK", "1"},
                         {"PMI_SIZE", "2"},
                         {"MPI_LOCALRANKID", "1"},
                         {"MPI_LOCALNRANKS", "2"}};
  // Of the daemon that Slurm has started.
  variables.insert({{"SLURM_PROCID", "0"},
                    {"SLURM_STEP_NUM_TASKS", "3"},
                    {"SLURM_LOCALID", "0"}});
  auto mpirun = placeOf(variables);
  ASSERT_TRUE(mpirun.isOk() && *mpirun) << mpirun.message();
  EXPECT_EQ((*mpirun)->rank, 1u);
  EXPECT_EQ((*mpirun)->size, 2u);
  EXPECT_EQ((*mpirun)->localRank, 1u);
  EXPECT_EQ((*mpirun)->address, "127.0.0.1");
}

TEST(JobPlace, ComesFromStepsOfOneMachine) {
  Variables step = {{"SLURM_PROCID", "1"},
                    {"SLURM_STEP_NUM_TASKS", "2"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_STEP_NUM_NODES", "1"},
                    {"PMI_RANK", "1"}};
  auto one = placeOf(step);
  ASSERT_TRUE(one.isOk() && *one) << one.message();
  EXPECT_EQ((*one)->rank, 1u);
  EXPECT_EQ((*one)->localRank, 1u);
  EXPECT_EQ((*one)->address, "127.0.0.1");
  step["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_EQ(placeOf(step).message(),
            "MASTER_ADDR is not set; it must name the machine of rank 0, which "
            "the other ranks connect to");
  // An interactive shell is a step of one task.
  step["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_FALSE(*placeOf(step));
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

/// The role of a process that sees `count` GPUs, for a plan of `ranks` ranks.
StatusOr<Role> roleOf(const Variables &variables, uint64_t ranks, int count) {
  GpuSupport gpus;
  gpus.count = [count] { return count; };
  return chooseRole(RunOptions(), ranks, &gpus, environmentOf(variables));
}

Variables rankOf(int rank, int size) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"}};
}

TEST(Role, IsOfThePlanTheGpusAndTheJob) {
  EXPECT_EQ(roleOf({}, 2, 0)->kind, Role::AllRanks);
  EXPECT_EQ(roleOf({}, 1, 1)->kind, Role::OneRank);
  EXPECT_EQ(roleOf({}, 2, 2)->kind, Role::Launcher);
  auto second = roleOf(rankOf(1, 2), 2, 2);
  ASSERT_TRUE(second.isOk()) << second.message();
  EXPECT_EQ(second->kind, Role::OneRank);
  EXPECT_FALSE(second->writes());
  EXPECT_EQ(second->device, 1);
}

/// As under srun --gpus-per-task=1, whose tasks count on over the machine.
TEST(Role, TakesTheOnlyGpuThatItSees) {
  Variables task = {{"SLURM_PROCID", "3"},
                    {"SLURM_STEP_NUM_TASKS", "4"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_STEP_NUM_NODES", "2"},
                    {"MASTER_ADDR", "node0"}};
  auto role = roleOf(task, 4, 1);
  ASSERT_TRUE(role.isOk()) << role.message();
  EXPECT_EQ(role->kind, Role::OneRank);
  EXPECT_EQ(role->device, 0);
  // Of several that it sees, it takes one that is not its neighbour's.
  role = roleOf(task, 4, 2);
  ASSERT_TRUE(role.isOk()) << role.message();
  EXPECT_EQ(role->device, 1);
}

TEST(Role, NamesWhatDoesNotFit) {
  EXPECT_EQ(roleOf(rankOf(1, 2), 2, 0).message(),
            "the environment makes this process rank 1 of 2, and a process a "
            "rank needs GPUs, which this run has not; start gtp-run once, "
            "without a launcher, and the host backend runs all ranks in it");
  EXPECT_EQ(roleOf(rankOf(1, 2), 4, 2).message(),
            "the plan has 4 ranks and the job 2 processes; start one for each "
            "rank");
  EXPECT_EQ(roleOf(rankOf(2, 3), 3, 2).message(),
            "rank 2 is process 2 of its machine, counted from 0, and sees 2 "
            "GPUs; start at most one a GPU");
}

/// A port of this program's own.
uint16_t nextPort() {
  static std::atomic<uint16_t> port{
      static_cast<uint16_t>(20000 + getpid() % 9000)};
  return ++port;
}

/// Ranks as threads; each runs `body` with its channel.
void runJob(uint64_t size, const ChannelOptions &options,
            const std::function<void(std::unique_ptr<ControlChannel>)> &body) {
  JobPlace place;
  place.size = size;
  place.address = "127.0.0.1";
  place.port = nextPort();
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

TEST(ControlChannel, RanksThatDifferAreNamed) {
  runJob(2, {}, [](std::unique_ptr<ControlChannel> channel) {
    bool first = channel->rank() == 0;
    EXPECT_TRUE(agree(*channel, "p", "--steps=1", "gpu").isOk());
    EXPECT_EQ(agree(*channel, first ? "p" : "q", "--steps=1", "gpu").message(),
              "rank 1 has another plan than rank 0: 'q' and 'p'; all ranks "
              "must have the same");
    Status finished = channel->finish();
    EXPECT_TRUE(finished.isOk()) << finished.message();
  });
}

TEST(ControlChannel, RanksWithOneGpuAreNamed) {
  runJob(4, {}, [](std::unique_ptr<ControlChannel> channel) {
    std::string own = "0000:0" + std::to_string(channel->rank()) + ":00.0";
    Status apart = checkOwnGpus(*channel, own);
    EXPECT_TRUE(apart.isOk()) << apart.message();
    EXPECT_EQ(
        checkOwnGpus(*channel, channel->rank() % 2 ? "the one" : own).message(),
        "rank 3 has the GPU of rank 1, the one; start at most one a GPU, "
        "and let the processes of a machine see all of its GPUs "
        "(CUDA_VISIBLE_DEVICES), or each one of its own");
    Status finished = channel->finish();
    EXPECT_TRUE(finished.isOk()) << finished.message();
  });
}

TEST(ControlSocket, NamesWhoDidNotConnect) {
  EXPECT_EQ(acceptRanks("127.0.0.1", nextPort(), 3, 1).status().message(),
            "these ranks have not connected to rank 0 within 1 seconds: 1, 2");
  JobPlace place;
  place.rank = 1;
  place.size = 2;
  place.address = "127.0.0.1";
  place.port = nextPort();
  EXPECT_EQ(connectToRoot(place, 1).status().message(),
            "rank 1 cannot connect to rank 0 at 127.0.0.1:" +
                std::to_string(place.port) + " within 1 seconds");
}

TEST(ControlSocket, ATakenPortIsNamed) {
  int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto *where = reinterpret_cast<sockaddr *>(&address);
  ASSERT_EQ(bind(handle, where, size), 0);
  ASSERT_EQ(listen(handle, 1), 0);
  ASSERT_EQ(getsockname(handle, where, &size), 0);
  uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(acceptRanks("127.0.0.1", port, 2, 1).status().message(),
            "rank 0 cannot listen on port " + std::to_string(port) +
                ": Address already in use; set MASTER_PORT to a free one");
  close(handle);
}

TEST(ControlSocket, ALostConnectionIsAnError) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ControlSocket left(ends[0]);
  EXPECT_TRUE(left.send({Message::Text, "x"}).isOk());
  close(ends[1]);
  EXPECT_EQ(left.send({Message::Text, "x"}).message(),
            "the connection to another rank is lost");
}

/// What LaunchRanks.StartsThemAll starts this program for.
TEST(LaunchedRank, DISABLED_EndsAsItsNumberSays) {
  const char *rank = std::getenv("RANK");
  const char *size = std::getenv("WORLD_SIZE");
  ASSERT_TRUE(rank && size && std::getenv("MASTER_PORT"));
  std::_Exit(std::string(size) == "3" && std::string(rank) == "1" ? 7 : 0);
}

TEST(LaunchRanks, StartsThemAllAndNamesTheFirstThatFails) {
  const char *const argv[] = {
      "ranks", "--gtest_also_run_disabled_tests",
      "--gtest_filter=LaunchedRank.DISABLED_EndsAsItsNumberSays", nullptr};
  Status two = launchRanks(2, argv);
  EXPECT_TRUE(two.isOk()) << two.message();
  EXPECT_EQ(launchRanks(3, argv).message(), "rank 1 ended with exit code 7");
  EXPECT_EQ(launchRanks(2000, argv).message(),
            "the plan has 2000 ranks; this starts up to 1024 on one machine");
}

} // namespace
