//===- HostBackend.cpp - All ranks as threads of this process -------------===//

#include "gtp-rt/HostBackend.h"

#include "Blas.h"
#include "HostTarget.h"
#include "Poison.h"
#include "Worker.h"

#include "gtp/Plan/Layout.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <pthread.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::host;
namespace pb = gtp::plan::pb;

namespace {

class HostBackend : public Backend {
public:
  HostBackend(const pb::Plan &plan, Code code, const BackendOptions &options,
              HostHooks hooks)
      : plan(plan), code(std::move(code)),
        shared(this->code, options, std::move(hooks)) {}
  ~HostBackend() override;

  /// Allocates everything and starts the workers.
  Status start();

  uint64_t firstRank() const override { return 0; }
  uint64_t localRanks() const override { return code.ranks; }
  Status writeBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                     const void *source, uint64_t size) override;
  Status readBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                    void *destination, uint64_t size) override;
  Status runStep(uint32_t program,
                 const std::function<Status()> &beforeUpdate) override;
  void setTiming(Timing value) override { timing = value; }
  StatusOr<std::vector<OperationTime>> operationTimes() const override;

private:
  StatusOr<std::byte *> locate(uint64_t rank, uint32_t buffer, uint64_t offset,
                               uint64_t size);
  Status runRegions(uint32_t program, uint32_t first, uint32_t end,
                    std::chrono::nanoseconds &budget);
  std::string describeFailure() const;
  std::string describeStream(uint64_t rank, const Worker &worker) const;

  const pb::Plan plan; // names for messages
  const Code code;
  Shared shared;
  std::deque<Rank> ranks; // neither moves
  std::deque<Worker> workers;
  std::vector<std::thread> threads;
  uint32_t commands = 0;
  Timing timing = Timing::None;
};

} // namespace

HostBackend::~HostBackend() {
  shared.stopping.store(true, std::memory_order_relaxed);
  shared.go.record(++commands);
  for (std::thread &thread : threads)
    thread.join();
}

static void nameThread(std::thread &thread, uint64_t rank, uint32_t stream) {
  char name[16];
  std::snprintf(name, sizeof(name), "r%lu.s%u",
                static_cast<unsigned long>(rank), stream);
  pthread_setname_np(thread.native_handle(), name);
}

Status HostBackend::start() {
  for (size_t c = 0; c < code.communicators.size(); ++c) {
    size_t members = 0;
    uint64_t scratch = 0;
    for (const Program &program : code.programs)
      for (const Region &region : program.regions)
        for (const Operation &operation : region.operations)
          if (operation.isCollective() && operation.communicator == c) {
            const CollectiveSpec &spec = operation.collective;
            members = std::max(members, spec.counts.size());
            scratch = std::max(scratch, scratchBytes(spec));
          }
    const Groups &groups = code.communicators[c];
    shared.groups.emplace_back();
    for (uint32_t group = 0; group < groups.count; ++group)
      shared.groups.back().push_back(
          std::make_unique<CollectiveGroup>(groups.size, members, scratch));
  }
  for (uint64_t rank = 0; rank < code.ranks; ++rank) {
    ranks.emplace_back(rank, code, plan::coordinatesOf(plan.mesh(), rank));
    GTP_RETURN_IF_ERROR(
        ranks.back().arena.allocate(code.arenaBytes, code.arenaAlignment));
    for (uint32_t stream : code.streams)
      workers.emplace_back(shared, ranks.back(), stream);
  }
  for (Worker &worker : workers) {
    threads.emplace_back([&worker] { worker.serve(); });
    nameThread(threads.back(), worker.rankNumber(), worker.streamNumber());
  }
  return Status::ok();
}

StatusOr<std::byte *> HostBackend::locate(uint64_t rank, uint32_t buffer,
                                          uint64_t offset, uint64_t size) {
  if (rank >= ranks.size() || buffer >= code.buffers.size())
    return Status::error("there is no buffer " + std::to_string(buffer) +
                         " of rank " + std::to_string(rank));
  const Code::Buffer &place = code.buffers[buffer];
  if (offset > place.bytes || size > place.bytes - offset)
    return Status::error("bytes " + std::to_string(offset) + " to " +
                         std::to_string(offset + size) + " of buffer " +
                         std::to_string(buffer) + " are behind its end at " +
                         std::to_string(place.bytes));
  return ranks[rank].arena.base() + place.offset + offset;
}

Status HostBackend::writeBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                                const void *source, uint64_t size) {
  GTP_ASSIGN_OR_RETURN(std::byte * to, locate(rank, buffer, offset, size));
  if (size)
    std::memcpy(to, source, size);
  return Status::ok();
}

