//===- GemmTimer.cpp - Measures the algorithms of a product ---------------===//

#include "GemmTimer.h"

#include "Check.h"

#include "gtp/Plan/Operand.h"
#include "gtp/Support/BFloat16.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

/// A candidate whose single calls take this many times the best's is out: a
/// lower clock for all does not make up for so much.
static constexpr double kHopeless = 1.3;
/// Others have the GPU for so long each,
static constexpr double kSeconds = 0.05;
/// and the best of them, twice, for so long.
static constexpr size_t kMostFinalists = 3;
static constexpr double kFinalSeconds = 0.2;
/// Two measurements of one algorithm differ by less.
static constexpr double kNoise = 0.01;
/// Until a GPU that was idle runs at the clock of one that is not.
static constexpr double kWarmUpSeconds = 0.5;
/// Elements of the pattern; no row pitch is a multiple.
static constexpr size_t kPattern = (size_t(4) << 20) + 1031;

namespace {

/// Addresses of a product's operands that are as aligned as it says. Results
/// lie apart from what is read, which stays random.
class Places {
public:
  Places(const ProductShape &shape, uint64_t cacheBytes) : shape(shape) {
    // A place comes round again when the cache has seen four times its size.
    sets = 1 + 4 * cacheBytes / (inputSpan() + span(shape.d));
  }
  uint64_t inputBytes() const { return sets * inputSpan(); }
  uint64_t resultBytes() const { return sets * span(shape.d); }

  std::byte *a(std::byte *inputs, uint64_t call) const {
    return inputs + call % sets * inputSpan() + shape.a.alignment % 256;
  }
  std::byte *b(std::byte *inputs, uint64_t call) const {
    return inputs + call % sets * inputSpan() + span(shape.a) +
           shape.b.alignment % 256;
  }
  /// Null if there is none.
  std::byte *bias(std::byte *inputs, uint64_t call) const {
    return shape.biasAlignment
               ? inputs + call % sets * inputSpan() + span(shape.a) +
                     span(shape.b) + shape.biasAlignment % 256
               : nullptr;
  }
  std::byte *d(std::byte *results, uint64_t call) const {
    return results + call % sets * span(shape.d) + shape.d.alignment % 256;
  }

private:
  static uint64_t span(const ProductMatrix &matrix) {
    return roundUp(matrix.rows * matrix.pitch * plan::dtypeSize(matrix.type),
                   256) +
           256;
  }
  uint64_t inputSpan() const {
    ProductMatrix bias = shape.d; // of which it is a row
    bias.rows = 1;
    return span(shape.a) + span(shape.b) +
           (shape.biasAlignment ? span(bias) : 0);
  }

  const ProductShape &shape;
  uint64_t sets;
};

class Timer : public GemmTimer {
public:
  ~Timer() override;
  Status start(const std::vector<const Gemm *> &products);
  StatusOr<Fastest> fastest(const Gemm &gemm) override;
  StatusOr<double> sustain(const std::vector<Call> &all,
                           double seconds) override;

private:
  Status fill();
  /// Nanoseconds that calls of all of them in turn take, so many times over;
  /// infinite if one does not run.
  StatusOr<double> sample(const std::vector<Call> &all, uint64_t times);
  /// Nanoseconds of single calls, a candidate each.
  StatusOr<std::vector<double>> glance(const Gemm &gemm);

  cudaStream_t stream = nullptr;
  cudaEvent_t begun = nullptr, ended = nullptr;
  std::byte *inputs = nullptr, *results = nullptr, *workspace = nullptr;
  uint64_t cacheBytes = 0, inputBytes = 0, resultBytes = 0, calls = 0;
  bool isWarm = false;
};

} // namespace

Status gtp::rt::cuda::checkTimerMemory(uint64_t bytes, uint64_t free) {
  if (bytes <= free)
    return Status::ok();
  return Status::error(
      "measuring the algorithms of matrix products takes " +
      std::to_string(bytes) + " bytes of GPU memory, and the GPU has " +
      std::to_string(free) +
      " free; --tuning-cache=off takes the library's first choice");
}

Timer::~Timer() {
  if (stream)
    cudaStreamSynchronize(stream);
  for (std::byte *memory : {inputs, results, workspace})
    if (memory)
      cudaFree(memory);
  for (cudaEvent_t event : {begun, ended})
    if (event)
      cudaEventDestroy(event);
  if (stream)
    cudaStreamDestroy(stream);
}

Status Timer::start(const std::vector<const Gemm *> &products) {
  int device = 0, cache = 0;
  GTP_CUDA(cudaGetDevice(&device));
  GTP_CUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
  cacheBytes = static_cast<uint64_t>(cache);
  uint64_t workspaceBytes = 256;
  for (const Gemm *gemm : products) {
    const Places places(gemm->shape(), cacheBytes);
    inputBytes = std::max(inputBytes, places.inputBytes());
    resultBytes = std::max(resultBytes, places.resultBytes());
    for (const Gemm::Choice &choice : gemm->candidates())
      workspaceBytes = std::max(workspaceBytes, choice.workspaceBytes);
  }
  const uint64_t bytes = inputBytes + resultBytes + workspaceBytes;
  size_t free = 0, total = 0;
  GTP_CUDA(cudaMemGetInfo(&free, &total));
  GTP_RETURN_IF_ERROR(checkTimerMemory(bytes, free));
  GTP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GTP_CUDA(cudaEventCreate(&begun));
  GTP_CUDA(cudaEventCreate(&ended));
  GTP_CUDA(cudaMalloc(reinterpret_cast<void **>(&inputs), inputBytes));
  GTP_CUDA(cudaMalloc(reinterpret_cast<void **>(&results), resultBytes));
  GTP_CUDA(cudaMalloc(reinterpret_cast<void **>(&workspace), workspaceBytes));
  GTP_CUDA(cudaMemset(results, 0, resultBytes));
  return fill();
}

