//===- Prices.cpp - Times and sizes from a profile ------------------------===//

#include "gtp/Machine/Profile.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace gtp::machine {

/// Whole nanoseconds, rounded up; absurd work is as long as can be scheduled.
static int64_t wholeNs(double ns) {
  constexpr double kLongest = 1e12;
  return static_cast<int64_t>(std::ceil(std::clamp(ns, 0.0, kLongest)));
}

/// A TFLOP/s is a thousand flops a nanosecond, a GB/s a byte a nanosecond.
static double flopNs(int64_t flops, double tflops) {
  return double(flops) / (tflops * 1000);
}

/// Of that very call; null when it was not measured.
static const Profile::MeasuredKernel *measuredOf(const Profile &profile,
                                                 const KernelWork &work) {
  const std::pair<std::string_view, std::string_view> key(work.kernel,
                                                          work.signature);
  auto found = std::lower_bound(
      profile.measuredKernels.begin(), profile.measuredKernels.end(), key,
      [](const Profile::MeasuredKernel &entry, const auto &wanted) {
        return std::pair<std::string_view, std::string_view>(
                   entry.kernel, entry.signature) < wanted;
      });
  bool isFound = found != profile.measuredKernels.end() &&
                 found->kernel == work.kernel &&
                 found->signature == work.signature;
  return isFound ? &*found : nullptr;
}

/// "attention_grad" of "attention_grad.fast".
static std::string_view withoutVariant(std::string_view kernel) {
  return kernel.substr(0, kernel.find('.'));
}

int64_t Profile::kernelNs(const KernelWork &work) const {
  if (const MeasuredKernel *measured = measuredOf(*this, work))
    return measuredNs(*measured);
  if (std::optional<double> ns = likeMeasured(work.kernel, work.signature))
    return wholeNs(*ns);
  const std::string_view basic = withoutVariant(work.kernel);
  if (basic.size() != work.kernel.size())
    if (std::optional<double> ns = likeMeasured(basic, work.signature)) {
      KernelWork like = work;
      like.kernel = basic;
      return wholeNs(*ns * double(modelledNs(work)) / double(modelledNs(like)));
    }
  return modelledNs(work);
}

int64_t Profile::modelledNs(const KernelWork &work) const {
  auto findRate = [&](std::string_view kernel, DType dtype) -> const Rate * {
    for (const Rate &rate : rates)
      if (rate.kernel == kernel && rate.dtype == dtype)
        return &rate;
    return nullptr;
  };
  double moved = double(work.bytes) / (memoryGbPerS * vectorEfficiency);
  const Rate *named =
      work.kernel.empty() ? nullptr : findRate(work.kernel, work.dtype);
  if (!named && !work.kernel.empty())
    named = findRate(withoutVariant(work.kernel), work.dtype);
  if (!named && work.resource != Resource::Matrix) {
    double computed = work.resource == Resource::Vector
                          ? flopNs(work.flops, vectorTflops)
                          : 0;
    return wholeNs(double(launchNs) + std::max(moved, computed));
  }
  const Rate *rate = named ? named : findRate("", work.dtype);
  double computed = flopNs(work.flops, rate->tflops) + double(rate->rampNs);
  return wholeNs(double(launchNs) + std::max(moved, computed));
}

int64_t Profile::copyNs(int64_t bytes) const {
  return wholeNs(double(launchNs) + 2 * double(bytes) / memoryGbPerS);
}

Group Profile::group(int64_t degree, int64_t stride, int64_t ranks) const {
  int64_t domain = ranksPerLinkDomain;
  if (degree <= 1 || domain == 0 || ranks <= domain)
    return {degree, degree};
  // Ranks fill domains in order, and groups fill blocks of degree * stride
  // ranks. Domains cut blocks at multiples of what the two sizes have in
  // common.
  int64_t piece = std::gcd(degree * stride, domain);
  return {degree, std::clamp<int64_t>(piece / stride, 1, degree)};
}

std::vector<Transport> Profile::transports(CollectiveKind kind,
                                           const Group &group) const {
  std::vector<Transport> result;
  for (const Link &link : links)
    if (link.kind == kind && (link.acrossDomains || !group.spansDomains()))
      result.push_back(link.transport);
  return result;
}