Status HostBackend::readBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                               void *destination, uint64_t size) {
  GTP_ASSIGN_OR_RETURN(std::byte * from, locate(rank, buffer, offset, size));
  if (size)
    std::memcpy(destination, from, size);
  return Status::ok();
}

Status HostBackend::runStep(uint32_t program,
                            const std::function<Status()> &beforeUpdate) {
  if (program >= code.programs.size())
    return Status::error("the plan has no program " + std::to_string(program));
  if (shared.outcome.ended().load(std::memory_order_relaxed))
    return Status::error("the run has ended: " + shared.outcome.message());
  auto end = static_cast<uint32_t>(code.programs[program].regions.size());
  std::chrono::nanoseconds budget(static_cast<int64_t>(
      std::min(shared.options.stepTimeoutSeconds, 1e9) * 1e9));
  uint32_t first = 0;
  if (beforeUpdate) {
    GTP_ASSIGN_OR_RETURN(uint32_t update, updateRegion(code, program));
    GTP_RETURN_IF_ERROR(runRegions(program, 0, update, budget));
    GTP_RETURN_IF_ERROR(beforeUpdate());
    first = update;
  }
  return runRegions(program, first, end, budget);
}

Status HostBackend::runRegions(uint32_t program, uint32_t first, uint32_t end,
                               std::chrono::nanoseconds &budget) {
  if (first == end || workers.empty())
    return Status::ok();
  auto start = std::chrono::steady_clock::now();
  shared.program = program;
  shared.firstRegion = first;
  shared.endRegion = end;
  shared.timing = program == 0 ? timing : Timing::None;
  shared.start = start;
  shared.running.store(static_cast<uint32_t>(workers.size()),
                       std::memory_order_relaxed);
  shared.go.record(++commands);
  while (!shared.done.waitBriefly(commands))
    if (std::chrono::steady_clock::now() - start > budget)
      shared.outcome.fail(
          std::nullopt, "the step did not finish in " +
                            std::to_string(shared.options.stepTimeoutSeconds) +
                            " seconds");
  budget -= std::chrono::steady_clock::now() - start;
  if (shared.outcome.ended().load(std::memory_order_relaxed))
    return Status::error(describeFailure());
  return Status::ok();
}

StatusOr<std::vector<OperationTime>> HostBackend::operationTimes() const {
  std::vector<OperationTime> times;
  for (const Worker &worker : workers)
    if (worker.rankNumber() == 0)
      times.insert(times.end(), worker.operationTimes().begin(),
                   worker.operationTimes().end());
  return times;
}

std::string HostBackend::describeStream(uint64_t rank,
                                        const Worker &worker) const {
  std::string text = "\n  rank " + std::to_string(rank) + ", stream " +
                     std::to_string(worker.streamNumber()) + ": ";
  const std::optional<HostPosition> &last = worker.lastCompleted();
  if (!last)
    return text + "nothing";
  return text +
         describePlace(plan, last->program, last->region, last->operation) +
         ", iteration " + std::to_string(last->iteration);
}

std::string HostBackend::describeFailure() const {
  const Outcome &outcome = shared.outcome;
  std::string text;
  if (const std::optional<HostPosition> &at = outcome.where())
    text = "rank " + std::to_string(at->rank) + ", " +
           describePlace(plan, at->program, at->region, at->operation) +
           ", iteration " + std::to_string(at->iteration) + ": ";
  text += outcome.message() + "\nlast completed operations:";
  for (const Worker &worker : workers)
    text += describeStream(worker.rankNumber(), worker);
  return text;
}

StatusOr<std::unique_ptr<Backend>>
gtp::rt::createHostBackend(const pb::Plan &plan, const BackendOptions &options,
                           HostHooks hooks) {
  GTP_RETURN_IF_ERROR(prepareBlas());
  // Sizes come from the plan: memory and threads may not suffice.
  try {
    HostTarget target;
    GTP_ASSIGN_OR_RETURN(Code code, decode(plan, target));
    for (Program &program : code.programs)
      placePoison(plan, program);
    auto backend = std::make_unique<HostBackend>(plan, std::move(code), options,
                                                 std::move(hooks));
    GTP_RETURN_IF_ERROR(backend->start());
    return StatusOr<std::unique_ptr<Backend>>(std::move(backend));
  } catch (const std::exception &error) {
    return Status::error("cannot set up the plan's ranks in this process: " +
                         std::string(error.what()));
  }
}

StatusOr<std::unique_ptr<Backend>>
gtp::rt::createHostBackend(const pb::Plan &plan,
                           const BackendOptions &options) {
  return createHostBackend(plan, options, HostHooks());
}
