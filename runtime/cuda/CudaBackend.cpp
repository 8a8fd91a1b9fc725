//===- CudaBackend.cpp - A rank of a plan on a GPU ------------------------===//

#include "gtp-rt/CudaBackend.h"

#include "Check.h"
#include "CudaTarget.h"
#include "CudnnAttention.h"
#include "DeviceMemory.h"
#include "GemmChooser.h"
#include "Issuer.h"
#include "NcclRunner.h"
#include "Range.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Support/RoundUp.h"

#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

namespace {

/// Steps that are issued one by one before their graph is captured: libraries
/// finish setting up, and NCCL's flags need two.
constexpr unsigned kEagerSteps = 2;
/// A graph node takes about 10 KB; a step above this is issued one by one.
constexpr uint64_t kMostGraphOperations = 100000;

/// All that a failed rank leaves as it is.
struct State {
  pb::Plan plan; // the code points into it
  Context context;
  Code code;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<CollectiveRunner> collectives;
  std::unique_ptr<StandIns> standIns;
  std::unique_ptr<Issuer> issuer;
};

class CudaBackend : public Backend {
public:
  CudaBackend(const BackendOptions &options, const CudaPlace &place)
      : options(options), place(place), state(std::make_unique<State>()) {}
  ~CudaBackend() override;

  /// Decodes, allocates and uploads everything.
  Status start(const pb::Plan &plan);
  /// What is on the GPU stays until the process ends: giving it back could wait
  /// for a rank that has failed.
  void abandon() { failed = true; }

  uint64_t firstRank() const override { return place.rank; }
  uint64_t localRanks() const override { return 1; }
  Status writeBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                     const void *source, uint64_t size) override;
  Status readBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                    void *destination, uint64_t size) override;
  Status runStep(uint32_t program,
                 const std::function<Status()> &beforeUpdate) override;
  StepReport lastStep() const override;
  void setTiming(Timing value) override { timing = value; }
  StatusOr<std::vector<OperationTime>> operationTimes() const override;
  std::string progress() const override {
    return state->issuer->describeProgress();
  }

  std::string attention() const override {
    return state->context.attentionText();
  }

private:
  using Clock = std::chrono::steady_clock;

  Status allocate();
  StatusOr<std::byte *> locate(uint64_t rank, uint32_t buffer, uint64_t offset,
                               uint64_t size) const;
  Status run(const Stretch &stretch, Clock::time_point deadline);
  Status start(const Stretch &stretch);
  /// Waits for the GPU without blocking in it.
  Status finish(Clock::time_point deadline);
  Status faultFound() const;
  /// What becomes of the collectives of the training step that begins.
  StatusOr<Collectives> chooseCollectives();

  const BackendOptions options;
  const CudaPlace place;
  std::unique_ptr<State> state;
  std::map<Stretch, unsigned> eagerRuns;
  uint64_t trainingSteps = 0;
  Timing timing = Timing::None;
  std::optional<Stretch> timed; ///< the last step, if it was timed
  StepReport report;
  bool failed = false;
};

} // namespace

CudaBackend::~CudaBackend() {
  if (failed)
    (void)state.release();
}

/// Streams of the plan that run kernels.
static std::set<uint32_t> kernelStreams(const Code &code) {
  std::set<uint32_t> streams;
  for (const Program &program : code.programs)
    for (const Region &region : program.regions)
      for (const Operation &operation : region.operations)
        if (!operation.isCollective())
          streams.insert(operation.stream);
  return streams;
}

static bool hasCollectives(const Code &code) {
  for (const Program &program : code.programs)
    for (const Region &region : program.regions)
      for (const Operation &operation : region.operations)
        if (operation.isCollective())
          return true;
  return false;
}

/// What stands behind it is as aligned as it is.
static constexpr uint64_t kFaultBytes = 256;
static_assert(sizeof(Fault) <= kFaultBytes);

