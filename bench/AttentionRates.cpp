//===- AttentionRates.cpp - Speed and scratch of bf16 attention -----------===//
//
// usage: attention-rates [sequence]...
// Heads 32, key heads 8 of 128 features, causal, one sequence. Times are of
// replayed graphs of ten calls, the median of rounds; TFLOP/s count the causal
// half. Scratch is beside what the built-in profile of the H200 allows.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "CudnnAttention.h"
#include "gtp/Machine/Profile.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace gtp;
using namespace gtp::rt::cuda;

namespace {

constexpr uint64_t kHeads = 32, kKeyHeads = 8, kHead = 128;
constexpr unsigned kCalls = 10, kRounds = 15;

/// Device memory that lives until the end of the process.
StatusOr<void *> allocate(uint64_t bytes) {
  void *memory = nullptr;
  GTP_CUDA(cudaMalloc(&memory, std::max<uint64_t>(bytes, 256)));
  return memory;
}

/// bf16 values in [-1, 1).
StatusOr<void *> randomNumbers(uint64_t count) {
  GTP_ASSIGN_OR_RETURN(void *memory, allocate(count * 2));
  std::vector<uint16_t> values(count);
  uint64_t state = count;
  for (uint16_t &value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    float number = static_cast<float>(state >> 40) / (1 << 23) - 1;
    uint32_t bits = 0;
    std::copy_n(reinterpret_cast<const char *>(&number), 4,
                reinterpret_cast<char *>(&bits));
    value = static_cast<uint16_t>(bits >> 16);
  }
  GTP_CUDA(
      cudaMemcpy(memory, values.data(), count * 2, cudaMemcpyHostToDevice));
  return memory;
}

/// Milliseconds of one call.
StatusOr<float> measure(const CudnnAttention &attention, void *const *operands,
                        void *scratch) {
  cudaStream_t stream = nullptr;
  GTP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (unsigned i = 0; i < 2; ++i)
    GTP_RETURN_IF_ERROR(attention.run(operands, scratch, stream));
  GTP_CUDA(cudaStreamSynchronize(stream));
  GTP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (unsigned i = 0; i < kCalls; ++i)
    GTP_RETURN_IF_ERROR(attention.run(operands, scratch, stream));
  cudaGraph_t graph = nullptr;
  GTP_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t replay = nullptr;
  GTP_CUDA(cudaGraphInstantiate(&replay, graph, 0));
  cudaEvent_t begin = nullptr, end = nullptr;
  GTP_CUDA(cudaEventCreate(&begin));
  GTP_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (unsigned i = 0; i < kRounds; ++i) {
    GTP_CUDA(cudaEventRecord(begin, stream));
    GTP_CUDA(cudaGraphLaunch(replay, stream));
    GTP_CUDA(cudaEventRecord(end, stream));
    GTP_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    GTP_CUDA(cudaEventElapsedTime(&ms, begin, end));
    times.push_back(ms / kCalls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

Status bench(Cudnn &cudnn, const machine::Profile &profile, uint64_t length) {
  const uint64_t query = kHeads * kHead, key = kKeyHeads * kHead;
  const uint64_t packed = query + 2 * key;
  GTP_ASSIGN_OR_RETURN(void *qkv, randomNumbers(length * packed));
  GTP_ASSIGN_OR_RETURN(void *dout, randomNumbers(length * query));
  GTP_ASSIGN_OR_RETURN(void *out, allocate(length * query * 2));
  GTP_ASSIGN_OR_RETURN(void *lse, allocate(length * kHeads * 4));
  GTP_ASSIGN_OR_RETURN(void *dqkv, allocate(length * packed * 2));
  auto part = [](void *base, uint64_t first) -> void * {
    return static_cast<uint16_t *>(base) + first;
  };
  machine::KernelDims dims;
  dims.batch = 1;
  dims.sequence = dims.keys = static_cast<int64_t>(length);
  dims.heads = kHeads;
  dims.kvHeads = kKeyHeads;
  dims.headDim = kHead;

  AttentionProblem problem;
  problem.shape = {1,         length, kHeads,
                   kKeyHeads, kHead,  1 / std::sqrt(static_cast<float>(kHead)),
                   true,      0,      0};
  struct Way {
    const char *name;
    bool gradient, fast;
  };
  for (Way way : {Way{"forward", false, false},
                  Way{"gradient, deterministic", true, false},
                  Way{"gradient, fast", true, true}}) {
    problem.gradient = way.gradient;
    problem.fast = way.fast;
    std::vector<void *> operands = {part(qkv, 0), part(qkv, query),
                                    part(qkv, query + key), out, lse};
    problem.pitches = {packed, packed, packed, query, length};
    if (way.gradient) {
      operands = {
          dout, part(qkv, 0),  part(qkv, query),  part(qkv, query + key), out,
          lse,  part(dqkv, 0), part(dqkv, query), part(dqkv, query + key)};
      problem.pitches = {query,  packed, packed, packed, query,
                         length, packed, packed, packed};
    }
    GTP_ASSIGN_OR_RETURN(MadeAttention made,
                         cudnn.attention(problem, UINT64_MAX));
    if (!made.attention)
      return Status::error("cuDNN refuses: " + made.refusal);
    uint64_t bytes = made.attention->scratchBytes();
    GTP_ASSIGN_OR_RETURN(void *scratch, allocate(bytes));
    GTP_ASSIGN_OR_RETURN(float ms,
                         measure(*made.attention, operands.data(), scratch));
    GTP_CUDA(cudaFree(scratch));
    double flops = (way.gradient ? 10.0 : 4.0) * double(length) *
                   double(length) * double(query) / 2;
    std::printf("%8lu  %-24s %9.4f ms %8.1f TFLOP/s  scratch %12lu of %12ld\n",
                static_cast<unsigned long>(length), way.name, double(ms),
                flops / double(ms) * 1e-9, static_cast<unsigned long>(bytes),
                static_cast<long>(profile.scratchBytes(
                    way.gradient ? "attention_grad" : "attention", dims)));
    std::fflush(stdout);
  }
  for (void *memory : {qkv, dout, out, lse, dqkv})
    GTP_CUDA(cudaFree(memory));
  return Status::ok();
}

Status run(const std::vector<uint64_t> &lengths) {
  GTP_ASSIGN_OR_RETURN(machine::Profile profile,
                       machine::Profile::load("h200"));
  GTP_ASSIGN_OR_RETURN(std::shared_ptr<Cudnn> cudnn, Cudnn::load());
  std::printf("%s\n", cudnn->name().c_str());
  for (uint64_t length : lengths)
    GTP_RETURN_IF_ERROR(bench(*cudnn, profile, length));
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  std::vector<uint64_t> lengths;
  for (int i = 1; i < argc; ++i)
    lengths.push_back(std::strtoull(argv[i], nullptr, 10));
  if (lengths.empty())
    lengths = {1024, 2048, 4096, 8192};
  Status status = run(lengths);
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "attention-rates: error: %s\n",
               status.message().c_str());
  return 1;
}
