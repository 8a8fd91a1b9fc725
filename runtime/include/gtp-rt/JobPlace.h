//===- JobPlace.h - Which process of a job this is ------------------------===//
//
// A job is a process a rank. Launchers say in the environment which rank a
// process is: torchrun's variables, else those of Open MPI, Hydra or
// Slurm.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_JOBPLACE_H
#define GTP_RT_JOBPLACE_H

#include "gtp/Support/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace gtp::rt {

struct JobPlace {
  uint64_t rank = 0;
  uint64_t size = 1;
  uint64_t localRank = 0; ///< among the processes of this machine
  std::string address;    ///< of rank 0's machine
  uint16_t port = 0;
};

/// An environment variable's value; null where it is not set.
using Environment = std::function<const char *(const char *)>;

/// The place that the environment gives; none when no launcher has set one, or
/// one for a job of one process. Fails when a part of it is missing or wrong,
/// and names it.
StatusOr<std::optional<JobPlace>> jobPlace(const Environment &environment);

/// Starts this program again, once a rank with torchrun's variables, on this
/// machine, and waits for all. When one fails the others get `graceSeconds` to
/// end by themselves; then they are killed. SIGTERM is passed on. Fails naming
/// the first rank that did.
Status launchRanks(uint64_t ranks, const char *const *argv,
                   double graceSeconds = 15);

} // namespace gtp::rt

#endif // GTP_RT_JOBPLACE_H
