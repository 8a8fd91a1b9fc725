//===- Profile.cpp - Profiles from files and from the binary --------------===//

#include "gtp/Machine/Profile.h"

#include "BuiltinProfiles.h"
#include "JsonReader.h"

#include <algorithm>
#include <fstream>
#include <tuple>

namespace gtp::machine {

static const std::vector<std::string_view> kDTypes = {"f64", "f32", "bf16"};
static const std::vector<std::string_view> kCollectives = {
    "all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
/// Without `auto`, which is a request and no transport.
static const std::vector<std::string_view> kTransports = {
    "copy_engine", "symmetric", "ring", "host", "pairwise"};
static const std::vector<std::string_view> kDims = {
    "batch",    "sequence", "sequence_64", "keys",
    "keys_128", "heads",    "kv_heads",    "head_dim"};

std::string_view name(DType dtype) { return kDTypes[size_t(dtype)]; }
std::string_view name(CollectiveKind kind) {
  return kCollectives[size_t(kind)];
}
std::string_view name(Transport transport) {
  return transport == Transport::Auto ? "auto"
                                      : kTransports[size_t(transport) - 1];
}

static void readMemory(JsonReader &reader, Profile &profile) {
  reader.source();
  profile.memoryBytes = reader.integer("bytes", 1);
  profile.contextBytes = reader.integer("context_bytes");
  profile.communicatorBytes = reader.integer("communicator_bytes");
  profile.graphBytes = reader.integer("graph_bytes");
  profile.memoryGbPerS = reader.number("gb_per_s", 1e-3, 1e9);
}

static void readCompute(JsonReader &reader, Profile &profile) {
  reader.source();
  profile.launchNs = reader.time("launch_ns");
  profile.vectorTflops = reader.number("vector_tflops", 1e-6, 1e9);
  profile.vectorEfficiency = reader.number("vector_efficiency", 1e-3, 1);
  profile.multiprocessors = reader.integer("multiprocessors", 0, INT32_MAX);
  // It may be the reserve of one collective, which NCCL gives 64 channels.
  constexpr int64_t kMostOfOne = 64;
  profile.ctaReserve = reader.integer(
      "cta_reserve", 0,
      profile.multiprocessors ? std::min(kMostOfOne, profile.multiprocessors)
                              : kMostOfOne);
  reader.objects("tiles", [&](JsonReader &item) {
    profile.tiles.push_back(
        {item.integer("rows", 1), item.integer("columns", 1)});
  });
  reader.objects("rates", [&](JsonReader &item) {
    Profile::Rate rate;
    item.source();
    rate.kernel = item.text("kernel", /*optional=*/true);
    rate.dtype = static_cast<DType>(item.choice("dtype", kDTypes));
    rate.tflops = item.number("tflops", 1e-6, 1e9);
    rate.rampNs = item.time("ramp_ns");
    profile.rates.push_back(rate);
  });
}

static void readNetwork(JsonReader &reader, Profile &profile) {
  reader.source();
  profile.ranksPerLinkDomain = reader.integer("ranks_per_link_domain");
  profile.sharedLinkPermille = reader.integer("shared_link_permille", 1);
  profile.crossDomainLatencyNs = reader.time("cross_domain_latency_ns");
  profile.crossDomainGbPerS = reader.number("cross_domain_gb_per_s", 0, 1e9);
  reader.objects("links", [&](JsonReader &item) {
    Profile::Link link;
    item.source();
    link.kind =
        static_cast<CollectiveKind>(item.choice("collective", kCollectives));
    link.transport =
        static_cast<Transport>(item.choice("transport", kTransports) + 1);
    link.latencyNs = item.time("latency_ns");
    link.latencyPerRankNs = item.time("latency_per_rank_ns");
    link.gbPerS = item.number("gb_per_s", 1e-3, 1e9);
    link.contentionPermille = item.integer("contention_permille");
    link.slowdownPermille = item.integer("slowdown_permille");
    link.acrossDomains = item.flag("across_domains");
    profile.links.push_back(link);
  });
}

static void readScratch(JsonReader &item, Profile &profile) {
  Profile::Scratch scratch;
  item.source();
  scratch.kernel = item.text("kernel");
  scratch.constantBytes = item.integer("constant_bytes");
  item.objects("terms", [&](JsonReader &reader) {
    Profile::ScratchTerm term;
    term.bytes = reader.integer("bytes", 1);
    term.dims = reader.texts("dims");
    for (const std::string &dim : term.dims) {
      bool known = false;
      std::string names;
      for (std::string_view candidate : kDims) {
        known |= dim == candidate;
        names += (names.empty() ? "" : ", ") + std::string(candidate);
      }
      if (!known)
        reader.fail("dims", "found '" + dim + "', expected some of " + names);
    }
    scratch.terms.push_back(std::move(term));
  });
  profile.scratch.push_back(std::move(scratch));
}

static void readTimes(JsonReader &item, Profile::Measured &entry) {
  entry.aloneNs = item.time("alone_ns");
  entry.besideNs = item.time("beside_ns");
  entry.besideMeanNs =
      item.has("beside_mean_ns") ? item.time("beside_mean_ns") : entry.besideNs;
}

static void readMeasured(JsonReader &reader, Profile &profile) {
  reader.source();
  reader.object("step", [&](JsonReader &item) {
    // For people: what the step was made of.
    for (const char *key :
         {"step_ns", "compute_ns", "contention_ns", "stall_ns"})
      item.integer(key, -(int64_t(1) << 50));
    if (item.has("untimed_ns"))
      profile.untimedNs = item.time("untimed_ns");
    if (item.has("without_collectives_ns"))
      profile.withoutCollectivesNs = item.time("without_collectives_ns");
  });
  reader.objects("kernels", [&](JsonReader &item) {
    Profile::MeasuredKernel entry;
    entry.kernel = item.text("kernel");
    entry.signature = item.text("operands");
    entry.calls = item.integer("calls", 1);
    readTimes(item, entry);
    if (item.has("sustained_ns"))
      entry.sustainedNs = item.time("sustained_ns");
    if (item.has("beside_gathers_ns"))
      entry.besideGathersNs = item.time("beside_gathers_ns");
    if (item.has("beside_reductions_ns"))
      entry.besideReductionsNs = item.time("beside_reductions_ns");
    profile.measuredKernels.push_back(std::move(entry));
  });
  reader.objects("collectives", [&](JsonReader &item) {
    Profile::MeasuredCollective entry;
    entry.kind =
        static_cast<CollectiveKind>(item.choice("collective", kCollectives));
    entry.transport =
        static_cast<Transport>(item.choice("transport", kTransports) + 1);
    entry.ranks = item.integer("ranks", 1);
    entry.bytes = item.integer("bytes");
    entry.calls = item.integer("calls", 1);
    readTimes(item, entry);
    profile.measuredCollectives.push_back(entry);
  });
}

/// Sorts, for look-ups; no call is there twice.
static Status sortMeasured(Profile &profile) {
  auto key = [](const Profile::MeasuredKernel &entry) {
    return std::tie(entry.kernel, entry.signature);
  };
  auto &kernels = profile.measuredKernels;
  std::sort(kernels.begin(), kernels.end(),
            [&](const auto &a, const auto &b) { return key(a) < key(b); });
  for (size_t i = 1; i < kernels.size(); ++i)
    if (key(kernels[i]) == key(kernels[i - 1]))
      return Status::error("measured.kernels: '" + kernels[i].kernel +
                           "' of operands '" + kernels[i].signature +
                           "' is there twice");
  const auto &all = profile.measuredCollectives;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (std::tie(all[i].kind, all[i].transport, all[i].ranks, all[i].bytes) ==
          std::tie(all[j].kind, all[j].transport, all[j].ranks, all[j].bytes))
        return Status::error("measured.collectives[" + std::to_string(i) +
                             "]: same collective, transport, ranks and bytes "
                             "as collectives[" +
                             std::to_string(j) + "]");
  return Status::ok();
}

StatusOr<Profile> Profile::parse(std::string_view text) {
  GTP_ASSIGN_OR_RETURN(nlohmann::json value, parseJson(text));
  Profile profile;
  Status status = Status::ok();
  JsonReader reader(value, "", status);
  const bool hasBase = reader.has("base");
  if (hasBase) {
    const std::string base = reader.text("base");
    std::string names;
    for (const std::string &name : builtinNames())
      names += (names.empty() ? "" : ", ") + name;
    std::optional<std::string_view> basis = builtinText(base);
    if (!basis && status.isOk())
      return Status::error("base: found '" + base + "', expected one of " +
                           names);
    if (basis) {
      GTP_ASSIGN_OR_RETURN(profile, parse(*basis));
    }
  }
  profile.text = text;
  profile.profileName = reader.text("name");
  auto wants = [&](const char *group) { return !hasBase || reader.has(group); };
  if (wants("memory"))
    reader.object("memory", [&](JsonReader &r) { readMemory(r, profile); });
  if (wants("compute")) {
    profile.rates.clear();
    profile.tiles.clear();
    reader.object("compute", [&](JsonReader &r) { readCompute(r, profile); });
  }
  if (wants("network")) {
    profile.links.clear();
    reader.object("network", [&](JsonReader &r) { readNetwork(r, profile); });
  }
  if (wants("scratch")) {
    profile.scratch.clear();
    reader.objects("scratch", [&](JsonReader &r) { readScratch(r, profile); });
  }
  if (reader.has("measured"))
    reader.object("measured", [&](JsonReader &r) { readMeasured(r, profile); });
  reader.finish();
  GTP_RETURN_IF_ERROR(status);
  GTP_RETURN_IF_ERROR(profile.validate());
  GTP_RETURN_IF_ERROR(sortMeasured(profile));
  profile.learn();
  return profile;
}

Status Profile::validate() const {
  auto text = [](std::string_view view) { return std::string(view); };
  for (DType dtype : {DType::F64, DType::F32, DType::BF16}) {
    bool found = false;
    for (const Rate &rate : rates)
      found |= rate.dtype == dtype && rate.kernel.empty();
    if (!found)
      return Status::error("compute.rates: no rate for " + text(name(dtype)) +
                           " without a kernel");
  }
  for (size_t i = 0; i < rates.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (rates[i].dtype == rates[j].dtype &&
          rates[i].kernel == rates[j].kernel)
        return Status::error("compute.rates[" + std::to_string(i) +
                             "]: same dtype and kernel as rates[" +
                             std::to_string(j) + "]");
  if (sharedLinkPermille < 1 || sharedLinkPermille > 1000)
    return Status::error("network.shared_link_permille: found " +
                         std::to_string(sharedLinkPermille) +
                         ", expected 1 to 1000");
  if (ranksPerLinkDomain && crossDomainGbPerS <= 0)
    return Status::error("network.cross_domain_gb_per_s: found 0, but link "
                         "domains have " +
                         std::to_string(ranksPerLinkDomain) +
                         " ranks (0 would mean that all ranks are in one)");
  for (size_t i = 0; i < links.size(); ++i) {
    std::string where = "network.links[" + std::to_string(i) + "]";
    for (size_t j = 0; j < i; ++j)
      if (links[i].kind == links[j].kind &&
          links[i].transport == links[j].transport)
        return Status::error(where +
                             ": same collective and transport as links[" +
                             std::to_string(j) + "]");
    if (links[i].contentionPermille > 1'000'000 ||
        links[i].slowdownPermille > 1'000'000)
      return Status::error(where + ": contention and slowdown must be at most "
                                   "1000000 permille");
  }
  for (CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
        CollectiveKind::AllReduce, CollectiveKind::AllToAll}) {
    bool inside = false, across = ranksPerLinkDomain == 0;
    for (const Link &link : links) {
      inside |= link.kind == kind;
      across |= link.kind == kind && link.acrossDomains;
    }
    if (!inside || !across)
      return Status::error("network.links: no transport for " +
                           text(name(kind)) +
                           (inside ? " across link domains" : ""));
  }
  for (size_t i = 0; i < scratch.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (scratch[i].kernel == scratch[j].kernel)
        return Status::error("scratch[" + std::to_string(i) +
                             "]: same kernel as scratch[" + std::to_string(j) +
                             "]");
  return Status::ok();
}

std::vector<std::string> Profile::builtinNames() {
  std::vector<std::string> names;
  for (const auto &[name, unused] : builtinProfiles())
    names.emplace_back(name);
  return names;
}

std::optional<std::string_view> Profile::builtinText(std::string_view name) {
  for (const auto &[candidate, text] : builtinProfiles())
    if (candidate == name)
      return text;
  return std::nullopt;
}

StatusOr<Profile> Profile::load(const std::string &nameOrFile) {
  if (std::optional<std::string_view> text = builtinText(nameOrFile))
    return parse(*text);
  std::ifstream file(nameOrFile, std::ios::binary);
  std::string names;
  for (const std::string &name : builtinNames())
    names += name + ", ";
  if (!file)
    return Status::error("target '" + nameOrFile +
                         "' cannot be read as a file; expected " + names +
                         "or a profile in JSON");
  // Far above any profile; a device may have no end.
  constexpr size_t kMaxBytes = size_t(1) << 20;
  std::string bytes(kMaxBytes + 1, '\0');
  file.read(bytes.data(), std::streamsize(bytes.size()));
  bytes.resize(size_t(file.gcount()));
  if (bytes.size() > kMaxBytes)
    return Status::error("target '" + nameOrFile + "' has more than " +
                         std::to_string(kMaxBytes) +
                         " bytes, which is no profile");
  // A directory opens, and then gives nothing.
  if (bytes.empty())
    return Status::error("target '" + nameOrFile +
                         "' is empty or no file; expected " + names +
                         "or a profile in JSON");
  StatusOr<Profile> profile = parse(bytes);
  if (!profile.isOk())
    return std::move(profile).status().in("target '" + nameOrFile + "'");
  profile->file = nameOrFile;
  return profile;
}

} // namespace gtp::machine
