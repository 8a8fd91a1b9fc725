//===- CostModel.h - What the ops of a partitioned step cost --------------===//
//
// Puts the work that ops declare (CostOpInterface) and the collectives of the
// gtp dialect to a machine profile. Read-only.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_ANALYSIS_COSTMODEL_H
#define GTP_ANALYSIS_COSTMODEL_H

#include "dialects/Gtp/GtpDialect.h"
#include "gtp/Machine/Profile.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace gtp {

/// A collective of a partitioned program, in either form.
struct CollectiveSpec {
  dist::CollectiveKind kind;
  mlir::Value source;
  /// What users read: the result's type, or the ticket's tensor.
  mlir::RankedTensorType resultType;
  /// Major to minor.
  llvm::SmallVector<mlir::StringAttr> axes;
  /// Dimension that is joined or cut; 0 for all_reduce.
  unsigned dim = 0;
  mlir::Type wire, accumulation;
  dist::Order order = dist::Order::Flat;
  /// Local shape of the long side: padding of all shards included.
  llvm::SmallVector<int64_t> fullShape;

  int64_t fullBytes() const;
  bool isGather() const {
    return kind == dist::CollectiveKind::Materialize ||
           kind == dist::CollectiveKind::AllGather;
  }
};

/// The collective that an op issues; none for other ops.
std::optional<CollectiveSpec> collectiveSpec(mlir::Operation *op);

/// Whether an op runs a kernel on the compute stream: neither a collective nor
/// an op that only names memory (split, await, release, a joined concat).
bool runsKernel(mlir::Operation *op);

/// Whether every input of a concat can be written where the result has it, so
/// that no copy is left.
bool isJoinedInPlace(mlir::Operation *concat);

/// Uses of a value that read it: all but gtp.release.
llvm::SmallVector<mlir::OpOperand *> readingUses(mlir::Value value);

class CostModel {
public:
  CostModel(const machine::Profile &profile, dist::MeshAttr mesh)
      : profile(profile), mesh(mesh) {}

  const machine::Profile &machine() const { return profile; }

  /// Time on the compute stream; 0 when it runs no kernel.
  int64_t kernelNs(mlir::Operation *op) const;
  /// Scratch that its kernel needs.
  int64_t scratchBytes(mlir::Operation *op) const;
  int64_t copyNs(int64_t bytes) const { return profile.copyNs(bytes); }

  /// Reports at `loc` when no transport of the machine can carry it.
  mlir::FailureOr<machine::CollectivePrice> price(const CollectiveSpec &spec,
                                                  mlir::Location loc) const;
  machine::Group group(llvm::ArrayRef<mlir::StringAttr> axes) const;

private:
  const machine::Profile &profile;
  dist::MeshAttr mesh;
};

} // namespace gtp

#endif // GTP_ANALYSIS_COSTMODEL_H
