//===- JobPlace.cpp - Which process of a job this is ----------------------===//

#include "gtp-rt/JobPlace.h"
#include "ParseNumber.h"

using namespace gtp;
using namespace gtp::rt;

namespace {

/// What one launcher calls the numbers.
struct Names {
  const char *launcher, *rank, *size, *localRank;
  /// The job is on one machine where it is `size`, or 1 where it counts
  /// machines.
  const char *localSize;
  bool countsMachines;
  /// Without it, `rank` may be another launcher's.
  const char *mark;
};

} // namespace

static constexpr uint16_t kDefaultPort = 29500;

static Status readNumber(const Environment &environment, const Names &names,
                         const char *name, uint64_t &value) {
  const char *text = environment(name);
  if (!text)
    return Status::error(std::string(names.rank) + " is set, as " +
                         names.launcher + " does, but " + name +
                         " is not; set all of them or none");
  if (!parseWhole(std::string_view(text), value))
    return Status::error(std::string(name) + "=" + text +
                         ": expected an integer, 0 or more");
  return Status::ok();
}

static Status readAddress(const Environment &environment, const Names &names,
                          JobPlace &place) {
  const char *address = environment("MASTER_ADDR");
  uint64_t localSize = 0;
  const char *local = environment(names.localSize);
  bool oneMachine = local && parseWhole(std::string_view(local), localSize) &&
                    localSize == (names.countsMachines ? 1 : place.size);
  if (!address && !oneMachine)
    return Status::error("MASTER_ADDR is not set; it must name the machine of "
                         "rank 0, which the other ranks connect to");
  place.address = address ? address : "127.0.0.1";
  place.port = kDefaultPort;
  if (const char *port = environment("MASTER_PORT"))
    if (!parseWhole(std::string_view(port), place.port) || place.port == 0)
      return Status::error(std::string("MASTER_PORT=") + port +
                           ": expected a port, 1 to 65535");
  // torchrun's agent listens on its port itself, and says so.
  const char *agent = environment("TORCHELASTIC_USE_AGENT_STORE");
  if (agent && std::string_view(agent) == "True")
    place.port += place.port == 65535 ? -1 : 1;
  return Status::ok();
}

StatusOr<std::optional<JobPlace>>
gtp::rt::jobPlace(const Environment &environment) {
  // In this order: mpirun starts its daemons by srun where there is one, and
  // its processes see the variables of both; srun's PMI sets a PMI_RANK.
  constexpr Names all[] = {
      {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
       false, "RANK"},
      {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", false,
       "OMPI_COMM_WORLD_RANK"},
      {"Hydra's mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
       "MPI_LOCALNRANKS", false, "MPI_LOCALRANKID"},
      // A batch script of Slurm has a SLURM_PROCID too, and is no step.
      {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
       "SLURM_STEP_NUM_NODES", true, "SLURM_STEP_NUM_TASKS"},
  };
  for (const Names &names : all) {
    if (!environment(names.rank) || !environment(names.mark))
      continue;
    JobPlace place;
    GTP_RETURN_IF_ERROR(readNumber(environment, names, names.rank, place.rank));
    GTP_RETURN_IF_ERROR(readNumber(environment, names, names.size, place.size));
    if (place.size <= 1)
      return std::optional<JobPlace>();
    GTP_RETURN_IF_ERROR(
        readNumber(environment, names, names.localRank, place.localRank));
    if (place.rank >= place.size)
      return Status::error(std::string(names.rank) + "=" +
                           std::to_string(place.rank) + ": expected below " +
                           names.size + "=" + std::to_string(place.size));
    GTP_RETURN_IF_ERROR(readAddress(environment, names, place));
    return std::optional<JobPlace>(place);
  }
  return std::optional<JobPlace>();
}
