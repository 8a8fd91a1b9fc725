//===- Sizes.cpp - Bounds and checks that all families share --------------===//

#include "Sizes.h"

#include <algorithm>
#include <limits>

using namespace gtp;
using llvm::StringRef;
using llvm::Twine;

/// Bytes of one activation of all ranks.
static constexpr int64_t kMaxTensorBytes = int64_t(1) << 60;

static constexpr int64_t kDefaultSequence = 2048;

int64_t gtp::sequenceOf(int64_t maxPositions, const ImportOptions &options) {
  return options.sequence ? options.sequence
                          : std::min(kDefaultSequence, maxPositions);
}

void gtp::checkSequence(const ConfigObject &object, StringRef positionsKey,
                        int64_t maxPositions, int64_t widest, bool learned,
                        const ImportOptions &options) {
  int64_t sequence = sequenceOf(maxPositions, options);
  int64_t limit = kMaxTensorBytes / (widest * int64_t(sizeof(double)));
  if (sequence < 1 || sequence > kMaxSequence || options.microBatch < 1 ||
      options.dataRanks < 1 || options.microbatches < 1 ||
      options.microBatch > limit / sequence / options.dataRanks ||
      options.microbatches >
          kMaxTensorBytes / sequence / options.dataRanks / options.microBatch) {
    object.error("", "a batch of " + Twine(options.dataRanks) +
                         " data ranks with " + Twine(options.microBatch) +
                         " sequences of " + Twine(sequence) +
                         " tokens is too large");
    return;
  }
  if (sequence <= maxPositions || object.reader().failed())
    return;
  if (learned)
    object.error(positionsKey,
                 "a sequence of " + Twine(sequence) +
                     " tokens is longer than the " + Twine(maxPositions) +
                     " positions that the model has learned; use at most "
                     "--seq=" +
                     Twine(maxPositions));
  else
    object.warn(positionsKey, "a sequence of " + Twine(sequence) +
                                  " tokens is longer than the " +
                                  Twine(maxPositions) +
                                  " positions that the model was made for");
}

int64_t gtp::headDimOf(const ConfigObject &object, StringRef hiddenKey,
                       int64_t hidden, StringRef headsKey, int64_t heads) {
  if (hidden % heads != 0)
    object.error(headsKey, "'" + Twine(hiddenKey) + "' " + Twine(hidden) +
                               " is not a multiple of '" + headsKey + "' " +
                               Twine(heads));
  return hidden / heads;
}

void gtp::refuseQuantization(const ConfigObject &object) {
  object.refuse("quantization_config",
                "weights are trained in --dtype; give the config of the "
                "unquantized model");
}

bool gtp::isTanhGelu(const ConfigObject &object, StringRef key,
                     StringRef fallback) {
  StringRef name = object.string(key).value_or(fallback);
  if (name == "gelu_new" || name == "gelu_pytorch_tanh")
    return true;
  if (name != "gelu")
    object.error(key, "'" + Twine(key) + "': \"" + name +
                          "\" is not supported; supported: gelu, gelu_new, "
                          "gelu_pytorch_tanh");
  return false;
}

void gtp::readDropout(const ConfigObject &object, StringRef key,
                      const ImportOptions &options, double fallback) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  double rate = object.number(key, kLowest).value_or(fallback);
  if (rate < 0.0 || rate >= 1.0)
    object.wrongType(key, *object.get(key),
                     "a rate of at least 0 and less than 1");
  else if (rate != 0.0 && !options.dropoutAcknowledged)
    object.warn(key,
                "dropout is not applied; --dropout=0 says that this is meant");
}