Status CudaBackend::allocate() {
  Context &context = state->context;
  const Code &code = state->code;
  const std::set<uint32_t> streams = kernelStreams(code);
  const uint64_t workspace = roundUp(context.workspaceBytes(), 256);
  const uint64_t arena = roundUp(code.arenaBytes, 256);
  const uint64_t staging =
      state->collectives ? state->collectives->stagingBytes() : 0;
  const uint64_t bytes = arena + streams.size() * workspace + staging +
                         context.constantBytes() + kFaultBytes;
  GTP_ASSIGN_OR_RETURN(state->memory,
                       DeviceMemory::allocate(place.device, bytes));
  std::byte *base = state->memory->base();
  if (reinterpret_cast<uintptr_t>(base) % code.arenaAlignment != 0)
    return Status::error("the plan's arena needs an alignment of " +
                         std::to_string(code.arenaAlignment) +
                         " bytes, more than the GPU's memory has");
  // What a step reads and nothing wrote shall show: NaN in every float type.
  GTP_CUDA(cudaMemset(base, 0xFF, state->memory->size()));
  std::byte *next = base + arena;
  for (uint32_t stream : streams) {
    context.setWorkspace(stream, next);
    next += workspace;
  }
  if (state->collectives) {
    state->collectives->setStaging(next);
    GTP_RETURN_IF_ERROR(state->collectives->setArena(base, arena));
  }
  next += staging;
  GTP_RETURN_IF_ERROR(context.setFault(next));
  return context.uploadConstants(next + kFaultBytes);
}

Status CudaBackend::start(const pb::Plan &plan) {
  GTP_CUDA(cudaSetDevice(place.device));
  GTP_RETURN_IF_ERROR(state->context.create());
  state->plan = plan;
  CudaTarget target(state->context);
  GTP_ASSIGN_OR_RETURN(state->code, decode(state->plan, target));
  if (place.rank >= state->code.ranks)
    return Status::error("there is no rank " + std::to_string(place.rank) +
                         " in the plan's mesh of " +
                         std::to_string(state->code.ranks));
  GTP_RETURN_IF_ERROR(chooseAlgorithms(state->context, options, place));
  if (hasCollectives(state->code)) {
    if (!place.exchange)
      return Status::error("the plan has collectives, so that its " +
                           std::to_string(state->code.ranks) +
                           " ranks need a process each");
    GTP_ASSIGN_OR_RETURN(
        state->collectives,
        createNcclRunner(state->plan, state->code, place.rank, place.exchange));
  }
  std::vector<std::pair<uint32_t, int32_t>> streams;
  for (uint32_t stream : state->code.streams)
    streams.emplace_back(
        stream, state->plan.streams(static_cast<int>(stream)).priority());
  GTP_RETURN_IF_ERROR(state->context.createStreams(streams));
  GTP_RETURN_IF_ERROR(allocate());
  state->issuer = std::make_unique<Issuer>(
      state->plan, state->code, state->context, state->memory->base(),
      plan::coordinatesOf(state->plan.mesh(), place.rank),
      state->collectives.get());
  GTP_RETURN_IF_ERROR(state->issuer->create());
  GTP_CUDA(cudaDeviceSynchronize());
  return Status::ok();
}

StatusOr<std::byte *> CudaBackend::locate(uint64_t rank, uint32_t buffer,
                                          uint64_t offset,
                                          uint64_t size) const {
  if (rank != place.rank || buffer >= state->code.buffers.size())
    return Status::error("there is no buffer " + std::to_string(buffer) +
                         " of rank " + std::to_string(rank) +
                         " in the process of rank " +
                         std::to_string(place.rank));
  const Code::Buffer &where = state->code.buffers[buffer];
  if (offset > where.bytes || size > where.bytes - offset)
    return Status::error("bytes " + std::to_string(offset) + " to " +
                         std::to_string(offset + size) + " of buffer " +
                         std::to_string(buffer) + " are behind its end at " +
                         std::to_string(where.bytes));
  return state->memory->base() + where.offset + offset;
}

