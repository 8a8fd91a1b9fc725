//===- Issuer.cpp - Puts a plan's operations on CUDA streams --------------===//

#include "Issuer.h"

#include "Check.h"
#include "Progress.h"
#include "Range.h"

#include <chrono>
#include <cstring>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

Issuer::Issuer(const pb::Plan &plan, const Code &code, Context &context,
               std::byte *arena, std::vector<uint64_t> coordinatesOfAxes,
               CollectiveRunner *collectives)
    : plan(plan), code(code), context(context), arena(arena), coordinates([&] {
        // A kernel may name an axis that the mesh does not have.
        coordinatesOfAxes.resize(64);
        return std::move(coordinatesOfAxes);
      }()),
      collectives(collectives), arguments(code.mostPlaces) {}

Issuer::~Issuer() {
  for (auto &[stretch, graph] : graphs)
    cudaGraphExecDestroy(graph);
  for (const std::vector<cudaEvent_t> *list : {&events, &joinEvents})
    for (cudaEvent_t event : *list)
      cudaEventDestroy(event);
  for (cudaEvent_t event : {forkEvent, startEvent, doneEvent})
    if (event)
      cudaEventDestroy(event);
  if (progress)
    cudaFreeHost(progress);
}

Status Issuer::makeEvent(cudaEvent_t &event, bool isTimed) const {
  GTP_CUDA(cudaEventCreateWithFlags(&event, isTimed ? cudaEventDefault
                                                    : cudaEventDisableTiming));
  return Status::ok();
}

cudaStream_t Issuer::firstStream() const {
  return context.stream(code.streams.front());
}

Status Issuer::create() {
  size_t most = 0;
  for (size_t p = 0; p < code.programs.size(); ++p)
    for (size_t r = 0; r < code.programs[p].regions.size(); ++r) {
      const Region &region = code.programs[p].regions[r];
      most = std::max<size_t>(most, region.events);
      for (const Operation &operation : region.operations) {
        if (!operation.isCollective())
          continue;
        marks.push_back({static_cast<uint32_t>(p), static_cast<uint32_t>(r),
                         operation.index});
        markNumbers[{static_cast<uint32_t>(p), static_cast<uint32_t>(r),
                     operation.index}] = static_cast<uint32_t>(marks.size());
      }
    }
  for (size_t i = 0; i < most; ++i) {
    cudaEvent_t event = nullptr;
    GTP_RETURN_IF_ERROR(makeEvent(event));
    events.push_back(event);
  }
  for (size_t i = 0; i < code.streams.size(); ++i) {
    cudaEvent_t event = nullptr;
    GTP_RETURN_IF_ERROR(makeEvent(event));
    joinEvents.push_back(event);
  }
  GTP_RETURN_IF_ERROR(makeEvent(forkEvent));
  GTP_RETURN_IF_ERROR(makeEvent(startEvent, /*isTimed=*/true));
  GTP_RETURN_IF_ERROR(makeEvent(doneEvent, /*isTimed=*/true));
  size_t bytes = context.allStreams().size() * sizeof(uint32_t);
  void *words = nullptr;
  GTP_CUDA(cudaHostAlloc(&words, bytes, cudaHostAllocMapped));
  std::memset(words, 0, bytes);
  progress = static_cast<uint32_t *>(words);
  return Status::ok();
}

Status Issuer::fork() {
  GTP_CUDA(cudaEventRecord(forkEvent, firstStream()));
  for (size_t i = 1; i < code.streams.size(); ++i)
    GTP_CUDA(
        cudaStreamWaitEvent(context.stream(code.streams[i]), forkEvent, 0));
  return Status::ok();
}

Status Issuer::join() {
  for (size_t i = 1; i < code.streams.size(); ++i) {
    GTP_CUDA(cudaEventRecord(joinEvents[i], context.stream(code.streams[i])));
    GTP_CUDA(cudaStreamWaitEvent(firstStream(), joinEvents[i], 0));
  }
  return Status::ok();
}

Status Issuer::runBody(const Stretch &stretch, const Operation &operation) {
  cudaStream_t stream = context.stream(operation.stream);
  if (stretch.collectives == Collectives::Omit &&
      (operation.isCollective() || operation.putsOwnPiece))
    return Status::ok();
  if (!operation.isCollective())
    return operation.body(
        {arguments.data(), coordinates.data(), operation.stream});
  GTP_RETURN_IF_ERROR(collectives->run(operation, arguments.data(), stream));
  return stretch.collectives == Collectives::Keep
             ? standIns->keep(operation, code, arena, stream)
             : Status::ok();
}

Status Issuer::issueOperation(const Stretch &stretch, uint32_t region,
                              const Operation &operation, uint64_t iteration) {
  cudaStream_t stream = context.stream(operation.stream);
  for (uint32_t event : operation.waits)
    GTP_CUDA(cudaStreamWaitEvent(stream, events[event], 0));
  for (size_t i = 0; i < operation.places.size(); ++i) {
    const Place &place = operation.places[i];
    uint64_t offset = place.offset + iteration * place.iterationStride;
    for (auto [axis, stride] : place.rankStrides)
      offset += coordinates[axis] * stride;
    arguments[i] = {arena + offset, place.accumulate && iteration != 0};
    std::byte *standIn = stretch.collectives == Collectives::Omit
                             ? standIns->find(place, code)
                             : nullptr;
    if (standIn)
      arguments[i].data = standIn + (offset - place.offset);
  }
  const bool isOmitted =
      operation.isCollective() && stretch.collectives == Collectives::Omit;
  StepTimer *timer = stretch.timing == Timing::None || isOmitted
                         ? nullptr
                         : &timers.at(stretch);
  if (timer)
    GTP_RETURN_IF_ERROR(timer->before(stream));
  GTP_RETURN_IF_ERROR(runBody(stretch, operation));
  if (timer)
    GTP_RETURN_IF_ERROR(
        timer->after(stream, {region, operation.index, iteration, 0, 0}));
  if (operation.eventPlus1)
    GTP_CUDA(cudaEventRecord(events[operation.eventPlus1 - 1], stream));
  return Status::ok();
}

