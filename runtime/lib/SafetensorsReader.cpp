//===- SafetensorsReader.cpp - One file, or a folder of shards ------------===//

#include "Json.h"
#include "gtp-rt/Safetensors.h"

#include <cmath>
#include <cstring>
#include <sys/stat.h>

using namespace gtp;
using namespace gtp::rt;
using nlohmann::json;

static constexpr const char *kIndexName = "model.safetensors.index.json";
static constexpr const char *kSingleName = "model.safetensors";

static bool exists(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

static bool isFolder(const std::string &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// `weight_map` of an index file: tensor name to shard name.
static StatusOr<std::map<std::string, std::string>>
readIndex(const std::string &path) {
  GTP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  GTP_ASSIGN_OR_RETURN(json index, parseJson(file.text()));
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object() || index["weight_map"].empty())
    return Status::error("has no 'weight_map' of tensor names to file names");
  std::map<std::string, std::string> map;
  for (const auto &[name, shard] : index["weight_map"].items()) {
    std::string fileName = shard.is_string() ? shard.get<std::string>() : "";
    if (fileName.empty() || fileName.find('/') != std::string::npos)
      return Status::error("'weight_map' gives tensor '" + name +
                           "' no plain file name of the same folder");
    map[name] = fileName;
  }
  return map;
}

Status SafetensorsReader::addFile(const std::string &path) {
  File file;
  file.path = path;
  pathsRead.push_back(path);
  auto bytes = MappedFile::open(path);
  if (!bytes.isOk())
    return std::move(bytes).status().in(path);
  file.bytes = std::move(*bytes);
  auto header = parseSafetensors(file.bytes.text());
  if (!header.isOk())
    return std::move(header).status().in(path);
  file.header = std::move(*header);
  // The map's nodes keep their addresses when the header moves.
  for (const auto &[name, info] : file.header.tensors)
    if (auto [at, isNew] = entries.insert({name, Entry{files.size(), &info}});
        !isNew)
      return Status::error("tensor '" + name + "' is also in " +
                           files[at->second.file].path)
          .in(path);
  for (const auto &[alias, name] : file.header.metadata)
    aliases[alias] = name;
  files.push_back(std::move(file));
  return Status::ok();
}

StatusOr<SafetensorsReader> SafetensorsReader::open(const std::string &path) {
  SafetensorsReader reader;
  if (!isFolder(path)) {
    GTP_RETURN_IF_ERROR(reader.addFile(path));
    return reader;
  }
  std::string folder = path + "/";
  if (!exists(folder + kIndexName)) {
    if (!exists(folder + kSingleName))
      return Status::error(std::string("holds neither ") + kSingleName +
                           " nor " + kIndexName)
          .in(path);
    GTP_RETURN_IF_ERROR(reader.addFile(folder + kSingleName));
    return reader;
  }
  std::string indexPath = folder + kIndexName;
  auto index = readIndex(indexPath);
  if (!index.isOk())
    return std::move(index).status().in(indexPath);
  reader.pathsRead.push_back(indexPath);
  std::map<std::string, bool> shards; // opened already
  for (const auto &[name, shard] : *index)
    if (!shards[shard]) {
      shards[shard] = true;
      GTP_RETURN_IF_ERROR(reader.addFile(folder + shard));
    }
  for (const auto &[name, shard] : *index) {
    auto at = reader.entries.find(name);
    if (at == reader.entries.end() ||
        reader.files[at->second.file].path != folder + shard)
      return Status::error("lists tensor '" + name + "' in " + shard +
                           ", which does not hold it")
          .in(indexPath);
  }
  for (const auto &[name, entry] : reader.entries)
    if (!index->count(name))
      return Status::error("tensor '" + name + "' is not listed in " +
                           kIndexName)
          .in(reader.files[entry.file].path);
  return reader;
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto &[name, entry] : entries)
    names.push_back(name);
  return names;
}

const SafetensorsReader::Entry *
SafetensorsReader::lookup(const std::string &name) const {
  auto at = entries.find(name);
  if (at == entries.end())
    if (auto alias = aliases.find(name); alias != aliases.end())
      at = entries.find(alias->second);
  return at == entries.end() ? nullptr : &at->second;
}

const TensorInfo *SafetensorsReader::find(const std::string &name) const {
  const Entry *entry = lookup(name);
  return entry ? entry->info : nullptr;
}

const std::string &SafetensorsReader::fileOf(const std::string &name) const {
  return files[lookup(name)->file].path;
}

static float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
  if (exponent == 31)
    return fromBits(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0)
    return std::copysign(std::ldexp(float(fraction), -24), sign ? -1.0f : 1.0f);
  return fromBits(sign | (exponent + 112) << 23 | fraction << 13);
}

void SafetensorsReader::read(const std::string &name, uint64_t begin,
                             uint64_t count, float *destination) const {
  const Entry &entry = *lookup(name);
  const File &file = files[entry.file];
  const uint8_t *data =
      file.bytes.data() + file.header.dataStart + entry.info->begin;
  if (entry.info->type == TensorType::F32) {
    std::memcpy(destination, data + 4 * begin, 4 * count);
    return;
  }
  bool isHalf = entry.info->type == TensorType::F16;
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * (begin + i), 2);
    destination[i] =
        isHalf ? halfToFloat(bits) : fromBits(uint32_t(bits) << 16);
  }
}
