//===- Driver.h - The driver's functions, found at run time ---------------===//

#ifndef GTP_RUNTIME_CUDA_DRIVER_H
#define GTP_RUNTIME_CUDA_DRIVER_H

#include "Check.h"

#include <cuda.h>

namespace gtp::rt::cuda {

/// Finds a function of the driver's: gtp-run must start where there is none.
/// `function` has the type of the version of CUDA that `version` names.
template <typename Function>
Status findInDriver(const char *name, Function &function,
                    unsigned version = 12000) {
  void *address = nullptr;
  cudaDriverEntryPointQueryResult found;
  GTP_CUDA(cudaGetDriverEntryPointByVersion(name, &address, version,
                                            cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess)
    return Status::error(std::string("the GPU's driver has no ") + name +
                         "; a driver for CUDA 13 (580 or later) is needed");
  function = reinterpret_cast<Function>(address);
  return Status::ok();
}

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_DRIVER_H
