//===- HostTarget.h - What the host makes of a plan's operations ----------===//

#ifndef GTP_RUNTIME_HOST_HOSTTARGET_H
#define GTP_RUNTIME_HOST_HOSTTARGET_H

#include "Kernel.h"
#include "Program.h"

namespace gtp::rt::host {

class HostTarget : public Target {
public:
  const char *name() const override { return "the host backend"; }
  Status checkMemory(uint64_t ranks, uint64_t bytes) override;
  StatusOr<KernelBody> kernel(const CallSite &site) override;
  KernelBody copy(const Shape &from, const Shape &to) override;
  KernelBody fill(uint64_t bytes, uint8_t value) override;

private:
  KernelTables tables;
};

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_HOSTTARGET_H