Status Issuer::issueRegion(const Stretch &stretch, uint32_t index) {
  const uint32_t program = stretch.program;
  const Region &region = code.programs[program].regions[index];
  const Range range("region " + std::to_string(index) + " " +
                    pb::Region::Kind_Name(region.kind));
  for (uint64_t iteration = 0; iteration < region.repeat; ++iteration) {
    GTP_RETURN_IF_ERROR(fork());
    for (const Operation &operation : region.operations) {
      if (!operation.runsIn(iteration, region.repeat))
        continue;
      Status status = issueOperation(stretch, index, operation, iteration);
      if (!status.isOk())
        return std::move(status).in(
            describePlace(plan, program, index, operation.index) +
            ", iteration " + std::to_string(iteration));
      auto number = markNumbers.find({program, index, operation.index});
      if (number != markNumbers.end() &&
          stretch.collectives != Collectives::Omit)
        GTP_CUDA(mark(progress + operation.stream, number->second,
                      context.stream(operation.stream)));
    }
    GTP_RETURN_IF_ERROR(join());
  }
  return Status::ok();
}

Status Issuer::issueAll(const Stretch &stretch, bool isCaptured) {
  if (stretch.timing != Timing::None)
    GTP_RETURN_IF_ERROR(timers[stretch].begin(stretch.timing, isCaptured));
  for (uint32_t r = stretch.first; r < stretch.end; ++r)
    GTP_RETURN_IF_ERROR(issueRegion(stretch, r));
  return context.fetchFault(firstStream());
}

Status Issuer::issue(const Stretch &stretch) {
  GTP_CUDA(cudaEventRecord(startEvent, firstStream()));
  GTP_RETURN_IF_ERROR(issueAll(stretch, /*isCaptured=*/false));
  GTP_CUDA(cudaEventRecord(doneEvent, firstStream()));
  return Status::ok();
}

uint64_t Issuer::operations(const Stretch &stretch) const {
  uint64_t count = 0;
  for (uint32_t r = stretch.first; r < stretch.end; ++r) {
    const Region &region = code.programs[stretch.program].regions[r];
    count += region.operations.size() * region.repeat;
  }
  return count;
}

StatusOr<StepReport::Graph> Issuer::capture(const Stretch &stretch) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  GTP_CUDA(
      cudaStreamBeginCapture(firstStream(), cudaStreamCaptureModeThreadLocal));
  Status issued = issueAll(stretch, /*isCaptured=*/true);
  cudaGraph_t graph = nullptr;
  cudaError_t ended = cudaStreamEndCapture(firstStream(), &graph);
  GTP_RETURN_IF_ERROR(std::move(issued).in("capturing the step's graph"));
  GTP_RETURN_IF_ERROR(check(ended, "cudaStreamEndCapture"));
  const Clock::time_point captured = Clock::now();
  size_t nodes = 0;
  GTP_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  cudaGraphExec_t executable = nullptr;
  cudaError_t made = cudaGraphInstantiate(
      &executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  GTP_RETURN_IF_ERROR(check(made, "cudaGraphInstantiate"));
  graphs[stretch] = executable;
  GTP_CUDA(cudaGraphUpload(executable, firstStream()));
  const Clock::time_point uploaded = Clock::now();
  return StepReport::Graph{
      nodes, std::chrono::duration<double>(captured - start).count(),
      std::chrono::duration<double>(uploaded - captured).count()};
}

Status Issuer::launch(const Stretch &stretch) {
  GTP_CUDA(cudaEventRecord(startEvent, firstStream()));
  GTP_CUDA(cudaGraphLaunch(graphs.at(stretch), firstStream()));
  GTP_CUDA(cudaEventRecord(doneEvent, firstStream()));
  return Status::ok();
}

StatusOr<std::vector<OperationTime>>
Issuer::times(const Stretch &stretch) const {
  return timers.at(stretch).times(startEvent);
}

StatusOr<double> Issuer::deviceSeconds() const {
  float milliseconds = 0;
  GTP_CUDA(cudaEventElapsedTime(&milliseconds, startEvent, doneEvent));
  return double(milliseconds) / 1e3;
}

std::string Issuer::describeProgress() const {
  std::string text;
  for (uint32_t stream : code.streams) {
    text += "\n  stream " + std::to_string(stream) + ": ";
    uint32_t number = static_cast<volatile uint32_t *>(progress)[stream];
    if (number == 0 || number > marks.size()) {
      text += "no collective";
      continue;
    }
    const Mark &mark = marks[number - 1];
    text += describePlace(plan, mark.program, mark.region, mark.operation);
  }
  return text;
}
