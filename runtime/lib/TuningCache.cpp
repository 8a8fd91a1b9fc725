//===- TuningCache.cpp - Which algorithm computes a matrix product --------===//

#include "gtp-rt/TuningCache.h"

#include "Json.h"
#include "gtp-rt/File.h"
#include "gtp/Plan/Operand.h"

#include <filesystem>
#include <set>

using namespace gtp;
using namespace gtp::rt;
using nlohmann::json;

static constexpr uint64_t kVersion = 1;
/// More than all products of thousands of plans.
static constexpr uint64_t kMostBytes = uint64_t(64) << 20;
static constexpr uint64_t kMostAttribute = 0x7fffffff;

const std::array<const char *, ProductAlgorithm::kAttributes> &
ProductAlgorithm::names() {
  static constexpr std::array<const char *, kAttributes> table = {
      "id",      "tile",   "stages",      "split_k",      "reduction",
      "swizzle", "custom", "inner_shape", "cluster_shape"};
  return table;
}

static std::string text(const ProductMatrix &matrix) {
  return std::string(plan::dtypeName(matrix.type)) + ":" +
         std::to_string(matrix.rows) + "x" + std::to_string(matrix.columns) +
         ":" + std::to_string(matrix.pitch) + ":" +
         std::to_string(matrix.alignment) + (matrix.transposed ? ":T" : "");
}

std::string ProductShape::text() const {
  return ::text(a) + " " + ::text(b) + " " + ::text(d) + (add ? " add" : "") +
         (scratchBytes ? " scratch:" + std::to_string(scratchBytes) : "") +
         (biasAlignment ? " bias:" + std::to_string(biasAlignment) : "");
}

//===-- reading -----------------------------------------------------------===//

/// Fails unless `value` is an object with these keys and no others.
static Status needKeys(const json &value, const std::set<std::string> &keys,
                       const std::string &where) {
  if (!value.is_object())
    return Status::error(where + ": expected an object, found " +
                         value.type_name());
  for (const std::string &key : keys)
    if (!value.contains(key))
      return Status::error(where + ": has no '" + key + "'");
  for (const auto &[key, member] : value.items())
    if (!keys.count(key))
      return Status::error(where + ": has a key '" + key +
                           "' that a tuning cache does not know");
  return Status::ok();
}

static StatusOr<uint64_t> readNumber(const json &value, uint64_t most,
                                     const std::string &where) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > most)
    return Status::error(where + ": expected a whole number from 0 to " +
                         std::to_string(most) + ", found " + value.dump());
  return value.get<uint64_t>();
}

static StatusOr<std::string> readText(const json &value,
                                      const std::string &where) {
  if (!value.is_string())
    return Status::error(where + ": expected a text, found " +
                         value.type_name());
  return value.get<std::string>();
}

static StatusOr<std::optional<ProductAlgorithm>>
readAlgorithm(const json &value, const std::string &where) {
  if (value == "first")
    return std::optional<ProductAlgorithm>();
  const auto &names = ProductAlgorithm::names();
  GTP_RETURN_IF_ERROR(needKeys(
      value, std::set<std::string>(names.begin(), names.end()), where));
  ProductAlgorithm algorithm;
  for (size_t i = 0; i < names.size(); ++i) {
    GTP_ASSIGN_OR_RETURN(
        uint64_t number,
        readNumber(value[names[i]], kMostAttribute, where + "." + names[i]));
    algorithm.values[i] = static_cast<uint32_t>(number);
  }
  return std::optional<ProductAlgorithm>(algorithm);
}

