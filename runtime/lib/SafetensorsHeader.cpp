//===- SafetensorsHeader.cpp - Parsing and checking a header --------------===//

#include "Json.h"
#include "gtp-rt/Safetensors.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::rt;
using nlohmann::json;

/// The format's own bound; a longer one is a damaged length.
static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

std::string gtp::rt::shapeText(const std::vector<uint64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

static Status parseType(const json &value, TensorType &type) {
  if (!value.is_string())
    return Status::error("'dtype' is not a string");
  std::string name = value.get<std::string>();
  if (name == "F32")
    type = TensorType::F32;
  else if (name == "F16")
    type = TensorType::F16;
  else if (name == "BF16")
    type = TensorType::BF16;
  else
    return Status::error("dtype '" + name +
                         "' is not supported; expected F32, F16 or BF16");
  return Status::ok();
}

/// A list of non-negative integers.
static Status parseNumbers(const json &value, const char *key,
                           std::vector<uint64_t> &numbers) {
  if (!value.is_array())
    return Status::error(std::string("'") + key + "' is not a list");
  for (const json &element : value) {
    if (!element.is_number_unsigned())
      return Status::error(
          std::string("'") + key +
          "' holds something other than non-negative integers");
    numbers.push_back(element.get<uint64_t>());
  }
  return Status::ok();
}

static Status parseTensor(const json &value, uint64_t dataBytes,
                          TensorInfo &info) {
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!value.is_object() || !value.contains(key))
      return Status::error(std::string("has no '") + key + "'");
  GTP_RETURN_IF_ERROR(parseType(value["dtype"], info.type));
  GTP_RETURN_IF_ERROR(parseNumbers(value["shape"], "shape", info.shape));
  std::vector<uint64_t> offsets;
  GTP_RETURN_IF_ERROR(
      parseNumbers(value["data_offsets"], "data_offsets", offsets));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > dataBytes)
    return Status::error("'data_offsets' " + shapeText(offsets) +
                         " is not a range of the " + std::to_string(dataBytes) +
                         " data bytes");
  info.begin = offsets[0];
  info.end = offsets[1];
  uint64_t width = info.type == TensorType::F32 ? 4 : 2;
  uint64_t bytes = width;
  for (uint64_t size : info.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return Status::error("shape " + shapeText(info.shape) + " overflows");
  if (bytes != info.end - info.begin)
    return Status::error("shape " + shapeText(info.shape) + " needs " +
                         std::to_string(bytes) +
                         " bytes, 'data_offsets' gives " +
                         std::to_string(info.end - info.begin));
  info.elements = bytes / width;
  return Status::ok();
}

/// Every data byte belongs to exactly one tensor.
static Status checkCover(const std::map<std::string, TensorInfo> &tensors,
                         uint64_t dataBytes) {
  using Named = std::pair<const std::string, TensorInfo>;
  std::vector<const Named *> order;
  for (const Named &tensor : tensors)
    if (tensor.second.begin != tensor.second.end)
      order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const Named *a, const Named *b) {
    return a->second.begin < b->second.begin;
  });
  uint64_t at = 0;
  const Named *previous = nullptr;
  for (const Named *tensor : order) {
    if (tensor->second.begin < at)
      return Status::error("tensors '" + previous->first + "' and '" +
                           tensor->first + "' overlap at data byte " +
                           std::to_string(tensor->second.begin));
    if (tensor->second.begin > at)
      break;
    at = tensor->second.end;
    previous = tensor;
  }
  if (at != dataBytes)
    return Status::error("data bytes from " + std::to_string(at) +
                         " belong to no tensor; the file has " +
                         std::to_string(dataBytes));
  return Status::ok();
}

StatusOr<SafetensorsHeader> gtp::rt::parseSafetensors(std::string_view file) {
  if (file.size() < 8)
    return Status::error("has " + std::to_string(file.size()) +
                         " bytes; a safetensors file has at least 8");
  uint64_t headerBytes = 0;
  for (int i = 0; i < 8; ++i)
    headerBytes |= uint64_t(uint8_t(file[i])) << (8 * i);
  if (headerBytes > kMaxHeaderBytes || headerBytes > file.size() - 8)
    return Status::error("header of " + std::to_string(headerBytes) +
                         " bytes does not fit the file of " +
                         std::to_string(file.size()) + " bytes (at most " +
                         std::to_string(kMaxHeaderBytes) +
                         "); truncated, or not a safetensors file");
  std::string_view text = file.substr(8, headerBytes);
  if (text.empty() || text.front() != '{')
    return Status::error(
        "header does not start with '{'; not a safetensors file");
  auto parsed = parseJson(text);
  if (!parsed.isOk())
    return std::move(parsed).status().in("header");

  SafetensorsHeader header;
  header.dataStart = 8 + headerBytes;
  uint64_t dataBytes = file.size() - header.dataStart;
  for (const auto &[name, value] : parsed->items()) {
    if (name == "__metadata__") {
      if (value.is_object())
        for (const auto &[key, text] : value.items())
          if (text.is_string())
            header.metadata[key] = text.get<std::string>();
      continue;
    }
    TensorInfo info;
    GTP_RETURN_IF_ERROR(
        parseTensor(value, dataBytes, info).in("tensor '" + name + "'"));
    header.tensors.emplace(name, std::move(info));
  }
  GTP_RETURN_IF_ERROR(checkCover(header.tensors, dataBytes));
  return header;
}
