//===- DeviceMemory.h - The one allocation of a rank ----------------------===//

#ifndef GTP_RUNTIME_CUDA_DEVICEMEMORY_H
#define GTP_RUNTIME_CUDA_DEVICEMEMORY_H

#include "gtp/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gtp::rt::cuda {

/// Device memory through the driver's virtual memory interface, which NCCL can
/// register as a window, and network cards read where the GPU has that; a
/// multiple of 2 MiB, at an address aligned to that.
class DeviceMemory {
public:
  virtual ~DeviceMemory() = default;
  /// Fails when the device has not that much free; says how much it has.
  static StatusOr<std::unique_ptr<DeviceMemory>> allocate(int device,
                                                          uint64_t bytes);
  std::byte *base() const { return start; }
  uint64_t size() const { return length; }

protected:
  std::byte *start = nullptr;
  uint64_t length = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_DEVICEMEMORY_H
