//===- GemmChooser.cpp - Gives every product its algorithm ----------------===//

#include "GemmChooser.h"

#include "Check.h"
#include "GemmTimer.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

StatusOr<TuningPlatform> gtp::rt::cuda::tuningPlatform(int device) {
  cudaDeviceProp properties;
  GTP_CUDA(cudaGetDeviceProperties(&properties, device));
  const size_t version = cublasLtGetVersion();
  return TuningPlatform{"cuBLASLt " + std::to_string(version / 10000) + "." +
                            std::to_string(version / 100 % 100) + "." +
                            std::to_string(version % 100),
                        std::string(properties.name) + ", " +
                            std::to_string(properties.multiProcessorCount) +
                            " multiprocessors"};
}

static Status use(Gemm &gemm, const TunedProduct &tuned) {
  if (!tuned.algorithm) {
    gemm.use(gemm.candidates().front());
    return Status::ok();
  }
  auto choice = gemm.build(*tuned.algorithm);
  if (!choice.isOk())
    return Status::error("the tuning cache's algorithm for the product " +
                         gemm.shape().text() +
                         " is none that cuBLASLt takes: " + choice.message() +
                         "; remove the file, or run with --tuning-cache=off");
  gemm.use(*choice);
  return Status::ok();
}

static Status measure(const std::vector<Gemm *> &products,
                      const TuningPlatform &platform, TuningCache &cache,
                      const BackendOptions &options) {
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<GemmTimer> timer,
                       GemmTimer::create({products.begin(), products.end()}));
  for (size_t i = 0; i < products.size(); ++i) {
    const Gemm &gemm = *products[i];
    if (options.onProgress)
      options.onProgress("measuring matrix product " + std::to_string(i + 1) +
                         " of " + std::to_string(products.size()) + ": " +
                         gemm.shape().text());
    const std::vector<Gemm::Choice> &choices = gemm.candidates();
    GTP_ASSIGN_OR_RETURN(std::vector<double> ns, timer->measure(gemm, choices));
    size_t best = static_cast<size_t>(std::min_element(ns.begin(), ns.end()) -
                                      ns.begin());
    TunedProduct tuned;
    tuned.algorithm = choices[best].attributes;
    tuned.ns = static_cast<uint64_t>(ns[best]);
    tuned.firstNs = static_cast<uint64_t>(std::min(ns[0], 1e18));
    cache.add(platform, gemm.shape().text(), tuned);
  }
  return Status::ok();
}

/// Rank 0: measures what the cache lacks.
static Status complete(Context &context, const TuningPlatform &platform,
                       const BackendOptions &options) {
  TuningCache &cache = *options.tuningCache;
  std::vector<Gemm *> unknown;
  for (const auto &[text, gemm] : context.products)
    if (!cache.find(platform, text))
      unknown.push_back(gemm.get());
  if (unknown.empty())
    return Status::ok();
  GTP_RETURN_IF_ERROR(measure(unknown, platform, cache, options));
  if (cache.path().empty())
    return Status::ok();
  Status saved = cache.save();
  if (!saved.isOk())
    return Status::error(
        "the tuning cache cannot be saved: " + saved.message() +
        "; name another --tuning-cache=FILE, or off");
  return Status::ok();
}

/// Whether this process decides for all.
static bool decides(const CudaPlace &place) {
  return place.rank == 0 || !place.exchange;
}

/// What all ranks use of rank 0's cache.
static StatusOr<TuningCache> agree(const Context &context,
                                   const TuningPlatform &platform,
                                   const BackendOptions &options,
                                   const CudaPlace &place) {
  TuningCache used;
  if (decides(place))
    for (const auto &[text, gemm] : context.products)
      used.add(platform, text, *options.tuningCache->find(platform, text));
  if (!place.exchange)
    return used;
  GTP_ASSIGN_OR_RETURN(std::vector<std::string> all,
                       place.exchange(place.rank == 0 ? used.text() : ""));
  return TuningCache::parse(all[0]);
}

/// Every product with the attributes of the algorithm it now has.
static Status describe(const Context &context, std::vector<std::string> &all) {
  for (const auto &[text, gemm] : context.products) {
    GTP_ASSIGN_OR_RETURN(ProductAlgorithm attributes,
                         Gemm::attributes(gemm->choice().algorithm));
    std::string line = text;
    for (size_t i = 0; i < attributes.values.size(); ++i)
      line += std::string(i == 0 ? " by " : ", ") +
              ProductAlgorithm::names()[i] + " " +
              std::to_string(attributes.values[i]);
    all.push_back(line);
  }
  return Status::ok();
}

/// Fails where another rank has another algorithm than rank 0: what is
/// replicated would not be the same bits.
static Status compare(const Context &context, const CudaPlace &place) {
  std::vector<std::string> mine;
  GTP_RETURN_IF_ERROR(describe(context, mine));
  std::string text;
  for (const std::string &line : mine)
    text += line + "\n";
  GTP_ASSIGN_OR_RETURN(std::vector<std::string> all, place.exchange(text));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0]) {
      auto differs = std::mismatch(all[0].begin(), all[0].end(),
                                   all[rank].begin(), all[rank].end());
      auto lineOf = [](const std::string &of, size_t at) {
        size_t begin = of.rfind('\n', at) + 1;
        return of.substr(begin, of.find('\n', begin) - begin);
      };
      auto at = static_cast<size_t>(differs.first - all[0].begin());
      return Status::error(
          "rank " + std::to_string(rank) +
          " has another algorithm of a matrix product than rank 0: '" +
          lineOf(all[rank], at) + "' and '" + lineOf(all[0], at) +
          "'; all ranks must have the same");
    }
  return Status::ok();
}

Status gtp::rt::cuda::chooseAlgorithms(Context &context,
                                       const BackendOptions &options,
                                       const CudaPlace &place) {
  if (options.tuningCache) {
    GTP_ASSIGN_OR_RETURN(TuningPlatform platform, tuningPlatform(place.device));
    if (decides(place))
      GTP_RETURN_IF_ERROR(complete(context, platform, options));
    GTP_ASSIGN_OR_RETURN(TuningCache used,
                         agree(context, platform, options, place));
    for (const auto &[text, gemm] : context.products) {
      const TunedProduct *tuned = used.find(platform, text);
      if (!tuned)
        return Status::error("rank 0 has no product " + text);
      GTP_RETURN_IF_ERROR(use(*gemm, *tuned));
    }
  }
  for (const auto &[text, gemm] : context.products)
    context.needWorkspace(gemm->choice().workspaceBytes);
  return place.exchange ? compare(context, place) : Status::ok();
}
