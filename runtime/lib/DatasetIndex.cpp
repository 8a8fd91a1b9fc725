//===- DatasetIndex.cpp - The index of a Megatron-LM dataset --------------===//
//
// Version 1, little-endian, without padding:
//   9 bytes  "MMIDIDX\0\0"
//   u64      version, 1
//   u8       type of the ids
//   u64      S, the number of sequences
//   u64      D, the number of document bounds
//   i32[S]   tokens of each sequence
//   i64[S]   byte offset of each sequence in the .bin file
//   i64[D]   document bounds: document d is sequences [bound d, bound d+1)
// Datasets with images have i8[S] modes after that, and are refused.
//
//===----------------------------------------------------------------------===//

#include "gtp-rt/DatasetIndex.h"

#include <cstring>
#include <string>

using namespace gtp;
using namespace gtp::rt;

namespace {

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kHeaderBytes = 34;

/// By code, from 1.
struct IdType {
  const char *name;
  unsigned bytes; ///< 0: not a type of ids
  bool isSigned;
};
constexpr IdType kTypes[] = {
    {"uint8", 1, false},  {"int8", 1, true},    {"int16", 2, true},
    {"int32", 4, true},   {"int64", 8, true},   {"float64", 0, true},
    {"float32", 0, true}, {"uint16", 2, false},
};

} // namespace

/// A little-endian number at any address.
template <typename T>
static T load(const uint8_t *address) {
  uint64_t bits = 0;
  for (unsigned i = 0; i < sizeof(T); ++i)
    bits |= uint64_t(address[i]) << (8 * i);
  return static_cast<T>(bits);
}

static std::string text(uint64_t value) { return std::to_string(value); }

static Status checkType(unsigned code, DatasetIndex &index) {
  constexpr const char *kExpected =
      "; expected uint8, int8, int16, uint16, int32 or int64";
  if (code == 0 || code > std::size(kTypes))
    return Status::error("has ids of type " + text(code) +
                         ", which does not exist" + kExpected);
  const IdType &type = kTypes[code - 1];
  if (type.bytes == 0)
    return Status::error(std::string("has ids of type ") + type.name +
                         kExpected);
  index.tokenBytes = type.bytes;
  index.isSigned = type.isSigned;
  return Status::ok();
}

/// The file is as long as its counts say.
static Status checkSize(uint64_t size, uint64_t sequences, uint64_t bounds) {
  uint64_t rest = size - kHeaderBytes;
  std::string found = "has " + text(size) + " bytes; " + text(sequences) +
                      " sequences and " + text(bounds) + " document bounds";
  // Compared as quotients: the products may overflow.
  if (sequences > rest / 12 || bounds > (rest - 12 * sequences) / 8)
    return Status::error(found + " need more");
  uint64_t extra = rest - 12 * sequences - 8 * bounds;
  if (extra == 0)
    return Status::ok();
  if (extra == sequences)
    return Status::error("has a mode for each sequence, as datasets with "
                         "images do; expected one of text alone");
  return Status::error(found + " make " + text(size - extra));
}

static Status checkSequences(const uint8_t *lengths, const uint8_t *offsets,
                             DatasetIndex &index) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < index.sequences; ++i) {
    auto length = load<int32_t>(lengths + 4 * i);
    auto offset = load<int64_t>(offsets + 8 * i);
    if (length < 0)
      return Status::error("sequence " + text(i) + " has length " +
                           std::to_string(length) + "; expected 0 or more");
    if (offset < 0 || uint64_t(offset) != bytes)
      return Status::error(
          "sequence " + text(i) + " starts at byte " + std::to_string(offset) +
          ", where those before it end at byte " + text(bytes));
    uint64_t more = uint64_t(length) * index.tokenBytes;
    if (more > uint64_t(INT64_MAX) - bytes)
      return Status::error("sequence " + text(i) +
                           " ends at a byte above 2^63");
    bytes += more;
  }
  index.tokens = bytes / index.tokenBytes;
  return Status::ok();
}

static Status checkDocuments(const uint8_t *bounds, uint64_t count,
                             uint64_t sequences) {
  int64_t previous = 0;
  for (uint64_t i = 0; i < count; ++i) {
    auto bound = load<int64_t>(bounds + 8 * i);
    if (i == 0 ? bound != 0 : bound < previous)
      return Status::error(
          "document bound " + text(i) + " is " + std::to_string(bound) +
          "; expected " +
          (i == 0 ? "0" : std::to_string(previous) + " or more"));
    previous = bound;
  }
  if (uint64_t(previous) != sequences)
    return Status::error(
        "the last document bound is " + std::to_string(previous) +
        "; expected the number of sequences, " + text(sequences));
  return Status::ok();
}

StatusOr<DatasetIndex> DatasetIndex::parse(const uint8_t *bytes,
                                           uint64_t size) {
  if (size < kHeaderBytes)
    return Status::error("has " + text(size) +
                         " bytes; the index of a dataset has at least " +
                         text(kHeaderBytes));
  if (std::memcmp(bytes, kMagic, sizeof kMagic) != 0)
    return Status::error("does not start with MMIDIDX; expected the index of "
                         "a dataset that Megatron-LM wrote");
  auto version = load<uint64_t>(bytes + 9);
  if (version != 1)
    return Status::error("has version " + text(version) + "; expected 1");
  DatasetIndex index;
  GTP_RETURN_IF_ERROR(checkType(bytes[17], index));
  index.sequences = load<uint64_t>(bytes + 18);
  auto bounds = load<uint64_t>(bytes + 26);
  GTP_RETURN_IF_ERROR(checkSize(size, index.sequences, bounds));
  if (bounds == 0)
    return Status::error("has no document bounds; expected at least 1, of 0");
  const uint8_t *lengths = bytes + kHeaderBytes;
  const uint8_t *offsets = lengths + 4 * index.sequences;
  GTP_RETURN_IF_ERROR(checkSequences(lengths, offsets, index));
  GTP_RETURN_IF_ERROR(
      checkDocuments(offsets + 8 * index.sequences, bounds, index.sequences));
  index.documents = bounds - 1;
  return index;
}
