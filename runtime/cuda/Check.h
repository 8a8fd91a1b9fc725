//===- Check.h - Errors of CUDA calls as sentences ------------------------===//

#ifndef GTP_RUNTIME_CUDA_CHECK_H
#define GTP_RUNTIME_CUDA_CHECK_H

#include "gtp/Support/Status.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace gtp::rt::cuda {

/// "cudaMalloc(...) failed: out of memory (cudaErrorMemoryAllocation)".
Status check(cudaError_t error, const char *call);
Status check(cublasStatus_t status, const char *call);

} // namespace gtp::rt::cuda

/// Returns from the enclosing function unless the call succeeded.
#define GTP_CUDA(call)                                                         \
  GTP_RETURN_IF_ERROR(::gtp::rt::cuda::check((call), #call))

#endif // GTP_RUNTIME_CUDA_CHECK_H