Status CudaBackend::writeBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                                const void *source, uint64_t size) {
  GTP_ASSIGN_OR_RETURN(std::byte * to, locate(rank, buffer, offset, size));
  GTP_CUDA(cudaMemcpy(to, source, size, cudaMemcpyHostToDevice));
  // That returns when the source is free again; the plan's streams do not wait
  // for the rest by themselves.
  GTP_CUDA(cudaStreamSynchronize(nullptr));
  return Status::ok();
}

Status CudaBackend::readBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                               void *destination, uint64_t size) {
  GTP_ASSIGN_OR_RETURN(std::byte * from, locate(rank, buffer, offset, size));
  GTP_CUDA(cudaMemcpy(destination, from, size, cudaMemcpyDeviceToHost));
  return Status::ok();
}

Status CudaBackend::faultFound() const {
  const Fault &fault = state->context.fetchedFault();
  std::string value = std::to_string(fault.value);
  std::string position = std::to_string(fault.position);
  std::string limit = std::to_string(fault.limit);
  switch (fault.kind) {
  case Fault::None:
    return Status::ok();
  case Fault::BadStart:
    return Status::error("the document of token " + position +
                         " of a sequence starts at " + value +
                         ", expected an index from 0 to the token's");
  case Fault::BadId:
    return Status::error("token id " + value + " at position " + position +
                         " is outside the table's " + limit + " rows");
  default:
    return Status::error("label " + value + " at position " + position +
                         " is neither -100 nor one of " + limit + " classes");
  }
}

Status CudaBackend::finish(Clock::time_point deadline) {
  for (unsigned round = 0;; ++round) {
    cudaError_t state = cudaEventQuery(this->state->issuer->done());
    if (state == cudaSuccess)
      return faultFound();
    if (state != cudaErrorNotReady)
      return check(state, "running the step");
    if (place.jobHealth)
      GTP_RETURN_IF_ERROR(place.jobHealth());
    if (this->state->collectives)
      GTP_RETURN_IF_ERROR(this->state->collectives->health());
    if (Clock::now() > deadline)
      return Status::error("the step did not finish in " +
                           std::to_string(options.stepTimeoutSeconds) +
                           " seconds");
    // A step is short or long; looking costs a core that nothing else needs.
    if (round > 1000)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Status CudaBackend::start(const Stretch &stretch) {
  Issuer &issuer = *state->issuer;
  if (issuer.isCaptured(stretch))
    return issuer.launch(stretch);
  unsigned &runs = eagerRuns[stretch];
  // Other ways to run the step come later.
  const bool isFirstWay =
      stretch.collectives == Collectives::Run && stretch.timing == Timing::None;
  const unsigned eagerSteps = isFirstWay ? kEagerSteps : 0;
  if (options.eager || runs < eagerSteps ||
      issuer.operations(stretch) > kMostGraphOperations) {
    ++runs;
    return issuer.issue(stretch);
  }
  GTP_ASSIGN_OR_RETURN(report.graph, issuer.capture(stretch));
  return issuer.launch(stretch);
}

Status CudaBackend::run(const Stretch &stretch, Clock::time_point deadline) {
  if (stretch.first == stretch.end || state->code.streams.empty())
    return Status::ok();
  const Clock::time_point begin = Clock::now();
  Status status = start(stretch);
  report.launchSeconds +=
      std::chrono::duration<double>(Clock::now() - begin).count();
  if (status.isOk())
    status = finish(deadline);
  if (status.isOk()) {
    GTP_ASSIGN_OR_RETURN(double seconds, state->issuer->deviceSeconds());
    report.deviceSeconds += seconds;
    return status;
  }
  failed = true;
  return Status::error(
      "rank " + std::to_string(place.rank) + ": " + status.message() +
      "\nlast completed collectives:" + state->issuer->describeProgress());
}

StatusOr<Collectives> CudaBackend::chooseCollectives() {
  ++trainingSteps;
  if (!options.withoutCollectivesAfter || !state->collectives ||
      trainingSteps < *options.withoutCollectivesAfter)
    return Collectives::Run;
  if (trainingSteps > *options.withoutCollectivesAfter)
    return Collectives::Omit;
  GTP_ASSIGN_OR_RETURN(
      state->standIns,
      StandIns::create(state->plan, state->code, place.device));
  state->issuer->setStandIns(state->standIns.get());
  return Collectives::Keep;
}

StatusOr<std::vector<OperationTime>> CudaBackend::operationTimes() const {
  return timed ? state->issuer->times(*timed) : std::vector<OperationTime>();
}

StepReport CudaBackend::lastStep() const {
  StepReport last = report;
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess)
    last.deviceBytes = total - free;
  return last;
}

Status CudaBackend::runStep(uint32_t program,
                            const std::function<Status()> &beforeUpdate) {
  if (program >= state->code.programs.size())
    return Status::error("the plan has no program " + std::to_string(program));
  if (failed)
    return Status::error("the run has ended with an error before");
  auto deadline =
      Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(
                         std::min(options.stepTimeoutSeconds, 1e9) * 1e9));
  auto end =
      static_cast<uint32_t>(state->code.programs[program].regions.size());
  report = StepReport();
  const Range range(program == 0 ? "step " + std::to_string(trainingSteps + 1)
                                 : "program " + std::to_string(program));
  Collectives collectives = Collectives::Run;
  if (program == 0) {
    GTP_ASSIGN_OR_RETURN(collectives, chooseCollectives());
  }
  report.withoutCollectives = collectives == Collectives::Omit;
  timed.reset();
  if (program == 0 && timing != Timing::None && !beforeUpdate)
    timed = {program, 0, end, collectives, timing};
  uint32_t first = 0;
  if (beforeUpdate) {
    GTP_ASSIGN_OR_RETURN(first, updateRegion(state->code, program));
    GTP_RETURN_IF_ERROR(run({program, 0, first, collectives}, deadline));
    GTP_RETURN_IF_ERROR(beforeUpdate());
  }
  return run(timed ? *timed : Stretch{program, first, end, collectives},
             deadline);
}