StatusOr<TuningCache> TuningCache::parse(std::string_view text) {
  GTP_ASSIGN_OR_RETURN(json root, parseJson(text));
  GTP_RETURN_IF_ERROR(needKeys(root, {"version", "products"}, "tuning cache"));
  if (root["version"] != kVersion)
    return Status::error("version: expected " + std::to_string(kVersion) +
                         ", found " + root["version"].dump());
  if (!root["products"].is_array())
    return Status::error(std::string("products: expected an array, found ") +
                         root["products"].type_name());
  TuningCache cache;
  for (size_t i = 0; i < root["products"].size(); ++i) {
    const json &item = root["products"][i];
    const std::string where = "products[" + std::to_string(i) + "]";
    GTP_RETURN_IF_ERROR(needKeys(
        item, {"library", "gpu", "product", "algorithm", "ns", "first_ns"},
        where));
    TuningPlatform platform;
    GTP_ASSIGN_OR_RETURN(platform.library,
                         readText(item["library"], where + ".library"));
    GTP_ASSIGN_OR_RETURN(platform.gpu, readText(item["gpu"], where + ".gpu"));
    GTP_ASSIGN_OR_RETURN(std::string product,
                         readText(item["product"], where + ".product"));
    TunedProduct tuned;
    GTP_ASSIGN_OR_RETURN(tuned.algorithm, readAlgorithm(item["algorithm"],
                                                        where + ".algorithm"));
    GTP_ASSIGN_OR_RETURN(tuned.ns,
                         readNumber(item["ns"], INT64_MAX, where + ".ns"));
    GTP_ASSIGN_OR_RETURN(tuned.firstNs, readNumber(item["first_ns"], INT64_MAX,
                                                   where + ".first_ns"));
    if (cache.find(platform, product))
      return Status::error(where + ": is there a second time: " + product);
    cache.add(platform, product, tuned);
  }
  return cache;
}

StatusOr<TuningCache> TuningCache::open(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) {
    TuningCache cache;
    cache.file = path;
    return cache;
  }
  GTP_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  if (mapped.size() > kMostBytes)
    return Status::error("has " + std::to_string(mapped.size()) +
                         " bytes; a tuning cache has at most " +
                         std::to_string(kMostBytes));
  GTP_ASSIGN_OR_RETURN(TuningCache cache, parse(mapped.text()));
  cache.file = path;
  return cache;
}

//===-- writing -----------------------------------------------------------===//

const TunedProduct *TuningCache::find(const TuningPlatform &platform,
                                      const std::string &product) const {
  auto found = entries.find({platform.library, platform.gpu, product});
  return found == entries.end() ? nullptr : &found->second;
}

void TuningCache::add(const TuningPlatform &platform,
                      const std::string &product, const TunedProduct &tuned) {
  entries[{platform.library, platform.gpu, product}] = tuned;
}

std::string TuningCache::text() const {
  std::string text =
      "{\"version\": " + std::to_string(kVersion) + ", \"products\": [";
  const char *separator = "\n";
  for (const auto &[key, tuned] : entries) {
    json item;
    std::tie(item["library"], item["gpu"], item["product"]) = key;
    item["ns"] = tuned.ns;
    item["first_ns"] = tuned.firstNs;
    item["algorithm"] = "first";
    if (tuned.algorithm) {
      json attributes;
      for (size_t i = 0; i < ProductAlgorithm::kAttributes; ++i)
        attributes[ProductAlgorithm::names()[i]] = tuned.algorithm->values[i];
      item["algorithm"] = attributes;
    }
    text +=
        separator + item.dump(-1, ' ', false, json::error_handler_t::replace);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

Status TuningCache::save() const {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty())
    std::filesystem::create_directories(folder, error);
  if (error)
    return Status::error("cannot make the folder " + folder.string() + ": " +
                         error.message());
  std::string content = text();
  GTP_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(file));
  GTP_RETURN_IF_ERROR(output.write(content.data(), content.size()));
  return output.commit();
}

StatusOr<std::string>
gtp::rt::defaultTuningCache(const Environment &environment) {
  const std::pair<const char *, const char *> folders[] = {
      {"XDG_CACHE_HOME", ""}, {"HOME", "/.cache"}};
  for (auto [variable, below] : folders) {
    const char *value = environment(variable);
    if (value && *value)
      return std::string(value) + below + "/gtp/tuning.json";
  }
  return Status::error(
      "--tuning-cache is not given, and its default lies under XDG_CACHE_HOME "
      "or HOME, neither of which is set; name a file, or give "
      "--tuning-cache=off");
}
