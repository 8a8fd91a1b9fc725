//===- CollectiveRunner.h - What runs the collectives of a rank -----------===//

#ifndef GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H
#define GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H

#include "Program.h"

#include <cuda_runtime_api.h>

namespace gtp::rt::cuda {

class CollectiveRunner {
public:
  virtual ~CollectiveRunner() = default;
  /// Device memory that the runner needs, before the first `run`.
  virtual uint64_t stagingBytes() const = 0;
  virtual void setStaging(std::byte *memory) = 0;
  /// Puts the operation on the stream; may be captured.
  virtual Status run(const Operation &operation, const Argument *arguments,
                     cudaStream_t stream) = 0;
  /// An error that came up while collectives ran, if any.
  virtual Status health() = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_COLLECTIVERUNNER_H
