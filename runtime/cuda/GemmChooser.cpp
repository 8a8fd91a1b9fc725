//===- GemmChooser.cpp - Gives every product its algorithm ----------------===//

#include "GemmChooser.h"

#include "Check.h"
#include "GemmTimer.h"

#include <algorithm>
#include <cmath>

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

/// Measures some of the products.
static StatusOr<TuningCache> measure(const std::vector<const Gemm *> &products,
                                     const TuningPlatform &platform,
                                     const BackendOptions &options) {
  TuningCache measured;
  if (products.empty())
    return measured;
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<GemmTimer> timer,
                       GemmTimer::create(products));
  for (size_t i = 0; i < products.size(); ++i) {
    const Gemm &gemm = *products[i];
    if (options.onProgress)
      options.onProgress("measuring matrix product " + std::to_string(i + 1) +
                         " of " + std::to_string(products.size()) + ": " +
                         gemm.shape().text());
    GTP_ASSIGN_OR_RETURN(GemmTimer::Fastest fastest, timer->fastest(gemm));
    // A first choice that does not run has no time of its own.
    double firstNs =
        std::isfinite(fastest.firstNs) ? fastest.firstNs : fastest.ns;
    measured.add(platform, gemm.shape().text(),
                 {gemm.candidates()[fastest.candidate].attributes,
                  static_cast<uint64_t>(fastest.ns),
                  static_cast<uint64_t>(firstNs)});
  }
  return measured;
}

/// Every rank's caches, of ranks in order; this one's alone outside a job.
static StatusOr<std::vector<TuningCache>> exchange(const TuningCache &mine,
                                                   const CudaPlace &place) {
  std::vector<TuningCache> all;
  if (!place.exchange) {
    all.push_back(mine);
    return all;
  }
  GTP_ASSIGN_OR_RETURN(std::vector<std::string> texts,
                       place.exchange(mine.text()));
  for (const std::string &text : texts) {
    GTP_ASSIGN_OR_RETURN(TuningCache cache, TuningCache::parse(text));
    all.push_back(std::move(cache));
  }
  return all;
}

/// What all ranks use: what rank 0 knows of the products, and what it does not,
/// of which each rank measures a share.
static StatusOr<TuningCache> complete(const Context &context,
                                      const TuningPlatform &platform,
                                      const BackendOptions &options,
                                      const CudaPlace &place) {
  TuningCache mine;
  for (const auto &[text, gemm] : context.products)
    if (const TunedProduct *known = options.tuningCache->find(platform, text))
      mine.add(platform, text, *known);
  GTP_ASSIGN_OR_RETURN(std::vector<TuningCache> all, exchange(mine, place));
  TuningCache used = std::move(all.front());
  std::vector<const Gemm *> share;
  uint64_t unknown = 0;
  for (const auto &[text, gemm] : context.products)
    if (!used.find(platform, text) &&
        (!place.exchange || unknown++ % all.size() == place.rank))
      share.push_back(gemm.get());
  GTP_ASSIGN_OR_RETURN(mine, measure(share, platform, options));
  GTP_ASSIGN_OR_RETURN(all, exchange(mine, place));
  for (const auto &[text, gemm] : context.products)
    for (const TuningCache &measured : all)
      if (const TunedProduct *tuned = measured.find(platform, text)) {
        used.add(platform, text, *tuned);
        options.tuningCache->add(platform, text, *tuned);
      }
  return used;
}

Status gtp::rt::cuda::saveMeasured(const TuningCache &cache, size_t before) {
  if (cache.path().empty() || cache.size() == before)
    return Status::ok();
  Status saved = cache.save();
  if (!saved.isOk())
    return Status::error(
        "the tuning cache cannot be saved: " + saved.message() +
        "; name another --tuning-cache=FILE, or off");
  return Status::ok();
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
    const size_t before = options.tuningCache->size();
    GTP_ASSIGN_OR_RETURN(TuningPlatform platform, tuningPlatform(place.device));
    GTP_ASSIGN_OR_RETURN(TuningCache used,
                         complete(context, platform, options, place));
    for (const auto &[text, gemm] : context.products) {
      const TunedProduct *tuned = used.find(platform, text);
      if (!tuned)
        return Status::error("no rank has measured the product " + text);
      GTP_RETURN_IF_ERROR(use(*gemm, *tuned));
    }
    GTP_RETURN_IF_ERROR(saveMeasured(*options.tuningCache, before));
  }
  return place.exchange ? compare(context, place) : Status::ok();
}