int gtp::rt::countGpus() {
  int count = 0;
  // No driver is no GPU.
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

StatusOr<std::string> gtp::rt::describeGpu(int device) {
  cudaDeviceProp properties;
  GTP_CUDA(cudaGetDeviceProperties(&properties, device));
  int driver = 0;
  GTP_CUDA(cudaDriverGetVersion(&driver));
  size_t blas = cublasLtGetVersion();
  return std::string(properties.name) + ", driver for CUDA " +
         std::to_string(driver / 1000) + "." +
         std::to_string(driver % 1000 / 10) + ", cuBLASLt " +
         std::to_string(blas / 10000) + "." + std::to_string(blas / 100 % 100) +
         "." + std::to_string(blas % 100) + ", NCCL " + ncclVersion() + ", " +
         Cudnn::installed();
}

StatusOr<std::string> gtp::rt::identifyGpu(int device) {
  cudaDeviceProp properties;
  GTP_CUDA(cudaGetDeviceProperties(&properties, device));
  char text[32];
  GTP_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, device));
  std::string result = std::string(text) + " with UUID ";
  for (size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    std::snprintf(text, sizeof text,
                  i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                  static_cast<unsigned char>(properties.uuid.bytes[i]));
    result += text;
  }
  return result;
}

StatusOr<std::unique_ptr<Backend>>
gtp::rt::createCudaBackend(const pb::Plan &plan, const BackendOptions &options,
                           const CudaPlace &place) {
  if (countGpus() <= place.device)
    return Status::error(
        "the cuda backend needs GPU " + std::to_string(place.device) +
        ", and this process sees " + std::to_string(countGpus()) +
        "; --backend=host runs the same plan on CPU threads");
  auto backend = std::make_unique<CudaBackend>(options, place);
  Status status = Status::ok();
  // Sizes come from the plan: host memory may not suffice.
  try {
    status = backend->start(plan);
  } catch (const std::exception &error) {
    status = Status::error("cannot set up the plan's rank in this process: " +
                           std::string(error.what()));
  }
  if (status.isOk())
    return std::unique_ptr<Backend>(std::move(backend));
  backend->abandon();
  return status;
}
