//===- TokenFile.cpp - The training text, and which sample starts where ---===//

#include "gtp-rt/TokenFile.h"
#include "gtp-rt/Philox.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt;

/// Little-endian unsigned number of `bytes` bytes.
static uint32_t loadId(const uint8_t *address, unsigned bytes) {
  uint32_t id = 0;
  for (unsigned i = 0; i < bytes; ++i)
    id |= uint32_t(address[i]) << (8 * i);
  return id;
}

StatusOr<TokenFile> TokenFile::open(const TokenFileOptions &options) {
  TokenFile file;
  file.tokenBytes = options.tokenBits / 8;
  file.sequence = options.sequence;
  auto mapped = MappedFile::open(options.data);
  if (!mapped.isOk())
    return std::move(mapped).status().in(options.data);
  file.data = std::move(*mapped);
  if (file.data.size() % file.tokenBytes != 0)
    return Status::error("has " + std::to_string(file.data.size()) +
                         " bytes, which is not a whole number of " +
                         std::to_string(options.tokenBits) + "-bit ids")
        .in(options.data);
  file.tokens = file.data.size() / file.tokenBytes;
  if (file.tokens <= options.sequence)
    return Status::error("has " + std::to_string(file.tokens) +
                         " tokens; a sequence of " +
                         std::to_string(options.sequence) +
                         " and its last label need at least " +
                         std::to_string(options.sequence + 1))
        .in(options.data);
  GTP_RETURN_IF_ERROR(file.checkTokens(options.vocabulary).in(options.data));
  if (options.labels.empty())
    return file;

  file.ownLabels = true;
  auto labels = MappedFile::open(options.labels);
  if (!labels.isOk())
    return std::move(labels).status().in(options.labels);
  file.labels = std::move(*labels);
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
  if (tokenBytes == 1 && vocabulary > 255)
    return Status::ok();
  for (uint64_t i = 0; i < tokens; ++i) {
    uint32_t id = loadId(data.data() + i * tokenBytes, tokenBytes);
    if (id >= vocabulary)
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
  return int32_t(loadId(data.data() + index * tokenBytes, tokenBytes));
}

int32_t TokenFile::label(uint64_t index) const {
  return ownLabels ? int32_t(loadId(labels.data() + 4 * index, 4))
                   : token(index);
}

uint64_t TokenFile::sampleOffset(uint64_t seed, uint64_t sample,
                                 uint64_t step) const {
  return philox2x64(seed, sample, step)[0] % (tokens - sequence);
}

void TokenFile::readSample(uint64_t offset, int32_t *tokenOut,
                           int32_t *labelOut) const {
  for (uint64_t j = 0; j < sequence; ++j) {
    tokenOut[j] = token(offset + j);
    labelOut[j] = label(offset + j + 1);
  }
}
