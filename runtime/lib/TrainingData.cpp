//===- TrainingData.cpp - Several texts, each with its share --------------===//

#include "gtp-rt/TrainingData.h"
#include "gtp-rt/Philox.h"

using namespace gtp;
using namespace gtp::rt;

StatusOr<TrainingData> TrainingData::open(const TrainingDataOptions &options) {
  TrainingData data;
  double sum = 0;
  for (size_t i = 0; i < options.data.size(); ++i) {
    TokenFileOptions file;
    file.data = options.data[i].path;
    if (!options.labels.empty())
      file.labels = options.labels[i];
    file.tokenBits = options.tokenBits;
    file.vocabulary = options.vocabulary;
    file.sequence = options.sequence;
    file.documentSeparator = options.documentSeparator;
    GTP_ASSIGN_OR_RETURN(TokenFile text, TokenFile::open(file));
    data.texts.push_back(std::move(text));
    data.sums.push_back(sum += options.data[i].weight);
  }
  return data;
}

size_t TrainingData::fileOf(uint64_t seed, uint64_t sample,
                            uint64_t step) const {
  uint64_t random = philox2x64(seed, sample, step)[1];
  double point = double(random >> 11) * 0x1p-53 * sums.back();
  size_t index = 0;
  while (index + 1 < sums.size() && point >= sums[index])
    ++index;
  return index;
}

void TrainingData::readSample(uint64_t seed, uint64_t sample, uint64_t step,
                              int32_t *tokens, int32_t *labels) const {
  const TokenFile &text = texts[fileOf(seed, sample, step)];
  text.readSample(text.sampleOffset(seed, sample, step), tokens, labels);
}
