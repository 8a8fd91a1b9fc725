//===- CudaBackend.h - A rank of a plan on a GPU --------------------------===//

#ifndef GTP_RT_CUDABACKEND_H
#define GTP_RT_CUDABACKEND_H

#include "gtp-rt/Backend.h"

#include <functional>
#include <string>
#include <vector>

namespace gtp::rt {

/// Which rank a process is, and where.
struct CudaPlace {
  uint64_t rank = 0;
  int device = 0; ///< of those that the process sees
  /// Every rank's text, by rank; needed for a plan with collectives, whose
  /// ranks are processes that set up together.
  std::function<StatusOr<std::vector<std::string>>(const std::string &)>
      exchange;
  /// Fails when another rank has; looked at while a step runs. May be empty.
  std::function<Status()> jobHealth;
};

/// GPUs that this process sees; 0 where there is no driver.
int countGpus();
/// "NVIDIA H200, driver for CUDA 13.0, cuBLASLt 13.1.0, NCCL 2.28.9, cuDNN
/// 9.19.1": what must be equal on all ranks for them to compute the same.
StatusOr<std::string> describeGpu(int device);
/// "0000:1b:00.0 with UUID 1c8bd5f0-...": where it is on its machine, and what
/// no other GPU has.
StatusOr<std::string> identifyGpu(int device);

/// One rank on one GPU (see docs/architecture.md). Fails when the plan
/// needs a type, kernel or collective that it does not run, and when the GPU
/// has not enough memory.
StatusOr<std::unique_ptr<Backend>>
createCudaBackend(const plan::pb::Plan &plan, const BackendOptions &options,
                  const CudaPlace &place);

} // namespace gtp::rt

#endif // GTP_RT_CUDABACKEND_H
