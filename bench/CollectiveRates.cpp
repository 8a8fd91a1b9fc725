//===- CollectiveRates.cpp - Collectives by each transport, alone ---------===//
//
// collective-rates [MIB...]: the runner's collectives on all GPUs of this
// machine, a thread a GPU, four in a row replayed as a graph. A row of the
// table is the transport, bytes of the long side, milliseconds of one (median
// of 20), and GB/s received a rank.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "DeviceMemory.h"
#include "NcclRunner.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;
using pb::Collective;

namespace {

struct Row {
  const char *name;
  Collective::Kind kind;
  Collective::Transport transport;
  pb::DType type, wire;
};

constexpr Row kRows[] = {
    {"gather copy_engine", Collective::ALL_GATHER, Collective::COPY_ENGINE,
     pb::BF16, pb::BF16},
    {"gather symmetric", Collective::ALL_GATHER, Collective::SYMMETRIC,
     pb::BF16, pb::BF16},
    {"gather ring", Collective::ALL_GATHER, Collective::RING_TRANSPORT,
     pb::BF16, pb::BF16},
    {"reduce-scatter f32 symmetric", Collective::REDUCE_SCATTER,
     Collective::SYMMETRIC, pb::F32, pb::F32},
    {"reduce-scatter bf16 symmetric", Collective::REDUCE_SCATTER,
     Collective::SYMMETRIC, pb::BF16, pb::BF16},
    {"reduce-scatter f32 ring", Collective::REDUCE_SCATTER,
     Collective::RING_TRANSPORT, pb::F32, pb::F32},
    {"reduce-scatter f32 copy_engine", Collective::REDUCE_SCATTER,
     Collective::COPY_ENGINE, pb::F32, pb::F32},
    {"reduce-scatter f32 as bf16 copy_engine", Collective::REDUCE_SCATTER,
     Collective::COPY_ENGINE, pb::F32, pb::BF16},
    {"reduce-scatter f32 pairwise", Collective::REDUCE_SCATTER,
     Collective::PAIRWISE, pb::F32, pb::F32},
};
constexpr uint32_t kCtas = 16;
constexpr uint64_t kInARow = 4;
/// Of each of the three parts of a rank's memory.
constexpr uint64_t kPart = uint64_t(2) << 30;

/// Where all ranks wait for each other.
class Meeting {
public:
  explicit Meeting(uint32_t size) : size(size) {}
  void join() {
    std::unique_lock<std::mutex> lock(mutex);
    uint64_t mine = round;
    if (++here == size) {
      here = 0;
      ++round;
      all.notify_all();
    }
    all.wait(lock, [&] { return round != mine; });
  }

private:
  const uint32_t size;
  std::mutex mutex;
  std::condition_variable all;
  uint32_t here = 0;
  uint64_t round = 0;
};

/// What the ranks share.
struct Job {
  explicit Job(uint32_t ranks) : ranks(ranks), together(ranks), texts(ranks) {}

  uint32_t ranks;
  Meeting together;
  std::vector<std::string> texts;
  pb::Plan plan;
  Code code;
  std::vector<uint64_t> mebibytes;

  void describe();
};

} // namespace

static Operation operationOf(const Job &job, uint32_t row, uint64_t bytes);

/// Every row has a communicator of its own.
void Job::describe() {
  pb::MeshAxis *axis = plan.mutable_mesh()->add_axes();
  axis->set_name("gtp");
  axis->set_degree(ranks);
  plan.add_memory()->set_symmetric(true);
  code.programs.emplace_back().regions.emplace_back();
  for (const Row &row : kRows) {
    pb::Communicator *c = plan.add_communicators();
    c->add_axes(0);
    c->set_needs_window(plan::needsWindow(row.transport));
    if (row.transport == Collective::COPY_ENGINE)
      c->set_cta_policy(pb::Communicator::ZERO);
    if (plan::holdsMultiprocessors(row.transport)) {
      c->set_min_ctas(kCtas);
      c->set_max_ctas(kCtas);
    }
    code.communicators.push_back(groupsOf(plan.mesh(), *c));
    code.programs[0].regions[0].operations.push_back(
        operationOf(*this, static_cast<uint32_t>(&row - kRows), 0));
  }
}

static Operation operationOf(const Job &job, uint32_t row, uint64_t bytes) {
  const Row &wanted = kRows[row];
  Operation operation;
  operation.communicator = row;
  CollectiveSpec &spec = operation.collective;
  spec.kind = wanted.kind;
  spec.reduce = Collective::SUM;
  spec.type = wanted.type;
  spec.wire = wanted.wire;
  spec.accumulation = pb::F32;
  spec.transport = wanted.transport;
  spec.ranks = job.ranks;
  uint64_t elements = bytes / plan::dtypeSize(wanted.type);
  spec.counts = {wanted.kind == Collective::ALL_GATHER ? elements / job.ranks
                                                       : elements};
  operation.places.resize(3);
  return operation;
}

