//===- Worker.h - One stream of one rank ----------------------------------===//

#ifndef GTP_RUNTIME_HOST_WORKER_H
#define GTP_RUNTIME_HOST_WORKER_H

#include "Collectives.h"
#include "Program.h"
#include "Wait.h"

#include "gtp-rt/HostBackend.h"

#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

namespace gtp::rt::host {

/// Zeroed pages, aligned.
class Arena {
public:
  Arena() = default;
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  Status allocate(uint64_t bytes, uint64_t alignment);
  std::byte *base() const { return start; }

private:
  void *mapping = nullptr;
  uint64_t mapped = 0;
  std::byte *start = nullptr;
};

/// What a run ends with, and whether it has. The first failure counts.
class Outcome {
public:
  /// `position` is where, if it was in an operation.
  void fail(std::optional<HostPosition> position, std::string message);
  const std::atomic<bool> &ended() const { return flag; }

  // Once every worker has stopped.
  const std::optional<HostPosition> &where() const { return position; }
  const std::string &message() const { return text; }

private:
  std::atomic<bool> flag{false};
  std::mutex mutex; // taken by failures only
  std::optional<HostPosition> position;
  std::string text;
};

/// What the workers of a rank share.
struct Rank {
  Rank(uint64_t number, const Code &code, std::vector<uint64_t> coordinates);

  const uint64_t number;
  /// By axis; zero behind the last.
  std::vector<uint64_t> coordinates;
  Arena arena;
  /// By program and region.
  std::vector<std::vector<std::vector<Event>>> events;
  Barrier join;
  /// Where operations run one by one: how many of the iteration's are done.
  Event turn;
};

/// What all workers share.
struct Shared {
  Shared(const Code &code, const BackendOptions &options, HostHooks hooks)
      : code(code), options(options), hooks(std::move(hooks)) {}

  const Code &code;
  const BackendOptions options;
  const HostHooks hooks;
  Outcome outcome;
  /// By communicator and group.
  std::vector<std::vector<std::unique_ptr<CollectiveGroup>>> groups;

  // The command that the next number of `go` starts.
  uint32_t program = 0, firstRegion = 0, endRegion = 0;
  Timing timing = Timing::None;
  std::chrono::steady_clock::time_point start;
  Event go;
  std::atomic<bool> stopping{false};
  std::atomic<uint32_t> running{0};
  Event done;
};

class Worker {
public:
  Worker(Shared &shared, Rank &rank, uint32_t stream);

  /// The thread: runs commands until the backend stops.
  void serve();

  uint64_t rankNumber() const { return rank.number; }
  uint32_t streamNumber() const { return stream; }
  /// None before the first; read while no command runs.
  const std::optional<HostPosition> &lastCompleted() const { return completed; }
  /// Of the last command, if it was timed; read while no command runs.
  const std::vector<OperationTime> &operationTimes() const { return times; }

private:
  void runCommand();
  bool runIteration(const Region &region, std::vector<Event> &events,
                    uint32_t generation);
  Status runOperation(const Operation &operation);
  Status runTimed(const Operation &operation);
  /// Waits until `count` operations of the iteration are done; false when the
  /// run has ended.
  bool waitForTurn(uint32_t count);
  /// Operation `index` of the iteration is done.
  void endTurn(uint32_t index);
  void sleepAtRandom();

  Shared &shared;
  Rank &rank;
  const uint32_t stream;
  /// How often each region of each program has run, by program and region.
  std::vector<std::vector<uint32_t>> generations;
  std::vector<Argument> arguments;
  HostPosition position;
  std::optional<HostPosition> completed;
  uint64_t random = 0;
  std::vector<OperationTime> times;
  /// Operations of all that ran before the iteration, where they run one by
  /// one.
  uint32_t turnsBefore = 0;
};

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_WORKER_H
