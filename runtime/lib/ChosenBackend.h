//===- ChosenBackend.h - The backend that a run takes ---------------------===//

#ifndef GTP_RT_LIB_CHOSENBACKEND_H
#define GTP_RT_LIB_CHOSENBACKEND_H

#include "Job.h"
#include "gtp-rt/Console.h"
#include "gtp-rt/Options.h"
#include "gtp-rt/RunTool.h"
#include "gtp-rt/TuningCache.h"

#include <memory>
#include <string>

namespace gtp::rt {

/// The tuning cache that the options name, or null without one. Only the
/// process that writes reads it: the others get what that one has.
StatusOr<std::shared_ptr<TuningCache>>
openTuningCache(const RunOptions &options, bool writes);

/// The backend, and what the summary says of where the ranks are.
struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  std::string where;
  std::string tuning; ///< empty on the host
  bool isHost = false;
};

/// Makes the backend of what `role` has this process do. `gpus` and `cache` are
/// not used on the host; `channel` is null but in a job.
StatusOr<ChosenBackend> createBackend(
    Console &console, const RunOptions &options, const plan::pb::Plan &plan,
    const Role &role, const BackendFactory &createHost, const GpuSupport *gpus,
    const std::shared_ptr<TuningCache> &cache, ControlChannel *channel);

} // namespace gtp::rt

#endif // GTP_RT_LIB_CHOSENBACKEND_H
