//===- Progress.h - How far a stream has come, for the host to read -------===//

#ifndef GTP_RUNTIME_CUDA_PROGRESS_H
#define GTP_RUNTIME_CUDA_PROGRESS_H

#include <cstdint>
#include <cuda_runtime_api.h>

namespace gtp::rt::cuda {

/// Writes `value` to `word`, which is host memory that the device can write,
/// when the stream gets there.
cudaError_t mark(uint32_t *word, uint32_t value, cudaStream_t stream);

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_PROGRESS_H
