//===- Progress.cu - How far a stream has come, for the host to read ------===//

#include "Progress.h"

static __global__ void markKernel(volatile uint32_t *word, uint32_t value) {
  *word = value;
}

cudaError_t gtp::rt::cuda::mark(uint32_t *word, uint32_t value,
                                cudaStream_t stream) {
  markKernel<<<1, 1, 0, stream>>>(word, value);
  return cudaGetLastError();
}
