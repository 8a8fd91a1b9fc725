//===- LaunchRanks.cpp - Starts a process a rank on this machine ----------===//

#include "gtp-rt/JobPlace.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace gtp;
using namespace gtp::rt;

/// A TCP port of this machine that nobody listens on.
static StatusOr<uint16_t> freePort() {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bool found =
      socket >= 0 &&
      bind(socket, reinterpret_cast<sockaddr *>(&address), size) == 0 &&
      getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size) == 0;
  std::string why = std::strerror(errno);
  if (socket >= 0)
    close(socket);
  if (!found)
    return Status::error("cannot find a free TCP port on this machine: " + why);
  return ntohs(address.sin_port);
}

/// In the child: becomes rank `rank`. Does not return.
[[noreturn]] static void become(uint64_t rank, uint64_t ranks, uint16_t port,
                                pid_t parent, const char *const *argv) {
  // Ranks end with what started them, whatever ends that.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  execv("/proc/self/exe", const_cast<char *const *>(argv));
  std::fprintf(stderr, "gtp-run: error: cannot start rank %lu: %s\n",
               static_cast<unsigned long>(rank), std::strerror(errno));
  _exit(1);
}

static std::string describeEnd(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

/// The processes that this one has started; a signal handler passes SIGTERM on.
static constexpr size_t kMostRanks = 1024;
static volatile sig_atomic_t startedCount = 0;
static pid_t startedRanks[kMostRanks];

static void passOn(int signal) {
  for (int i = 0; i < startedCount; ++i)
    if (startedRanks[i] > 0)
      kill(startedRanks[i], signal);
}

/// Waits for all; the first that fails starts the clock for the others.
static Status waitForAll(double graceSeconds) {
  using Clock = std::chrono::steady_clock;
  Status first = Status::ok();
  Clock::time_point deadline = Clock::time_point::max();
  for (int left = startedCount; left > 0;) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0 && errno != EINTR)
      return Status::error(std::string("cannot wait for the ranks: ") +
                           std::strerror(errno));
    if (ended <= 0) {
      if (Clock::now() > deadline) {
        passOn(SIGKILL);
        deadline = Clock::time_point::max();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    for (int i = 0; i < startedCount; ++i) {
      if (startedRanks[i] != ended)
        continue;
      startedRanks[i] = 0;
      --left;
      if (status == 0 || !first.isOk())
        continue;
      first = Status::error("rank " + std::to_string(i) + " " +
                            describeEnd(status));
      deadline = Clock::now() + std::chrono::milliseconds(
                                    static_cast<int64_t>(graceSeconds * 1e3));
    }
  }
  return first;
}

Status gtp::rt::launchRanks(uint64_t ranks, const char *const *argv,
                            double graceSeconds) {
  if (ranks > kMostRanks)
    return Status::error("the plan has " + std::to_string(ranks) +
                         " ranks; this starts up to " +
                         std::to_string(kMostRanks) + " on one machine");
  GTP_ASSIGN_OR_RETURN(uint16_t port, freePort());
  std::fflush(nullptr);
  startedCount = 0;
  struct sigaction action = {}, previous = {};
  action.sa_handler = passOn;
  action.sa_flags = static_cast<int>(SA_RESTART);
  sigaction(SIGTERM, &action, &previous);
  const pid_t parent = getpid();
  Status status = Status::ok();
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      sigaction(SIGTERM, &previous, nullptr);
      become(rank, ranks, port, parent, argv);
    }
    if (child < 0) {
      status = Status::error("cannot start rank " + std::to_string(rank) +
                             ": " + std::strerror(errno));
      passOn(SIGKILL);
      break;
    }
    startedRanks[rank] = child;
    startedCount = static_cast<sig_atomic_t>(rank + 1);
  }
  Status ended = waitForAll(graceSeconds);
  sigaction(SIGTERM, &previous, nullptr);
  return status.isOk() ? std::move(ended) : std::move(status);
}