Status Timer::fill() {
  // Bell-shaped, as activations and weights are; read as float32 it is too.
  std::vector<BFloat16> pattern(kPattern);
  uint64_t state = 1;
  for (BFloat16 &value : pattern) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int sum = 0;
    for (unsigned shift : {16, 28, 40, 52})
      sum += static_cast<int>(state >> shift & 0xfff) - 0x800;
    value = BFloat16(float(sum) / 2048);
  }
  const uint64_t bytes = std::min(inputBytes, kPattern * sizeof(BFloat16));
  GTP_CUDA(cudaMemcpy(inputs, pattern.data(), bytes, cudaMemcpyHostToDevice));
  for (uint64_t filled = bytes; filled < inputBytes;) {
    uint64_t next = std::min(filled, inputBytes - filled);
    GTP_CUDA(cudaMemcpyAsync(inputs + filled, inputs, next,
                             cudaMemcpyDeviceToDevice, stream));
    filled += next;
  }
  return Status::ok();
}

StatusOr<double> Timer::sample(const std::vector<Call> &all, uint64_t times) {
  std::vector<Places> places;
  for (const Call &call : all)
    places.emplace_back(call.gemm->shape(), cacheBytes);
  GTP_CUDA(cudaEventRecord(begun, stream));
  for (uint64_t time = 0; time < times; ++time, ++calls)
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].gemm->run(
              all[i].choice, places[i].a(inputs, calls),
              places[i].b(inputs, calls), places[i].d(results, calls),
              all[i].gemm->shape().add, workspace, stream,
              places[i].bias(inputs, calls)) != CUBLAS_STATUS_SUCCESS)
        return std::numeric_limits<double>::infinity();
  GTP_CUDA(cudaEventRecord(ended, stream));
  GTP_CUDA(cudaEventSynchronize(ended));
  float milliseconds = 0;
  GTP_CUDA(cudaEventElapsedTime(&milliseconds, begun, ended));
  return double(milliseconds) * 1e6 / double(times);
}

StatusOr<double> Timer::sustain(const std::vector<Call> &all, double seconds) {
  GTP_ASSIGN_OR_RETURN(double ns, sample(all, 1));
  if (std::isinf(ns))
    return ns;
  const double times = std::min(1e6, std::ceil(seconds * 1e9 / ns / 3));
  // A third of the time for the clock to settle.
  const auto third = static_cast<uint64_t>(times);
  GTP_RETURN_IF_ERROR(sample(all, third).status());
  return sample(all, 2 * third);
}

StatusOr<std::vector<double>> Timer::glance(const Gemm &gemm) {
  const std::vector<Gemm::Choice> &choices = gemm.candidates();
  std::vector<double> times(choices.size());
  // The first call loads the kernel.
  for (unsigned round = 0; round < 3; ++round)
    for (size_t i = 0; i < choices.size(); ++i) {
      GTP_ASSIGN_OR_RETURN(double ns, sample({{&gemm, choices[i]}}, 1));
      times[i] = round < 2 ? ns : std::min(times[i], ns);
    }
  return times;
}

/// The first `most` of `candidates` by time, those above `limit` left out.
static std::vector<size_t> least(std::vector<size_t> candidates,
                                 const std::vector<double> &ns, size_t most,
                                 double limit) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](size_t a, size_t b) { return ns[a] < ns[b]; });
  candidates.resize(std::min(most, candidates.size()));
  while (!candidates.empty() && ns[candidates.back()] > limit)
    candidates.pop_back();
  return candidates;
}

StatusOr<GemmTimer::Fastest> Timer::fastest(const Gemm &gemm) {
  const std::vector<Gemm::Choice> &choices = gemm.candidates();
  GTP_ASSIGN_OR_RETURN(std::vector<double> ns, glance(gemm));
  const double best = *std::min_element(ns.begin(), ns.end());
  if (std::isinf(best))
    return Status::error("none of cuBLASLt's algorithms runs the product " +
                         gemm.shape().text());
  if (!isWarm)
    GTP_RETURN_IF_ERROR(
        sustain({{&gemm, choices.front()}}, kWarmUpSeconds).status());
  isWarm = true;

  // The first, which the others are compared with, is always among them.
  std::vector<size_t> others;
  for (size_t i = 1; i < choices.size(); ++i)
    others.push_back(i);
  others = least(others, ns, others.size(), kHopeless * best);
  for (size_t i : others) {
    GTP_ASSIGN_OR_RETURN(ns[i], sustain({{&gemm, choices[i]}}, kSeconds));
  }
  others = least(others, ns, kMostFinalists, HUGE_VAL);
  others.push_back(0);
  std::vector<double> means(choices.size());
  for (unsigned round = 0; round < 2; ++round) {
    // There and back: what warms up or cools down does so for all.
    std::reverse(others.begin(), others.end());
    for (size_t i : others) {
      GTP_ASSIGN_OR_RETURN(double time,
                           sustain({{&gemm, choices[i]}}, kFinalSeconds));
      means[i] += time / 2;
    }
  }
  const size_t winner = least(others, means, 1, HUGE_VAL).front();
  Fastest result;
  result.firstNs = means[0];
  result.candidate = means[winner] < (1 - kNoise) * means[0] ? winner : 0;
  result.ns = means[result.candidate];
  return result;
}

StatusOr<std::unique_ptr<GemmTimer>>
GemmTimer::create(const std::vector<const Gemm *> &products) {
  auto timer = std::make_unique<Timer>();
  GTP_RETURN_IF_ERROR(timer->start(products));
  return std::unique_ptr<GemmTimer>(std::move(timer));
}
