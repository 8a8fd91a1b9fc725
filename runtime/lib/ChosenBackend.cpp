//===- ChosenBackend.cpp - The backend that a run takes -------------------===//

#include "ChosenBackend.h"

#include <cstdlib>

using namespace gtp;
using namespace gtp::rt;

StatusOr<std::shared_ptr<TuningCache>>
gtp::rt::openTuningCache(const RunOptions &options, bool writes) {
  if (options.tuningCache == "off")
    return std::shared_ptr<TuningCache>();
  if (!writes)
    return std::make_shared<TuningCache>();
  std::string path = options.tuningCache;
  if (path.empty()) {
    GTP_ASSIGN_OR_RETURN(path, defaultTuningCache(std::getenv));
  }
  auto cache = TuningCache::open(path);
  if (!cache.isOk())
    return Status::error(cache.message() +
                         "; remove the file, or run with --tuning-cache=off")
        .in(path);
  return std::make_shared<TuningCache>(std::move(*cache));
}

StatusOr<ChosenBackend> gtp::rt::createBackend(
    Console &console, const RunOptions &options, const plan::pb::Plan &plan,
    const Role &role, const BackendFactory &createHost, const GpuSupport *gpus,
    const std::shared_ptr<TuningCache> &cache, ControlChannel *channel) {
  BackendOptions backendOptions;
  backendOptions.hostJitter = options.hostJitter;
  backendOptions.eager = options.eager;
  backendOptions.withoutCollectivesAfter = options.withoutCollectivesAfter;
  ChosenBackend chosen;
  if (role.kind == Role::AllRanks) {
    if (options.withoutCollectivesAfter)
      return Status::error("--without-collectives=" +
                           std::to_string(*options.withoutCollectivesAfter) +
                           ": times kernels on GPUs, and this run has none");
    if (!options.tuningCache.empty())
      return Status::error("--tuning-cache=" + options.tuningCache +
                           ": is of matrix products on GPUs, and this run has "
                           "none; leave it out");
    GTP_ASSIGN_OR_RETURN(chosen.backend, createHost(plan, backendOptions));
    chosen.where = "as threads of the host backend";
    chosen.isHost = true;
    return chosen;
  }
  backendOptions.tuningCache = cache;
  backendOptions.onProgress = [&](const std::string &text) {
    console.status(text);
  };
  CudaPlace place;
  place.device = role.device;
  if (channel) {
    place.rank = role.place->rank;
    place.exchange = [channel](const std::string &text) {
      return channel->exchange(text);
    };
    place.jobHealth = [channel] { return channel->health(); };
    chosen.where = "as processes, each ";
  }
  GTP_ASSIGN_OR_RETURN(std::string gpu, gpus->describe(place.device));
  chosen.where += "on " + gpu;
  const size_t known = cache ? cache->size() : 0;
  GTP_ASSIGN_OR_RETURN(chosen.backend,
                       gpus->create(plan, backendOptions, place));
  chosen.tuning = "off";
  if (cache)
    chosen.tuning = cache->path() + ": " + std::to_string(cache->size()) +
                    " matrix products, " +
                    std::to_string(cache->size() - known) +
                    " of them measured now";
  return chosen;
}
