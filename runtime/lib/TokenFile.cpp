//===- TokenFile.cpp - The training text, and which sample starts where ---===//

#include "gtp-rt/TokenFile.h"
#include "gtp-rt/DatasetIndex.h"
#include "gtp-rt/Philox.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt;

/// A little-endian number of `bytes` bytes.
static int64_t loadId(const uint8_t *address, unsigned bytes, bool isSigned) {
  uint64_t id = 0;
  for (unsigned i = 0; i < bytes; ++i)
    id |= uint64_t(address[i]) << (8 * i);
  unsigned unused = 64 - 8 * bytes;
  return isSigned ? int64_t(id << unused) >> unused : int64_t(id);
}

static bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

bool gtp::rt::isDatasetIndex(std::string_view path) {
  return endsWith(path, ".idx");
}

/// "PREFIX.bin" of "PREFIX.idx" and the other way round.
static std::string sibling(const std::string &path, const char *extension) {
  return path.substr(0, path.size() - 4) + extension;
}

std::string gtp::rt::datasetIds(const std::string &path) {
  return sibling(path, ".bin");
}

static StatusOr<MappedFile> map(const std::string &path) {
  auto mapped = MappedFile::open(path);
  if (!mapped.isOk())
    return std::move(mapped).status().in(path);
  return mapped;
}

Status TokenFile::mapDataset(const std::string &path) {
  GTP_ASSIGN_OR_RETURN(MappedFile file, map(path));
  auto index = DatasetIndex::parse(file.data(), file.size());
  if (!index.isOk())
    return std::move(index).status().in(path);
  std::string ids = datasetIds(path);
  GTP_ASSIGN_OR_RETURN(data, map(ids));
  // tokens < 2^63 / tokenBytes
  if (data.size() != index->tokens * index->tokenBytes)
    return Status::error("has " + std::to_string(data.size()) + " bytes; the " +
                         std::to_string(index->tokens) +
                         " tokens of its index " + path + " make " +
                         std::to_string(index->tokens * index->tokenBytes))
        .in(ids);
  tokenBytes = index->tokenBytes;
  isSigned = index->isSigned;
  tokens = index->tokens;
  documentCount = index->documents;
  return Status::ok();
}

Status TokenFile::mapIds(const TokenFileOptions &options) {
  const std::string &path = options.data;
  // The ids of a dataset would pass for raw bytes.
  if (options.tokenBits == 8 && endsWith(path, ".bin")) {
    std::string index = sibling(path, ".idx");
    auto file = MappedFile::open(index);
    if (file.isOk() && file->text().substr(0, 7) == "MMIDIDX")
      return Status::error("has an index beside it; --data=" + index +
                           " reads the dataset, --token-bits=16|32 only ids")
          .in(path);
  }
  GTP_ASSIGN_OR_RETURN(data, map(path));
  tokenBytes = options.tokenBits / 8;
  if (data.size() % tokenBytes != 0)
    return Status::error("has " + std::to_string(data.size()) +
                         " bytes, which is not a whole number of " +
                         std::to_string(options.tokenBits) + "-bit ids")
        .in(path);
  tokens = data.size() / tokenBytes;
  return Status::ok();
}

StatusOr<TokenFile> TokenFile::open(const TokenFileOptions &options) {
  TokenFile file;
  file.sequence = options.sequence;
  file.documentSeparator = options.documentSeparator;
  GTP_RETURN_IF_ERROR(isDatasetIndex(options.data)
                          ? file.mapDataset(options.data)
                          : file.mapIds(options));
  if (file.tokens <= options.sequence)
    return Status::error("has " + std::to_string(file.tokens) +
                         " tokens; a sequence of " +
                         std::to_string(options.sequence) +
                         " and its last label need at least " +
                         std::to_string(options.sequence + 1))
        .in(options.data);
  std::string ids =
      isDatasetIndex(options.data) ? datasetIds(options.data) : options.data;
  GTP_RETURN_IF_ERROR(file.checkTokens(options.vocabulary).in(ids));
  if (options.labels.empty())
    return file;

  file.ownLabels = true;
  GTP_ASSIGN_OR_RETURN(file.labels, map(options.labels));
  if (file.labels.size() != 4 * file.tokens)
    return Status::error("has " + std::to_string(file.labels.size()) +
                         " bytes; one int32 for each of the " +
                         std::to_string(file.tokens) + " tokens of " +
                         options.data + " makes " +
                         std::to_string(4 * file.tokens))
        .in(options.labels);
  GTP_RETURN_IF_ERROR(file.checkLabels(options.vocabulary).in(options.labels));
  return file;
}

/// "token 7 (byte offset 14): id 300 is outside the vocabulary, 0 to 256".
static Status outside(const char *what, uint64_t index, unsigned bytes,
                      const std::string &found, uint64_t vocabulary,
                      const char *otherwise) {
  return Status::error(std::string(what) + " " + std::to_string(index) +
                       " (byte offset " + std::to_string(index * bytes) +
                       ") is " + found +
                       ", outside the vocabulary: expected 0 to " +
                       std::to_string(vocabulary - 1) + otherwise);
}

Status TokenFile::checkTokens(uint64_t vocabulary) const {
  if (tokenBytes == 1 && !isSigned && vocabulary > 255)
    return Status::ok();
  for (uint64_t i = 0; i < tokens; ++i) {
    int64_t id = loadId(data.data() + i * tokenBytes, tokenBytes, isSigned);
    if (id < 0 || uint64_t(id) >= vocabulary)
      return outside("token", i, tokenBytes, std::to_string(id), vocabulary,
                     "");
  }
  return Status::ok();
}

Status TokenFile::checkLabels(uint64_t vocabulary) const {
  for (uint64_t i = 0; i < tokens; ++i) {
    int32_t id = label(i);
    if (id != kIgnoredLabel && (id < 0 || uint64_t(id) >= vocabulary))
      return outside("label", i, 4, std::to_string(id), vocabulary,
                     ", or -100 for a position not counted");
  }
  return Status::ok();
}

int32_t TokenFile::token(uint64_t index) const {
  return int32_t(
      loadId(data.data() + index * tokenBytes, tokenBytes, isSigned));
}

int32_t TokenFile::label(uint64_t index) const {
  return ownLabels ? int32_t(loadId(labels.data() + 4 * index, 4, true))
                   : token(index);
}

uint64_t TokenFile::sampleOffset(uint64_t seed, uint64_t sample,
                                 uint64_t step) const {
  return philox2x64(seed, sample, step)[0] % (tokens - sequence);
}

int32_t TokenFile::target(uint64_t index) const {
  // What follows a separator is another document's.
  if (documentSeparator &&
      static_cast<uint32_t>(token(index)) == *documentSeparator)
    return kIgnoredLabel;
  return label(index + 1);
}

void TokenFile::readSample(uint64_t offset, int32_t *tokenOut,
                           int32_t *labelOut) const {
  for (uint64_t j = 0; j < sequence; ++j) {
    tokenOut[j] = token(offset + j);
    labelOut[j] = target(offset + j);
  }
}
