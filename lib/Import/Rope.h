//===- Rope.h - Rotary frequencies of a config ----------------------------===//

#ifndef GTP_LIB_IMPORT_ROPE_H
#define GTP_LIB_IMPORT_ROPE_H

#include "ConfigReader.h"

namespace gtp {

/// What a family calls its base and, if it rotates a part of each head only,
/// that part; with what it takes when they are absent.
struct RopeKeys {
  double theta = 10000.0;
  llvm::StringLiteral thetaKey = "rope_theta";
  /// Empty: the whole head.
  llvm::StringLiteral partKey = "";
  double part = 1.0;
};

/// Reads the base, `rope_scaling` and its successor `rope_parameters`, and
/// returns the angle a position of each pair of features that turns (headDim/2,
/// or fewer), with any scaling applied. Types: default, linear, llama3.
llvm::SmallVector<double> readRopeFrequencies(const ConfigObject &config,
                                              int64_t headDim,
                                              const RopeKeys &keys);

} // namespace gtp

#endif // GTP_LIB_IMPORT_ROPE_H
