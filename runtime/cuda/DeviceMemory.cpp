//===- DeviceMemory.cpp - The one allocation of a rank --------------------===//

#include "DeviceMemory.h"

#include "Driver.h"

using namespace gtp;
using namespace gtp::rt::cuda;

namespace {

/// The driver's functions, found at run time: gtp-run must start where there is
/// no driver.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) release = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) destroy = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) setAccess = nullptr;
  decltype(&cuGetErrorString) errorString = nullptr;
  decltype(&cuDeviceGet) deviceOf = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;

  Status load();
  Status check(CUresult result, const char *what) const {
    if (result == CUDA_SUCCESS)
      return Status::ok();
    const char *text = nullptr;
    errorString(result, &text);
    return Status::error(std::string(what) +
                         " failed: " + (text ? text : "unknown error"));
  }
};

class MappedMemory : public DeviceMemory {
public:
  ~MappedMemory() override;
  Status map(int device, uint64_t bytes);

private:
  Driver driver;
  CUmemGenericAllocationHandle handle = 0;
  bool created = false, mapped = false;
};

} // namespace

Status Driver::load() {
  GTP_RETURN_IF_ERROR(
      findInDriver("cuMemGetAllocationGranularity", granularity));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemAddressReserve", reserve));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemAddressFree", release));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemCreate", create));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemRelease", destroy));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemMap", map));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemUnmap", unmap));
  GTP_RETURN_IF_ERROR(findInDriver("cuMemSetAccess", setAccess));
  GTP_RETURN_IF_ERROR(findInDriver("cuDeviceGet", deviceOf));
  GTP_RETURN_IF_ERROR(findInDriver("cuDeviceGetAttribute", attribute));
  return findInDriver("cuGetErrorString", errorString);
}

Status MappedMemory::map(int device, uint64_t bytes) {
  GTP_RETURN_IF_ERROR(driver.load());
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  // A network card of a job on several machines reads and writes it directly.
  CUdevice ofDriver = 0;
  int direct = 0;
  GTP_RETURN_IF_ERROR(
      driver.check(driver.deviceOf(&ofDriver, device), "finding the GPU"));
  GTP_RETURN_IF_ERROR(driver.check(
      driver.attribute(
          &direct, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
          ofDriver),
      "asking whether network cards reach device memory"));
  properties.allocFlags.gpuDirectRDMACapable = direct != 0;
  size_t granule = 0;
  GTP_RETURN_IF_ERROR(
      driver.check(driver.granularity(&granule, &properties,
                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "asking for the granularity of device memory"));
  length = (bytes + granule - 1) / granule * granule;
  size_t free = 0, total = 0;
  GTP_CUDA(cudaMemGetInfo(&free, &total));
  if (length > free)
    return Status::error(
        "the plan needs " + std::to_string(length) +
        " bytes of GPU memory, and the GPU has " + std::to_string(free) +
        " of its " + std::to_string(total) +
        " free; end what else runs on it, or compile with a --memory-budget");
  CUdeviceptr address = 0;
  GTP_RETURN_IF_ERROR(
      driver.check(driver.reserve(&address, length, granule, 0, 0),
                   "reserving addresses of device memory"));
  start = reinterpret_cast<std::byte *>(address);
  GTP_RETURN_IF_ERROR(
      driver.check(driver.create(&handle, length, &properties, 0),
                   "allocating device memory"));
  created = true;
  GTP_RETURN_IF_ERROR(driver.check(driver.map(address, length, 0, handle, 0),
                                   "mapping device memory"));
  mapped = true;
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver.check(driver.setAccess(address, length, &access, 1),
                      "making device memory accessible");
}

MappedMemory::~MappedMemory() {
  auto address = reinterpret_cast<CUdeviceptr>(start);
  if (mapped)
    driver.unmap(address, length);
  if (created)
    driver.destroy(handle);
  if (start)
    driver.release(address, length);
}

StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::allocate(int device,
                                                               uint64_t bytes) {
  auto memory = std::make_unique<MappedMemory>();
  GTP_RETURN_IF_ERROR(memory->map(device, bytes));
  return std::unique_ptr<DeviceMemory>(std::move(memory));
}
