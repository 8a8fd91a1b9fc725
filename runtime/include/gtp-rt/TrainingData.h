//===- TrainingData.h - Several texts, each with its share ----------------===//

#ifndef GTP_RT_TRAININGDATA_H
#define GTP_RT_TRAININGDATA_H

#include "gtp-rt/TokenFile.h"

#include <string>
#include <utility>
#include <vector>

namespace gtp::rt {

/// A file of --data.
struct DataFile {
  std::string path;
  double weight = 1; ///< above 0; samples come from it in proportion
};

struct TrainingDataOptions {
  std::vector<DataFile> data;      ///< at least one
  std::vector<std::string> labels; ///< none, or one a file of data
  unsigned tokenBits = 8;
  uint64_t vocabulary = 0;
  uint64_t sequence = 0;
  std::optional<uint32_t> documentSeparator; ///< as of TokenFileOptions
};

/// What samples are drawn from: a function of the seed, the sample and the
/// step alone.
class TrainingData {
public:
  static StatusOr<TrainingData> open(const TrainingDataOptions &options);

  size_t files() const { return texts.size(); }
  const TokenFile &file(size_t index) const { return texts[index]; }
  /// Which file sample `sample` (the global sequence index) of step `step` is
  /// from: with x the second u64 of the block whose first gives the offset and
  /// u = (x >> 11) / 2^53, the first whose weight, added to those before it, is
  /// above u times the sum of all.
  size_t fileOf(uint64_t seed, uint64_t sample, uint64_t step) const;
  /// The tokens of a sample, and the labels of their successors.
  void readSample(uint64_t seed, uint64_t sample, uint64_t step,
                  int32_t *tokens, int32_t *labels) const;

private:
  std::vector<TokenFile> texts;
  std::vector<double> sums; // of the weights up to each file
};

} // namespace gtp::rt

#endif // GTP_RT_TRAININGDATA_H
