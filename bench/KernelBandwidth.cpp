//===- KernelBandwidth.cpp - How near CUDA's kernels are to a copy --------===//
//
// usage: kernel-bandwidth [FILTER]
//
// Times kernels that memory limits, at the shapes of a Llama 3 8B on two ranks,
// and prints for each the bytes that it must read and write a second, and which
// share that is of what a plain copy moves. Calls are replayed as a graph, over
// as many sets of operands as the L2 cache does not hold.
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using namespace gtp;
using namespace gtp::rt::cuda;

namespace {

constexpr uint64_t kHidden = 4096, kIntermediate = 14336, kVocabulary = 128256;
constexpr uint64_t kHeads = 32, kKvHeads = 8, kHead = 128;
/// Memory of all sets of operands, at least; several times any L2 cache.
constexpr uint64_t kSpread = uint64_t(1) << 30;

/// Operands of a call, one behind the other.
class Layout {
public:
  explicit Layout(std::byte *base) : next(base), base(base) {}

  Tensor tensor(uint64_t rows, uint64_t columns, Element type,
                uint64_t pitch = 0) {
    Tensor result;
    result.rows = rows;
    result.columns = columns;
    result.pitch = pitch ? pitch : columns;
    result.type = type;
    result.data = take(rows * result.pitch * (type == Element::BF16 ? 2 : 4));
    return result;
  }
  /// A part of a tensor's columns.
  static Tensor part(Tensor whole, uint64_t first, uint64_t columns) {
    whole.columns = columns;
    whole.data = static_cast<std::byte *>(whole.data) +
                 first * (whole.type == Element::BF16 ? 2 : 4);
    return whole;
  }
  void *take(uint64_t bytes) {
    void *result = next;
    next += (bytes + 255) / 256 * 256;
    return result;
  }
  uint64_t bytes() const { return static_cast<uint64_t>(next - base); }

private:
  std::byte *next, *base;
};

/// What all calls read and nobody changes, on the device.
struct Inputs {
  int32_t *ids = nullptr; ///< below the vocabulary
  int64_t *count = nullptr;
  float *ones = nullptr;
  float *table = nullptr; ///< of rope
  Fault *fault = nullptr;
  std::byte *workspace = nullptr;
  uint64_t workspaceBytes = 0;
};

struct Case {
  std::string name, shape;
  uint64_t bytes; ///< that it must read and write
  std::function<cudaError_t(Layout &, cudaStream_t)> call;
};

} // namespace

