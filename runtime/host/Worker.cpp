//===- Worker.cpp - One stream of one rank --------------------------------===//

#include "Worker.h"
#include "RaceAnnotations.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <sys/mman.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::host;

Arena::~Arena() {
  if (mapping)
    munmap(mapping, mapped);
}

Status Arena::allocate(uint64_t bytes, uint64_t alignment) {
  std::optional<uint64_t> padded = plan::checkedAdd(bytes, alignment);
  void *address = padded
                      ? mmap(nullptr, *padded, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                      : MAP_FAILED;
  if (address == MAP_FAILED)
    return Status::error("cannot allocate an arena of " +
                         std::to_string(bytes) +
                         " bytes a rank; compile for fewer ranks a machine or "
                         "a smaller batch");
  mapping = address;
  mapped = *padded;
  auto value = reinterpret_cast<uintptr_t>(address);
  start = reinterpret_cast<std::byte *>((value + alignment - 1) / alignment *
                                        alignment);
  return Status::ok();
}

void Outcome::fail(std::optional<HostPosition> where, std::string message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (flag.load(std::memory_order_relaxed))
    return;
  position = where;
  text = std::move(message);
  flag.store(true, std::memory_order_relaxed);
}

Rank::Rank(uint64_t number, const Code &code,
           std::vector<uint64_t> coordinatesOfAxes)
    : number(number), coordinates(std::move(coordinatesOfAxes)),
      join(static_cast<uint32_t>(code.streams.size())) {
  // A kernel may name an axis that the mesh does not have.
  coordinates.resize(64);
  for (const Program &program : code.programs) {
    events.emplace_back();
    for (const Region &region : program.regions)
      events.back().emplace_back(region.events);
  }
}

Worker::Worker(Shared &shared, Rank &rank, uint32_t stream)
    : shared(shared), rank(rank), stream(stream),
      arguments(shared.code.mostPlaces) {
  for (const Program &program : shared.code.programs)
    generations.emplace_back(program.regions.size());
  random = shared.options.hostJitter.value_or(0) * 0x9E3779B97F4A7C15u +
           rank.number * 0xD1B54A32D192ED03u + stream + 1;
}

void Worker::sleepAtRandom() {
  // SplitMix64.
  random += 0x9E3779B97F4A7C15u;
  uint64_t value = random;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  value ^= value >> 31;
  std::this_thread::sleep_for(std::chrono::microseconds(value % 201));
}

static void annotate(const Operation &operation, const Argument *arguments) {
  for (size_t i = 0; i < operation.places.size(); ++i) {
    const Place &place = operation.places[i];
    const Shape &shape = place.shape;
    annotateRows(arguments[i].data, shape.rows,
                 shape.columns * shape.elementBytes,
                 shape.pitch * shape.elementBytes, place.writes);
  }
}

Status Worker::runOperation(const Operation &operation) {
  if (shared.options.hostJitter)
    sleepAtRandom();
  if (shared.hooks.beforeOperation)
    GTP_RETURN_IF_ERROR(shared.hooks.beforeOperation(position));
  std::byte *base = rank.arena.base();
  for (const Poison &poison : operation.poisons)
    if (position.iteration == 0 || poison.everyIteration)
      std::memset(base + poison.offset, 0xFF, poison.bytes);
  for (size_t i = 0; i < operation.places.size(); ++i) {
    const Place &place = operation.places[i];
    uint64_t offset = place.offset + position.iteration * place.iterationStride;
    for (auto [axis, stride] : place.rankStrides)
      offset += rank.coordinates[axis] * stride;
    arguments[i] = {base + offset, place.accumulate && position.iteration != 0};
  }
  if (!operation.isCollective()) {
    annotate(operation, arguments.data());
    return operation.body(
        {arguments.data(), rank.coordinates.data(), operation.stream});
  }
  const Groups &groups = shared.code.communicators[operation.communicator];
  uint64_t identity = uint64_t(position.region) << 32 | operation.index;
  return shared.groups[operation.communicator][groups.group[rank.number]]->run(
      operation.collective, identity, groups.position[rank.number],
      arguments.data(), arguments.data() + operation.collective.counts.size(),
      shared.outcome.ended());
}

Status Worker::runTimed(const Operation &operation) {
  if (shared.timing == Timing::None)
    return runOperation(operation);
  auto now = [&] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now() - shared.start)
        .count();
  };
  const int64_t start = now();
  Status status = runOperation(operation);
  times.push_back(
      {position.region, position.operation, position.iteration, start, now()});
  return status;
}

bool Worker::waitForTurn(uint32_t count) {
  return shared.timing != Timing::OneByOne ||
         rank.turn.wait(turnsBefore + count, shared.outcome.ended());
}

void Worker::endTurn(uint32_t index) {
  if (shared.timing == Timing::OneByOne)
    rank.turn.record(turnsBefore + index + 1);
}

bool Worker::runIteration(const Region &region, std::vector<Event> &events,
                          uint32_t generation) {
  for (uint32_t index : region.streams[stream]) {
    const Operation &operation = region.operations[index];
    const bool runs = operation.runsIn(position.iteration, region.repeat);
    if (!waitForTurn(index))
      return false;
    if (!runs) {
      endTurn(index);
      continue;
    }
    position.operation = operation.index;
    for (uint32_t event : operation.waits)
      if (!events[event].wait(generation, shared.outcome.ended()))
        return false;
    Status status = runTimed(operation);
    if (!status.isOk()) {
      shared.outcome.fail(position, status.message());
      return false;
    }
    completed = position;
    if (operation.eventPlus1)
      events[operation.eventPlus1 - 1].record(generation);
    endTurn(index);
    // A stream without waits must end too.
    if (shared.outcome.ended().load(std::memory_order_relaxed))
      return false;
  }
  if (shared.timing == Timing::OneByOne)
    turnsBefore += static_cast<uint32_t>(region.operations.size());
  return rank.join.arrive(shared.outcome.ended());
}

void Worker::runCommand() {
  times.clear();
  position.rank = rank.number;
  position.program = shared.program;
  const Program &program = shared.code.programs[shared.program];
  for (uint32_t r = shared.firstRegion; r < shared.endRegion; ++r) {
    const Region &region = program.regions[r];
    position.region = r;
    for (uint64_t iteration = 0; iteration < region.repeat; ++iteration) {
      position.iteration = iteration;
      if (!runIteration(region, rank.events[shared.program][r],
                        ++generations[shared.program][r]))
        return;
    }
  }
}

void Worker::serve() {
  for (uint32_t command = 1;; ++command) {
    if (!shared.go.wait(command, shared.stopping) ||
        shared.stopping.load(std::memory_order_relaxed))
      return;
    try {
      runCommand();
    } catch (const std::exception &error) {
      shared.outcome.fail(position, error.what());
    }
    if (shared.running.fetch_sub(1, std::memory_order_acq_rel) == 1)
      shared.done.record(command);
  }
}
