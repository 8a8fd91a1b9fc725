//===- CollectiveRunner.h - What runs the collectives of a rank -----------===//

#ifndef GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H
#define GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H

#include "Program.h"

#include <cuda_runtime_api.h>

namespace gtp::rt::cuda {

class CollectiveRunner {
public:
  virtual ~CollectiveRunner() = default;
  /// Device memory that collectives need which no backend was chosen for,
  /// before the first `run`: others have scratch in the plan.
  virtual uint64_t stagingBytes() const = 0;
  virtual void setStaging(std::byte *memory) = 0;
  /// Says where the arena is; all ranks must call it. Makes windows of it, and
  /// fails where a transport of the plan cannot be had, and says why.
  virtual Status setArena(std::byte *arena, uint64_t bytes) = 0;
  /// Puts the operation on the stream; may be captured.
  virtual Status run(const Operation &operation, const Argument *arguments,
                     cudaStream_t stream) = 0;
  /// An error that came up while collectives ran, if any.
  virtual Status health() = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H