static Status makeInputs(Inputs &inputs) {
  constexpr uint64_t kRows = 8192;
  std::vector<int32_t> ids(kRows);
  uint64_t state = 1;
  for (int32_t &id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    id = static_cast<int32_t>((state >> 33) % kVocabulary);
  }
  std::vector<float> floats(2 * kRows * kHead / 2, 1.0f);
  const int64_t count = kRows;
  inputs.workspaceBytes = uint64_t(64) << 20;
  auto make = [](auto *&pointer, uint64_t bytes, const void *from) -> Status {
    void *memory = nullptr;
    GTP_CUDA(cudaMalloc(&memory, bytes));
    GTP_CUDA(cudaMemset(memory, 0, bytes));
    if (from)
      GTP_CUDA(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
    pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(memory);
    return Status::ok();
  };
  GTP_RETURN_IF_ERROR(make(inputs.ids, ids.size() * 4, ids.data()));
  GTP_RETURN_IF_ERROR(make(inputs.count, sizeof count, &count));
  GTP_RETURN_IF_ERROR(make(inputs.ones, 64, floats.data()));
  GTP_RETURN_IF_ERROR(make(inputs.table, floats.size() * 4, floats.data()));
  GTP_RETURN_IF_ERROR(make(inputs.fault, sizeof(Fault), nullptr));
  return make(inputs.workspace, inputs.workspaceBytes, nullptr);
}

static void addModelCases(std::vector<Case> &cases, const Inputs &in,
                          uint64_t rows) {
  constexpr Element bf16 = Element::BF16;
  const std::string tokens = std::to_string(rows);
  const uint64_t hidden = rows * kHidden * 2, wide = rows * kIntermediate * 2;
  const uint64_t logits = rows * kVocabulary * 2;
  auto *floats = reinterpret_cast<float *>(in.workspace);
  auto add = [&](std::string name, const std::string &columns, uint64_t bytes,
                 std::function<cudaError_t(Layout &, cudaStream_t)> call) {
    cases.push_back(
        {std::move(name), tokens + " x " + columns, bytes, std::move(call)});
  };
  const NormShape norms = {kHidden, 1e-5f, 0, false};
  add("rms_norm", "4096", 2 * hidden, [=](Layout &l, cudaStream_t stream) {
    Tensor x = l.tensor(rows, kHidden, bf16), y = l.tensor(rows, kHidden, bf16);
    return norm(norms, x, l.take(kHidden * 2), y, stream);
  });
  add("rms_norm_grad", "4096", 3 * hidden, [=](Layout &l, cudaStream_t stream) {
    Tensor dy = l.tensor(rows, kHidden, bf16),
           x = l.tensor(rows, kHidden, bf16);
    Tensor dx = l.tensor(rows, kHidden, bf16), dw = l.tensor(1, kHidden, bf16);
    return normGrad(norms, dy, x, l.take(kHidden * 2), Tensor(), dx, dw, floats,
                    stream);
  });
  add("add_rms_norm", "4096", 4 * hidden, [=](Layout &l, cudaStream_t stream) {
    Tensor a = l.tensor(rows, kHidden, bf16), b = l.tensor(rows, kHidden, bf16);
    Tensor sum = l.tensor(rows, kHidden, bf16);
    return addNorm(norms, a, b, l.take(kHidden * 2), sum,
                   l.tensor(rows, kHidden, bf16), stream);
  });
  add("rms_norm_grad_add", "4096", 4 * hidden,
      [=](Layout &l, cudaStream_t stream) {
        Tensor dy = l.tensor(rows, kHidden, bf16),
               x = l.tensor(rows, kHidden, bf16);
        Tensor residual = l.tensor(rows, kHidden, bf16);
        Tensor dx = l.tensor(rows, kHidden, bf16),
               dw = l.tensor(1, kHidden, bf16);
        return normGrad(norms, dy, x, l.take(kHidden * 2), residual, dx, dw,
                        floats, stream);
      });
  add("add", "4096", 3 * hidden, [=](Layout &l, cudaStream_t stream) {
    Tensor terms[] = {l.tensor(rows, kHidden, bf16),
                      l.tensor(rows, kHidden, bf16)};
    return addAll(terms, 2, l.tensor(rows, kHidden, bf16), stream);
  });
  for (uint64_t heads : {kHeads, kKvHeads}) {
    uint64_t columns = heads * kHead;
    add("rope", std::to_string(columns) + " of 6144", 4 * rows * columns,
        [=](Layout &l, cudaStream_t stream) {
          Tensor x = l.tensor(rows, columns, bf16, kHidden + 2 * 1024);
          return rope(x, l.tensor(rows, columns, bf16), in.table,
                      in.table + rows * kHead / 2, {rows, nullptr, in.fault},
                      kHead, kHead / 2, false, stream);
        });
  }
  add("swiglu", "14336", 3 * wide, [=](Layout &l, cudaStream_t stream) {
    Tensor x = l.tensor(rows, 2 * kIntermediate, bf16);
    return binary(Binary::Swiglu, Layout::part(x, 0, kIntermediate),
                  Layout::part(x, kIntermediate, kIntermediate),
                  l.tensor(rows, kIntermediate, bf16), 0, stream);
  });
  add("swiglu_grad", "14336", 5 * wide, [=](Layout &l, cudaStream_t stream) {
    Tensor x = l.tensor(rows, 2 * kIntermediate, bf16);
    Tensor dx = l.tensor(rows, 2 * kIntermediate, bf16);
    return swigluGrad(l.tensor(rows, kIntermediate, bf16),
                      Layout::part(x, 0, kIntermediate),
                      Layout::part(x, kIntermediate, kIntermediate),
                      Layout::part(dx, 0, kIntermediate),
                      Layout::part(dx, kIntermediate, kIntermediate), stream);
  });
  add("cross_entropy", "128256", logits, [=](Layout &l, cudaStream_t stream) {
    Tensor x = l.tensor(rows, kVocabulary, bf16);
    return crossEntropy(x, {in.ids, in.count, 0}, l.tensor(1, 1, Element::F32),
                        floats, in.fault, stream);
  });
  add("cross_entropy_grad", "128256", 2 * logits,
      [=](Layout &l, cudaStream_t stream) {
        Tensor x = l.tensor(rows, kVocabulary, bf16);
        return crossEntropyGrad(x, {in.ids, in.count, 0}, in.ones,
                                l.tensor(rows, kVocabulary, bf16), in.fault,
                                stream);
      });
  add("cross_entropy_in_place", "128256", 2 * logits,
      [=](Layout &l, cudaStream_t stream) {
        Tensor x = l.tensor(rows, kVocabulary, bf16);
        return crossEntropyInPlace(x, {in.ids, in.count, 0}, in.ones,
                                   l.tensor(1, 1, Element::F32), floats,
                                   in.fault, stream);
      });
  add("embedding", "4096", 2 * hidden, [=](Layout &l, cudaStream_t stream) {
    Tensor out = l.tensor(rows, kHidden, bf16);
    return embedding(in.ids, l.tensor(kVocabulary, kHidden, bf16), out,
                     in.fault, stream);
  });
  for (Element type : {bf16, Element::F32}) {
    uint64_t size = type == bf16 ? 2 : 4;
    add("embedding_grad",
        std::string("4096 to ") + (size == 2 ? "bf16" : "f32"),
        hidden + kVocabulary * kHidden * size,
        [=](Layout &l, cudaStream_t stream) {
          Tensor dy = l.tensor(rows, kHidden, bf16);
          return embeddingGrad(dy, in.ids, l.tensor(kVocabulary, kHidden, type),
                               in.workspace, in.workspaceBytes, in.fault,
                               stream);
        });
  }
}

static void addUpdateCases(std::vector<Case> &cases, const Inputs &in) {
  constexpr Element bf16 = Element::BF16, f32 = Element::F32;
  // What a rank has of gate and up of a layer, and of the language model's
  // head.
  for (uint64_t count : {kIntermediate * kHidden, kVocabulary * kHidden / 2}) {
    const std::string shape = std::to_string(count);
    for (Element gradient : {bf16, f32})
      cases.push_back(
          {gradient == bf16 ? "adamw, bf16 grad" : "adamw, f32 grad", shape,
           count * (gradient == bf16 ? 28 : 30),
           [=](Layout &l, cudaStream_t stream) {
             Update update;
             update.master = l.tensor(1, count, f32);
             update.m = l.take(count * 4);
             update.v = l.take(count * 4);
             update.grad = l.tensor(1, count, gradient);
             update.hyper = in.table;
             update.scale = in.ones;
             update.compute = l.tensor(1, count, bf16);
             return adamw(update, stream);
           }});
    cases.push_back({"adamw_split, bf16 grad", shape, count * 26,
                     [=](Layout &l, cudaStream_t stream) {
                       Update update;
                       update.master = l.tensor(1, count, bf16);
                       update.remainder =
                           static_cast<int16_t *>(l.take(count * 2));
                       update.m = l.take(count * 4);
                       update.v = l.take(count * 4);
                       update.grad = l.tensor(1, count, bf16);
                       update.hyper = in.table;
                       update.scale = in.ones;
                       return adamw(update, stream);
                     }});
    for (Element type : {bf16, f32})
      cases.push_back(
          {type == bf16 ? "sum_squares, bf16" : "sum_squares, f32", shape,
           count * (type == bf16 ? 2 : 4), [=](Layout &l, cudaStream_t stream) {
             return sumSquares(
                 l.tensor(1, count, type), static_cast<double *>(l.take(8)),
                 reinterpret_cast<double *>(in.workspace), stream);
           }});
    cases.push_back(
        {"sum of 2 ranks, bf16", shape, count * 6,
         [=](Layout &l, cudaStream_t stream) {
           const void *sources[] = {l.take(count * 2), l.take(count * 2)};
           return reduceInOrder({Scalar::BF16, Scalar::BF16}, sources, 2, count,
                                l.take(count * 2), false, stream);
         }});
    cases.push_back({"cast, f32 to bf16", shape, count * 6,
                     [=](Layout &l, cudaStream_t stream) {
                       Tensor x = l.tensor(1, count, f32);
                       return unary(Unary::Copy, x, l.tensor(1, count, bf16), 0,
                                    stream);
                     }});
    cases.push_back(
        {"full", shape, count * 4, [=](Layout &l, cudaStream_t stream) {
           return fillPattern(l.tensor(1, count, f32), 4, 0, stream);
         }});
  }
}

/// Milliseconds of a call, the median of five replays.
static StatusOr<double> measure(const Case &test, std::byte *pool,
                                uint64_t poolBytes, cudaStream_t stream) {
  Layout first(pool);
  GTP_CUDA(test.call(first, stream));
  const uint64_t set = first.bytes();
  if (set > poolBytes)
    return Status::error(test.name + " needs " + std::to_string(set) +
                         " bytes, more than the benchmark allocates");
  const uint64_t sets = std::max<uint64_t>(1, kSpread / set);
  const uint64_t calls = std::min<uint64_t>(
      400, std::max<uint64_t>(4, uint64_t(12e9) / test.bytes));
  GTP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (uint64_t i = 0; i < calls; ++i) {
    Layout layout(pool + i % sets * set);
    GTP_CUDA(test.call(layout, stream));
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  GTP_CUDA(cudaStreamEndCapture(stream, &graph));
  GTP_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin = nullptr, end = nullptr;
  GTP_CUDA(cudaEventCreate(&begin));
  GTP_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (int run = 0; run < 6; ++run) {
    GTP_CUDA(cudaEventRecord(begin, stream));
    GTP_CUDA(cudaGraphLaunch(executable, stream));
    GTP_CUDA(cudaEventRecord(end, stream));
    GTP_CUDA(cudaEventSynchronize(end));
    float time = 0;
    GTP_CUDA(cudaEventElapsedTime(&time, begin, end));
    if (run > 0) // the first one warms up
      times.push_back(time);
  }
  GTP_CUDA(cudaEventDestroy(begin));
  GTP_CUDA(cudaEventDestroy(end));
  GTP_CUDA(cudaGraphExecDestroy(executable));
  GTP_CUDA(cudaGraphDestroy(graph));
  std::sort(times.begin(), times.end());
  return double(times[times.size() / 2]) / double(calls);
}

static Status run(const std::string &filter) {
  Inputs inputs;
  GTP_RETURN_IF_ERROR(makeInputs(inputs));
  cudaStream_t stream = nullptr;
  GTP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const uint64_t poolBytes = uint64_t(10) << 30;
  void *memory = nullptr;
  GTP_CUDA(cudaMalloc(&memory, poolBytes));
  // 0.0115, in bf16 and in float32.
  GTP_CUDA(cudaMemset(memory, 0x3c, poolBytes));
  auto *pool = static_cast<std::byte *>(memory);

  constexpr uint64_t kCopied = uint64_t(1) << 30;
  std::vector<Case> cases;
  cases.push_back(
      {"copy", "1 GiB", 2 * kCopied, [=](Layout &l, cudaStream_t to) {
         Tensor x = l.tensor(1, kCopied / 4, Element::F32);
         return unary(Unary::Copy, x, l.tensor(1, kCopied / 4, Element::F32), 0,
                      to);
       }});
  // In a graph, a copy engine's.
  cases.push_back({"cudaMemcpyAsync", "1 GiB", 2 * kCopied,
                   [=](Layout &l, cudaStream_t to) {
                     void *from = l.take(kCopied);
                     return cudaMemcpyAsync(l.take(kCopied), from, kCopied,
                                            cudaMemcpyDeviceToDevice, to);
                   }});
  for (uint64_t rows : {1024, 4096})
    addModelCases(cases, inputs, rows);
  addUpdateCases(cases, inputs);
  double best = 0;
  std::printf("%-24s %-20s %9s %7s %7s\n", "kernel", "shape", "ms", "GB/s",
              "of copy");
  for (const Case &test : cases) {
    if (&test != &cases.front() && test.name.find(filter) == std::string::npos)
      continue;
    GTP_ASSIGN_OR_RETURN(double time, measure(test, pool, poolBytes, stream));
    double speed = double(test.bytes) / time / 1e6;
    best = best == 0 ? speed : best;
    std::printf("%-24s %-20s %9.4f %7.0f %6.0f%%\n", test.name.c_str(),
                test.shape.c_str(), time, speed, 100 * speed / best);
    std::fflush(stdout);
  }
  GTP_CUDA(cudaFree(memory));
  return Status::ok();
}

int main(int argc, char **argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: kernel-bandwidth [FILTER]\n");
    return 1;
  }
  Status status = run(argc > 1 ? argv[1] : "");
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}
