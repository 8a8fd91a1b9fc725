//===- HostBackend.h - What tests ask of the host backend -----------------===//

#ifndef GTP_RT_HOSTBACKEND_H
#define GTP_RT_HOSTBACKEND_H

#include "gtp-rt/Backend.h"

namespace gtp::rt {

/// An operation of a rank, as it runs.
struct HostPosition {
  uint64_t rank = 0;
  uint32_t program = 0;
  uint32_t region = 0;
  uint64_t iteration = 0;
  uint32_t operation = 0; ///< in the plan's region
};

struct HostHooks {
  /// Called by the rank's worker before an operation runs; an error fails the
  /// rank there.
  std::function<Status(const HostPosition &)> beforeOperation;
};

/// As `createHostBackend` of Backend.h.
StatusOr<std::unique_ptr<Backend>>
createHostBackend(const plan::pb::Plan &plan, const BackendOptions &options,
                  HostHooks hooks);

} // namespace gtp::rt

#endif // GTP_RT_HOSTBACKEND_H
