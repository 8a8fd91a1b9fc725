//===- Sizes.h - Bounds and checks that all families share ----------------===//

#ifndef GTP_LIB_IMPORT_SIZES_H
#define GTP_LIB_IMPORT_SIZES_H

#include "ConfigReader.h"
#include "gtp/Import/Import.h"

namespace gtp {

// Bounds on single sizes: beyond any model, and small enough that the products
// of them fit 63 bits and that building the program takes seconds at most.
inline constexpr int64_t kMaxVocabulary = int64_t(1) << 24;
inline constexpr int64_t kMaxFeatures = int64_t(1) << 20;
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = int64_t(1) << 14;
inline constexpr int64_t kMaxHeadDim = int64_t(1) << 13;
inline constexpr int64_t kMaxPositions = int64_t(1) << 30;
inline constexpr int64_t kMaxSequence = int64_t(1) << 24;

/// Tokens a sequence: the option's, or the default.
int64_t sequenceOf(int64_t maxPositions, const ImportOptions &options);

/// Sizes of activations depend on the command line too: `widest` is the
/// features of the largest. A sequence longer than the model's positions is an
/// error when those are `learned`, else a warning.
void checkSequence(const ConfigObject &object, llvm::StringRef positionsKey,
                   int64_t maxPositions, int64_t widest, bool learned,
                   const ImportOptions &options);

/// hidden / heads, or an error when that is no integer.
int64_t headDimOf(const ConfigObject &object, llvm::StringRef hiddenKey,
                  int64_t hidden, llvm::StringRef headsKey, int64_t heads);

/// Weights in other types than --dtype are no checkpoint to train from.
void refuseQuantization(const ConfigObject &object);

/// Whether the activation at `key`, "`fallback`" when absent, is a gelu by the
/// tanh formula; anything but a gelu is an error.
bool isTanhGelu(const ConfigObject &object, llvm::StringRef key,
                llvm::StringRef fallback);

/// A rate of dropout is checked, not applied, and warned of above 0.
void readDropout(const ConfigObject &object, llvm::StringRef key,
                 const ImportOptions &options, double fallback = 0.0);

} // namespace gtp

#endif // GTP_LIB_IMPORT_SIZES_H
