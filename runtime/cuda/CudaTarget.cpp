//===- CudaTarget.cpp - What CUDA makes of a plan's operations ------------===//

#include "CudaTarget.h"

#include "Factory.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

Status CudaTarget::checkMemory(uint64_t, uint64_t) {
  // Allocation says it, with what the kernels need besides.
  return Status::ok();
}

StatusOr<KernelBody> CudaTarget::kernel(const CallSite &site) {
  Factory factory = lookupFactory(site.name());
  if (!factory)
    return Status::error("the cuda backend has no implementation of it; "
                         "--backend=host runs it");
  return factory(Site(site, context));
}

KernelBody CudaTarget::copy(const Shape &from, const Shape &to) {
  return [from, to, context = &context](const KernelCall &call) {
    const uint64_t size = from.elementBytes;
    if (call.as<std::byte>(0) == call.as<std::byte>(1))
      return Status::ok();
    GTP_CUDA(cudaMemcpy2DAsync(
        call.as<std::byte>(1), to.pitch * size, call.as<std::byte>(0),
        from.pitch * size, from.columns * size, from.rows,
        cudaMemcpyDeviceToDevice, context->stream(call.stream)));
    return Status::ok();
  };
}

KernelBody CudaTarget::fill(uint64_t bytes, uint8_t value) {
  return [bytes, value, context = &context](const KernelCall &call) {
    GTP_CUDA(cudaMemsetAsync(call.as<std::byte>(0), value, bytes,
                             context->stream(call.stream)));
    return Status::ok();
  };
}
