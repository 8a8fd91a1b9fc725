//===- HostTarget.cpp - What the host makes of a plan's operations --------===//

#include "HostTarget.h"
#include "Fused.h"
#include "Staging.h"

#include "gtp/Plan/Layout.h"

#include <cstring>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::host;

/// Every rank has a thread a stream.
static constexpr uint64_t kMaxHostRanks = 4096;

static uint64_t machineBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Status HostTarget::checkMemory(uint64_t ranks, uint64_t bytes) {
  if (ranks > kMaxHostRanks)
    return Status::error("the mesh has " + std::to_string(ranks) +
                         " ranks; the host backend runs up to " +
                         std::to_string(kMaxHostRanks) +
                         " as threads: compile for a smaller mesh");
  std::optional<uint64_t> total = plan::checkedMul(bytes, ranks);
  uint64_t machine = machineBytes();
  if (!total || *total > machine)
    return Status::error(
        std::to_string(ranks) + " ranks of " + std::to_string(bytes) +
        " bytes each do not fit this machine's memory of " +
        std::to_string(machine) +
        " bytes; compile for fewer ranks or with a --memory-budget");
  return Status::ok();
}

StatusOr<KernelBody> HostTarget::kernel(const CallSite &site) {
  if (site.kind().runsAsParts())
    return makeFusedBody(site, tables);
  const KernelEntry *entry = lookupEntry(site.name());
  if (!entry)
    return Status::error("the host has no implementation of it");
  return makeBody(site, *entry, tables);
}

KernelBody HostTarget::copy(const Shape &from, const Shape &to) {
  return [from, to](const KernelCall &call) {
    for (uint64_t row = 0; row < from.rows; ++row)
      std::memmove(call.as<std::byte>(1) + row * to.pitch * to.elementBytes,
                   call.as<std::byte>(0) + row * from.pitch * from.elementBytes,
                   from.columns * from.elementBytes);
    return Status::ok();
  };
}

KernelBody HostTarget::fill(uint64_t bytes, uint8_t value) {
  return [bytes, value](const KernelCall &call) {
    std::memset(call.as<std::byte>(0), value, bytes);
    return Status::ok();
  };
}
