//===- TokenFile.h - The training text, and which sample starts where -----===//

#ifndef GTP_RT_TOKENFILE_H
#define GTP_RT_TOKENFILE_H

#include "gtp-rt/File.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gtp::rt {

/// The label of a position that the loss does not count.
constexpr int32_t kIgnoredLabel = -100;

struct TokenFileOptions {
  /// Ids, or the index (PREFIX.idx) of a dataset whose ids are in PREFIX.bin.
  std::string data;
  std::string labels; ///< int32, one a token; empty: the next token
  /// 8: raw bytes; 16, 32: little-endian ids. An index says it itself.
  unsigned tokenBits = 8;
  uint64_t vocabulary = 0;
  uint64_t sequence = 0;
  /// The id of the last token of each document.
  std::optional<uint32_t> documentSeparator;
};

/// Whether a path of data names the index of a dataset.
bool isDatasetIndex(std::string_view path);
/// The file of ids that belongs to the index `path`.
std::string datasetIds(const std::string &path);

/// Ids of a text, mapped, every id checked against the vocabulary at `open`.
class TokenFile {
public:
  static StatusOr<TokenFile> open(const TokenFileOptions &options);

  /// Number of tokens.
  uint64_t size() const { return tokens; }
  /// Of a dataset; 0 for a file without an index.
  uint64_t documents() const { return documentCount; }
  int32_t token(uint64_t index) const;
  /// What position `index` of the text is to be predicted as.
  int32_t label(uint64_t index) const;
  /// The label that the token at `index`, which is not the last, predicts: that
  /// of its successor, or none at the end of a document.
  int32_t target(uint64_t index) const;

  /// Where sample `sample` (the global sequence index) of step `step` (from 1)
  /// starts: the first u64 of Philox4x32-10(key = seed, counter = (sample,
  /// step)), modulo the number of places a sequence and its last label fit in.
  uint64_t sampleOffset(uint64_t seed, uint64_t sample, uint64_t step) const;

  /// Tokens o .. o+T-1 of a sample and the labels of their successors; those of
  /// document separators are not counted.
  void readSample(uint64_t offset, int32_t *tokens, int32_t *labels) const;

private:
  Status mapIds(const TokenFileOptions &options);
  Status mapDataset(const std::string &index);
  Status checkTokens(uint64_t vocabulary) const;
  Status checkLabels(uint64_t vocabulary) const;

  MappedFile data, labels;
  unsigned tokenBytes = 1;
  bool isSigned = false;
  bool ownLabels = false;
  uint64_t tokens = 0;
  uint64_t documentCount = 0;
  uint64_t sequence = 0;
  std::optional<uint32_t> documentSeparator;
};

} // namespace gtp::rt

#endif // GTP_RT_TOKENFILE_H
