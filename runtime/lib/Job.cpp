//===- Job.cpp - The processes that run a plan's ranks together -----------===//

#include "Job.h"

#include <map>

using namespace gtp;
using namespace gtp::rt;

/// Whether the plan runs on GPUs; fails where it cannot and was asked to.
static StatusOr<bool> choosesGpu(const RunOptions &options,
                                 const GpuSupport *gpus) {
  using Choice = RunOptions::BackendChoice;
  // Delays are the host's.
  if (options.backend == Choice::Host || options.hostJitter)
    return false;
  const bool asked = options.backend == Choice::Cuda;
  if (asked && !gpus)
    return Status::error(
        "--backend=cuda: this gtp-run was built without CUDA; build it with "
        "-DGTP_ENABLE_CUDA=ON, or run the plan on CPU threads with "
        "--backend=host");
  int count = gpus ? gpus->count() : 0;
  if (asked && count == 0)
    return Status::error("--backend=cuda: this process sees no GPU; "
                         "--backend=host runs the plan on CPU threads");
  return count > 0;
}

StatusOr<Role> gtp::rt::chooseRole(const RunOptions &options, uint64_t ranks,
                                   const GpuSupport *gpus,
                                   const Environment &environment) {
  Role role;
  GTP_ASSIGN_OR_RETURN(role.place, jobPlace(environment));
  GTP_ASSIGN_OR_RETURN(bool onGpu, choosesGpu(options, gpus));
  if (role.place && !onGpu)
    return Status::error(
        "the environment makes this process rank " +
        std::to_string(role.place->rank) + " of " +
        std::to_string(role.place->size) +
        ", and a process a rank needs GPUs, which this run has not; start "
        "gtp-run once, without a launcher, and the host backend runs all ranks "
        "in it");
  if (!onGpu)
    return role;
  role.kind = Role::OneRank;
  auto count = static_cast<uint64_t>(gpus->count());
  if (role.place) {
    if (role.place->size != ranks)
      return Status::error("the plan has " + std::to_string(ranks) +
                           " ranks and the job " +
                           std::to_string(role.place->size) +
                           " processes; start one for each rank");
    if (count == 1)
      return role;
    if (role.place->localRank >= count)
      return Status::error(
          "rank " + std::to_string(role.place->rank) + " is process " +
          std::to_string(role.place->localRank) +
          " of its machine, counted from 0, and sees " + std::to_string(count) +
          " GPUs; start at most one a GPU");
    role.device = static_cast<int>(role.place->localRank);
    return role;
  }
  if (ranks == 1)
    return role;
  if (ranks > count)
    return Status::error(
        "the plan has " + std::to_string(ranks) +
        " ranks and this process sees " + std::to_string(count) +
        (count == 1 ? " GPU" : " GPUs") +
        "; start it with torchrun, mpirun or srun on as many machines as it "
        "takes, or run it on CPU threads with --backend=host");
  role.kind = Role::Launcher;
  return role;
}

Status gtp::rt::agree(ControlChannel &channel, const std::string &planHash,
                      const std::string &commandLine, const std::string &gpu) {
  const std::pair<const char *, const std::string *> facts[] = {
      {"plan", &planHash},
      {"command line", &commandLine},
      {"GPU or libraries", &gpu}};
  for (auto [what, mine] : facts) {
    GTP_ASSIGN_OR_RETURN(std::vector<std::string> all, channel.exchange(*mine));
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        return Status::error("rank " + std::to_string(rank) + " has another " +
                             what + " than rank 0: '" + all[rank] + "' and '" +
                             all[0] + "'; all ranks must have the same");
  }
  return Status::ok();
}

Status gtp::rt::checkOwnGpus(ControlChannel &channel, const std::string &gpu) {
  GTP_ASSIGN_OR_RETURN(std::vector<std::string> all, channel.exchange(gpu));
  std::map<std::string, size_t> owners;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    auto [owner, isFirst] = owners.emplace(all[rank], rank);
    if (!isFirst)
      return Status::error(
          "rank " + std::to_string(rank) + " has the GPU of rank " +
          std::to_string(owner->second) + ", " + all[rank] +
          "; start at most one a GPU, and let the processes of a machine see "
          "all of its GPUs (CUDA_VISIBLE_DEVICES), or each one of its own");
  }
  return Status::ok();
}
