//===- TfmInterfaces.h - How tfm ops describe themselves ------------------===//

#ifndef GTP_DIALECTS_TFM_TFMINTERFACES_H
#define GTP_DIALECTS_TFM_TFMINTERFACES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include <cstdint>
#include <string>

namespace gtp::tfm {

/// Which dimensions of an op's operands and results are one and the same, and
/// what cutting one does. Dimensions of one *factor* are cut together. A result
/// without a cut factor is a partial sum over the axes that cut it.
struct PlacementRule {
  enum class Factor {
    Parallel, ///< may be cut
    Whole,    ///< each rank needs all of it (a normalized dimension)
  };
  llvm::SmallVector<Factor> factors;
  /// For each factor the number of indivisible units its dimensions consist of
  /// (attention heads); 0: cut anywhere. Rank r of n gets whole units.
  llvm::SmallVector<int64_t> units;
  /// For each operand (result) the factor of each of its dimensions.
  llvm::SmallVector<llvm::SmallVector<unsigned>> operands;
  llvm::SmallVector<llvm::SmallVector<unsigned>> results;
  /// Linear in all operands together (add) or in its only one: a partial
  /// operand may pass, and gives partial results. All else needs operands that
  /// are whole.
  bool linearInPartial = false;
  /// Works row by row on shards at rest: cuts along storage axes may stay
  /// (optimizer updates). Other ops get such a weight gathered.
  bool acceptsStorageCuts = false;

  /// Appends a factor and returns its index.
  unsigned addFactor(Factor kind = Factor::Parallel, int64_t unitCount = 0) {
    factors.push_back(kind);
    units.push_back(unitCount);
    return factors.size() - 1;
  }
};

/// What limits an op, with the work it does. Counted on the op's own types, so
/// on local shapes after partitioning.
struct OpCost {
  enum class Resource { Matrix, Vector, Memory };
  Resource resource = Resource::Memory;
  int64_t flops = 0;
  int64_t bytes = 0; ///< read and written
};

/// What a vector-Jacobian product may choose.
struct VjpOptions {
  /// Element type of the gradients of weights.
  mlir::Type gradientType;
  /// Gradients of attention may sum in any order.
  bool fastAttention = false;
};

/// Bytes of all ranked tensors among the types; 0 for others.
int64_t tensorBytes(mlir::TypeRange types);

} // namespace gtp::tfm

#include "dialects/Tfm/TfmInterfaces.h.inc"

#endif // GTP_DIALECTS_TFM_TFMINTERFACES_H
