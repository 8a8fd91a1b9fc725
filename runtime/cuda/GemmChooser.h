//===- GemmChooser.h - Gives every product its algorithm ------------------===//

#ifndef GTP_RUNTIME_CUDA_GEMMCHOOSER_H
#define GTP_RUNTIME_CUDA_GEMMCHOOSER_H

#include "Gemm.h"
#include "gtp-rt/CudaBackend.h"

namespace gtp::rt::cuda {

/// Gives every product of the context its algorithm, the same on all ranks:
/// those of rank 0's `options.tuningCache`; what it lacks, the ranks share out
/// and measure, and rank 0 saves. Without a cache all take the library's first
/// choice. All ranks must call it. Fails when the cache names an algorithm that
/// the library does not take, when a measurement fails, and when ranks end with
/// different algorithms.
Status chooseAlgorithms(Context &context, const BackendOptions &options,
                        const CudaPlace &place);

/// Saves a cache of a file, if it has grown since it had `before` entries.
Status saveMeasured(const TuningCache &cache, size_t before);

/// Where this process's measurements hold.
StatusOr<TuningPlatform> tuningPlatform(int device);

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_GEMMCHOOSER_H
