//===- Context.h - What the kernels of one rank share ---------------------===//
//
// While a plan is decoded, calls say what they will need; then the backend
// allocates all of it at once, and bodies find it here.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_CONTEXT_H
#define GTP_RUNTIME_CUDA_CONTEXT_H

#include "Launch.h"
#include "gtp/Support/Status.h"

#include <algorithm>
#include <cublasLt.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gtp::rt::cuda {

class Gemm;
class Cudnn;

class Context {
public:
  Context() = default;
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  /// Makes the handle and the host's copy of the fault.
  Status create();
  /// Makes streams for the plan's stream numbers, higher priority first.
  Status createStreams(const std::vector<std::pair<uint32_t, int32_t>> &wanted);

  /// Every stream that runs kernels gets at least that much.
  void needWorkspace(uint64_t bytes) {
    mostWorkspace = std::max(mostWorkspace, bytes);
  }
  uint64_t workspaceBytes() const { return mostWorkspace; }
  void setWorkspace(uint32_t stream, void *memory) {
    workspaces[stream] = memory;
  }
  void *workspace(uint32_t stream) const { return workspaces[stream]; }

  /// Numbers that kernels read, uploaded once; `key` tells equal ones.
  /// Returns their number.
  size_t addConstant(const void *key, uint64_t variant,
                     std::vector<float> values);
  bool findConstant(const void *key, uint64_t variant, size_t &number) const;
  uint64_t constantBytes() const;
  Status uploadConstants(std::byte *memory);
  const float *constant(size_t number) const { return addresses[number]; }

  cudaStream_t stream(uint32_t number) const { return streams[number]; }
  /// By stream number; null for those that the plan does not use.
  const std::vector<cudaStream_t> &allStreams() const { return streams; }
  cublasLtHandle_t blas() const { return handle; }
  /// Loaded by the first kernel that asks.
  StatusOr<Cudnn *> cudnn();
  /// Clears the Fault at `memory`, where kernels write it from now on; before,
  /// `fault()` is null.
  Status setFault(void *memory);
  Fault *fault() const { return deviceFault; }
  /// Brings the fault to the host, behind what the stream has; may be captured.
  Status fetchFault(cudaStream_t to) const;
  /// What `fetchFault` brought last.
  const Fault &fetchedFault() const { return *hostFault; }

  /// Of all calls, by the text of their shapes.
  std::map<std::string, std::shared_ptr<Gemm>> products;
  /// One of the ways in which the plan's attention, or its gradient, is
  /// computed.
  void noteAttention(bool gradient, const std::string &how) {
    attentionWays[gradient].insert(how);
  }
  /// All of them: "cuDNN 9.19.1; gradient cuDNN 9.19.1, deterministic". Empty
  /// without attention.
  std::string attentionText() const;

private:
  cublasLtHandle_t handle = nullptr;
  Fault *deviceFault = nullptr, *hostFault = nullptr;
  std::shared_ptr<Cudnn> cudnnLibrary;
  std::set<std::string> attentionWays[2];
  std::vector<cudaStream_t> streams;
  std::vector<void *> workspaces;
  uint64_t mostWorkspace = 0;
  std::map<std::pair<const void *, uint64_t>, size_t> numbers;
  std::vector<std::vector<float>> constants;
  std::vector<const float *> addresses;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_CONTEXT_H
