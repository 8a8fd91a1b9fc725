//===- CudaTarget.h - What CUDA makes of a plan's operations --------------===//

#ifndef GTP_RUNTIME_CUDA_CUDATARGET_H
#define GTP_RUNTIME_CUDA_CUDATARGET_H

#include "Context.h"
#include "Program.h"

namespace gtp::rt::cuda {

class CudaTarget : public Target {
public:
  explicit CudaTarget(Context &context) : context(context) {}

  const char *name() const override { return "the cuda backend"; }
  Status checkMemory(uint64_t ranks, uint64_t bytes) override;
  StatusOr<KernelBody> kernel(const CallSite &site) override;
  KernelBody copy(const Shape &from, const Shape &to) override;
  KernelBody fill(uint64_t bytes, uint8_t value) override;

private:
  Context &context;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_CUDATARGET_H