/// As many in a row as `kInARow`, each from and to its own memory.
static Status issueRow(CollectiveRunner &runner, const Operation &operation,
                       const Argument *first, cudaStream_t stream) {
  for (uint64_t i = 0; i < kInARow; ++i) {
    const Argument arguments[] = {{first[0].data + i % 2 * kPart / 2, false},
                                  {first[1].data + i % 2 * kPart / 2, false},
                                  {first[2].data + i % 2 * kPart / 2, false}};
    GTP_RETURN_IF_ERROR(runner.run(operation, arguments, stream));
  }
  return Status::ok();
}

static Status measure(Job &job, CollectiveRunner &runner, std::byte *base,
                      uint32_t rank, uint32_t row, uint64_t bytes) {
  Operation operation = operationOf(job, row, bytes);
  // Source, destination, scratch.
  Argument arguments[] = {
      {base, false}, {base + kPart, false}, {base + 2 * kPart, false}};
  // As plans have it: the copy of the own shard is not the gather's.
  if (kRows[row].kind == Collective::ALL_GATHER &&
      kRows[row].transport == Collective::COPY_ENGINE)
    arguments[0].data = arguments[1].data + bytes / job.ranks * rank;
  cudaStream_t stream = nullptr;
  GTP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 2; ++i)
    GTP_RETURN_IF_ERROR(runner.run(operation, arguments, stream));
  GTP_CUDA(cudaStreamSynchronize(stream));
  GTP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  Status issued = issueRow(runner, operation, arguments, stream);
  cudaGraph_t graph = nullptr;
  GTP_CUDA(cudaStreamEndCapture(stream, &graph));
  GTP_RETURN_IF_ERROR(std::move(issued));
  cudaGraphExec_t executable = nullptr;
  GTP_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin = nullptr, end = nullptr;
  GTP_CUDA(cudaEventCreate(&begin));
  GTP_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 23; ++i) {
    job.together.join();
    GTP_CUDA(cudaEventRecord(begin, stream));
    GTP_CUDA(cudaGraphLaunch(executable, stream));
    GTP_CUDA(cudaEventRecord(end, stream));
    GTP_CUDA(cudaStreamSynchronize(stream));
    float time = 0;
    GTP_CUDA(cudaEventElapsedTime(&time, begin, end));
    if (i >= 3)
      times.push_back(time / kInARow);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  std::sort(times.begin(), times.end());
  double received = double(bytes) / job.ranks * (job.ranks - 1);
  double ms = times[times.size() / 2];
  if (rank == 0)
    std::printf("%-40s %5llu MiB  %7.3f ms (min %.3f, max %.3f)  %4.0f GB/s\n",
                kRows[row].name, static_cast<unsigned long long>(bytes >> 20),
                ms, double(times.front()), double(times.back()),
                received / ms / 1e6);
  return Status::ok();
}

static Status runRank(Job &job, uint32_t rank) {
  GTP_CUDA(cudaSetDevice(static_cast<int>(rank)));
  auto exchange =
      [&job,
       rank](const std::string &text) -> StatusOr<std::vector<std::string>> {
    job.texts[rank] = text;
    job.together.join();
    std::vector<std::string> all = job.texts;
    job.together.join();
    return all;
  };
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveRunner> runner,
                       createNcclRunner(job.plan, job.code, rank, exchange));
  GTP_ASSIGN_OR_RETURN(
      std::unique_ptr<DeviceMemory> memory,
      DeviceMemory::allocate(static_cast<int>(rank), 3 * kPart));
  GTP_CUDA(cudaMemset(memory->base(), 0, memory->size()));
  GTP_RETURN_IF_ERROR(runner->setArena(memory->base(), memory->size()));
  for (uint32_t row = 0; row < std::size(kRows); ++row)
    for (uint64_t mebibytes : job.mebibytes)
      GTP_RETURN_IF_ERROR(
          measure(job, *runner, memory->base(), rank, row, mebibytes << 20));
  GTP_RETURN_IF_ERROR(runner->health());
  // Windows go before their memory, and on all ranks together.
  job.together.join();
  runner.reset();
  job.together.join();
  return Status::ok();
}

int main(int argc, char **argv) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 2) {
    std::fprintf(stderr, "error: it takes two GPUs, and this process sees %d\n",
                 gpus);
    return 1;
  }
  Job job(static_cast<uint32_t>(gpus));
  for (int i = 1; i < argc; ++i)
    job.mebibytes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (job.mebibytes.empty())
    job.mebibytes = {32, 128, 256};
  for (uint64_t mebibytes : job.mebibytes)
    if (mebibytes == 0 || mebibytes << 20 > kPart / 2) {
      std::fprintf(stderr, "error: sizes are from 1 to 1024 MiB\n");
      return 1;
    }
  job.describe();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < job.ranks; ++rank)
    threads.emplace_back([&job, rank] {
      Status status = runRank(job, rank);
      if (status.isOk())
        return;
      std::fprintf(stderr, "error: rank %u: %s\n", rank,
                   status.message().c_str());
      // The others wait for it.
      std::_Exit(1);
    });
  for (std::thread &thread : threads)
    thread.join();
  return 0;
}
