//===- Job.h - The processes that run a plan's ranks together -------------===//

#ifndef GTP_RT_LIB_JOB_H
#define GTP_RT_LIB_JOB_H

#include "gtp-rt/ControlChannel.h"
#include "gtp-rt/Options.h"
#include "gtp-rt/RunTool.h"

#include <optional>
#include <string>

namespace gtp::rt {

/// How this process runs its plan.
struct Role {
  enum Kind {
    AllRanks, ///< on the host, all in this process
    OneRank,  ///< on a GPU: the only rank, or one of a job
    Launcher, ///< starts a process a rank and waits
  };
  Kind kind = AllRanks;
  std::optional<JobPlace> place; ///< in a job
  int device = 0; ///< the GPU of OneRank, of those that this process sees

  /// Whether this process writes what is written once.
  bool writes() const { return !place || place->rank == 0; }
};

/// What the options, the environment and this machine's GPUs make of it. A rank
/// of a job takes the GPU of its number on the machine, or the only one that it
/// sees: that is its own where the launcher hides the others, which
/// `checkOwnGpus` shows. Fails where the plan's ranks and the GPUs do not fit;
/// `gpus` is null in a build without.
StatusOr<Role> chooseRole(const RunOptions &options, uint64_t ranks,
                          const GpuSupport *gpus,
                          const Environment &environment);

/// Compares what must be equal on all ranks: the plan, the command line but
/// for the plan's path, version, libraries and GPU. Fails on every rank, naming
/// the first that differs and in what.
Status agree(ControlChannel &channel, const std::string &planHash,
             const std::string &commandLine, const std::string &gpu);

/// Compares the GPUs of all ranks, each as `GpuSupport::identify` names it.
/// Fails on every rank where two have one, naming both and it.
Status checkOwnGpus(ControlChannel &channel, const std::string &gpu);

} // namespace gtp::rt

#endif // GTP_RT_LIB_JOB_H