StatusOr<CollectivePrice> Profile::collective(CollectiveKind kind,
                                              int64_t bytesFull,
                                              const Group &group,
                                              Transport transport) const {
  CollectivePrice best;
  if (group.size <= 1)
    return best;
  bool found = false;
  for (const Link &link : links) {
    if (link.kind != kind || (group.spansDomains() && !link.acrossDomains) ||
        (transport != Transport::Auto && transport != link.transport))
      continue;
    double received = double(bytesFull) / double(group.size) *
                      double(group.size - 1) *
                      (kind == CollectiveKind::AllReduce ? 2 : 1);
    double latency = double(link.latencyNs) +
                     double(link.latencyPerRankNs) * double(group.size - 2);
    double rate = link.gbPerS;
    if (group.spansDomains()) {
      // The group's ranks in a domain bring its bytes in together.
      latency += double(crossDomainLatencyNs);
      rate = std::min(rate, crossDomainGbPerS * double(group.ranksPerDomain));
    }
    CollectivePrice price;
    price.transport = link.transport;
    price.durationNs = wholeNs(latency + received / rate);
    if (kind == CollectiveKind::AllGather) {
      price.ownCopyNs = copyNs(bytesFull / group.size);
      price.copiesApart = link.transport == Transport::CopyEngine;
    }
    // The time of a gather by kernels has that copy in it.
    if (std::optional<double> ns =
            likeMeasured(kind, link.transport, group.size, bytesFull))
      price.durationNs = std::max<int64_t>(
          0, wholeNs(*ns) - (price.copiesApart ? 0 : price.ownCopyNs));
    // A tax on bytes, so the speed between domains does not change it.
    price.contentionNs =
        wholeNs(received / link.gbPerS * double(link.contentionPermille) /
                1000 * contentionScale);
    price.slowdownPermille = link.slowdownPermille;
    price.holdsMultiprocessors = machine::holdsMultiprocessors(link.transport);
    if (!found || price.durationNs + price.contentionNs <
                      best.durationNs + best.contentionNs)
      best = price;
    found = true;
  }
  if (!found)
    return Status::error(title() + " has no price for " +
                         std::string(name(kind)) + " by transport " +
                         std::string(name(transport)) +
                         (group.spansDomains() ? " across link domains" : ""));
  return best;
}

int64_t Profile::collectiveNs(CollectiveKind kind, int64_t bytesFull,
                              const Group &group, Transport transport) const {
  StatusOr<CollectivePrice> price =
      collective(kind, bytesFull, group, transport);
  return price.isOk() ? price->durationNs : 0;
}

int64_t Profile::contentionNs(CollectiveKind kind, int64_t bytesFull,
                              const Group &group, Transport transport) const {
  StatusOr<CollectivePrice> price =
      collective(kind, bytesFull, group, transport);
  return price.isOk() ? price->contentionNs : 0;
}

static int64_t upTo(int64_t size, uint64_t multiple) {
  return static_cast<int64_t>(roundUp(static_cast<uint64_t>(size), multiple));
}

int64_t Profile::scratchBytes(std::string_view kernel,
                              const KernelDims &dims) const {
  auto isThere = [&](std::string_view name) {
    return std::any_of(
        scratch.begin(), scratch.end(),
        [&](const Scratch &entry) { return entry.kernel == name; });
  };
  if (!isThere(kernel))
    kernel = withoutVariant(kernel);
  auto valueOf = [&](const std::string &dim) {
    const std::pair<const char *, int64_t> values[] = {
        {"batch", dims.batch},
        {"sequence", dims.sequence},
        {"sequence_64", upTo(dims.sequence, 64)},
        {"keys", dims.keys},
        {"keys_128", upTo(dims.keys, 128)},
        {"heads", dims.heads},
        {"kv_heads", dims.kvHeads},
        {"head_dim", dims.headDim}};
    for (const auto &[name, value] : values)
      if (dim == name)
        return double(value);
    return 0.0;
  };
  for (const Scratch &entry : scratch) {
    if (entry.kernel != kernel)
      continue;
    // Exact below 2^53 bytes, and no memory is larger.
    double bytes = double(entry.constantBytes);
    for (const ScratchTerm &term : entry.terms) {
      double product = double(term.bytes);
      for (const std::string &dim : term.dims)
        product *= valueOf(dim);
      bytes += product;
    }
    return static_cast<int64_t>(std::min(bytes, 1e18));
  }
  return 0;
}

int64_t Profile::overheadBytes(int64_t communicators) const {
  return contextBytes + graphBytes + communicators * communicatorBytes;
}

} // namespace gtp::machine
