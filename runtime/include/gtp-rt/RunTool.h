//===- RunTool.h - gtp-run, but for main ----------------------------------===//

#ifndef GTP_RT_RUNTOOL_H
#define GTP_RT_RUNTOOL_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/CudaBackend.h"

#include <functional>
#include <memory>

namespace gtp::rt {

/// Makes a backend for a plan: `createHostBackend`, or a test's own.
using BackendFactory = std::function<StatusOr<std::unique_ptr<Backend>>(
    const plan::pb::Plan &, const BackendOptions &)>;

/// The GPUs that a build can use.
struct GpuSupport {
  std::function<int()> count; ///< GPUs that this process sees
  /// What must be equal on all ranks for them to compute the same.
  std::function<StatusOr<std::string>(int device)> describe;
  /// Makes the backend of a rank: `createCudaBackend`.
  std::function<StatusOr<std::unique_ptr<Backend>>(
      const plan::pb::Plan &, const BackendOptions &, const CudaPlace &)>
      create;
};

/// Runs the command line and returns the exit code. Every input is checked
/// before the first step, and outputs appear whole at the end.
/// `gpus` is null in a build without CUDA.
int runTool(int argc, const char *const *argv, const BackendFactory &createHost,
            const GpuSupport *gpus = nullptr);

} // namespace gtp::rt

#endif // GTP_RT_RUNTOOL_H
