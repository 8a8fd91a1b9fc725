//===- RunTool.h - gtp-run, but for main ----------------------------------===//

#ifndef GTP_RT_RUNTOOL_H
#define GTP_RT_RUNTOOL_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/CudaBackend.h"

#include <functional>
#include <memory>
#include <string>

namespace gtp::rt {

/// Makes a backend for a plan: `createHostBackend`, or a test's own.
using BackendFactory = std::function<StatusOr<std::unique_ptr<Backend>>(
    const plan::pb::Plan &, const BackendOptions &)>;

/// The GPUs that a build can use.
struct GpuSupport {
  std::function<int()> count; ///< GPUs that this process sees
  /// What must be equal on all ranks for them to compute the same.
  std::function<StatusOr<std::string>(int device)> describe;
  /// A text that no other GPU has, on any machine.
  std::function<StatusOr<std::string>(int device)> identify;
  /// Makes the backend of a rank: `createCudaBackend`.
  std::function<StatusOr<std::unique_ptr<Backend>>(
      const plan::pb::Plan &, const BackendOptions &, const CudaPlace &)>
      create;
};

/// A plan that the program builds, where gtp-run reads a file.
struct BuiltPlan {
  const plan::pb::Plan *plan; ///< sealed
  /// What its hash has to be, as `gtp-opt --emit=plan-text` prints it; empty:
  /// anything.
  std::string hash;
};

/// Runs the command line and returns the exit code. Every input is checked
/// before the first step, and outputs appear whole at the end.
/// `gpus` is null in a build without CUDA, `built` where the plan is a file.
int runTool(int argc, const char *const *argv, const BackendFactory &createHost,
            const GpuSupport *gpus = nullptr, const BuiltPlan *built = nullptr);

} // namespace gtp::rt

#endif // GTP_RT_RUNTOOL_H
