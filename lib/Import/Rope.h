//===- Rope.h - Rotary frequencies of a config ----------------------------===//

#ifndef GTP_LIB_IMPORT_ROPE_H
#define GTP_LIB_IMPORT_ROPE_H

#include "ConfigReader.h"

namespace gtp {

/// Reads `rope_theta`, `rope_scaling` and their successor `rope_parameters`,
/// and returns the angle a position of each of the headDim/2 pairs of features,
/// with any scaling applied. Types: default, linear, llama3.
llvm::SmallVector<double> readRopeFrequencies(const ConfigObject &config,
                                              int64_t headDim,
                                              double defaultTheta);

} // namespace gtp

#endif // GTP_LIB_IMPORT_ROPE_H
