//===- CudaTarget.cpp - What CUDA makes of a plan's operations ------------===//

#include "CudaTarget.h"

#include "Factory.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;
namespace pb = gtp::plan::pb;

static Status needsFloat32(const std::string &what) {
  return Status::error("the cuda backend runs float32 plans; this plan " +
                       what +
                       " bf16: compile with --dtype=f32 and without bf16 in "
                       "--grad-dtype, --reduce-dtype and --state-dtype, or "
                       "run with --backend=host");
}

Status CudaTarget::checkHeader(const pb::Plan &plan) {
  if (plan.numerics().compute() == pb::BF16)
    return needsFloat32("computes in");
  return Status::ok();
}

Status CudaTarget::checkMemory(uint64_t, uint64_t) {
  // Allocation says it, with what the kernels need besides.
  return Status::ok();
}

Status CudaTarget::checkType(pb::DType type) {
  return type == pb::BF16 ? needsFloat32("has operands or reductions in")
                          : Status::ok();
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
