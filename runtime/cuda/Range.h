//===- Range.h - A named range for NVIDIA's tools -------------------------===//

#ifndef GTP_RUNTIME_CUDA_RANGE_H
#define GTP_RUNTIME_CUDA_RANGE_H

#include <nvtx3/nvToolsExt.h>
#include <string>

namespace gtp::rt::cuda {

/// From here to the end of the scope, on this thread.
class Range {
public:
  explicit Range(const std::string &name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_RANGE_H
