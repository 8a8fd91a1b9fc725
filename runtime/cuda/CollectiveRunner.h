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
  /// Whether the collective first puts what the rank has itself in its place,
  /// which another stream may do while the transfers before it run.
  virtual bool copiesOwnShard(const Operation &operation) const = 0;
  /// Puts the operation on the stream, and the copy of the own shard on
  /// `beside` if there is one; may be captured.
  virtual Status run(const Operation &operation, const Argument *arguments,
                     cudaStream_t stream, cudaStream_t beside) = 0;
  /// An error that came up while collectives ran, if any.
  virtual Status health() = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H
