//===- CostModel.h - What the ops of a partitioned step cost --------------===//
//
// Puts the work that ops declare (CostOpInterface) and the collectives of the
// gtp dialect to a machine profile. Read-only.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_ANALYSIS_COSTMODEL_H
#define GTP_ANALYSIS_COSTMODEL_H

#include "dialects/Gtp/GtpDialect.h"
#include "dialects/Plan/PlanDialect.h"
#include "gtp/Machine/Profile.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/Transport.h"
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
  /// As many elements in the type that they travel in.
  int64_t sentBytes() const;
  plan::CollectiveMeaning meaning(int64_t ranks) const;
  bool isGather() const {
    return kind == dist::CollectiveKind::Materialize ||
           kind == dist::CollectiveKind::AllGather;
  }
  /// What its communicator is for.
  planir::Purpose purpose() const;
  /// Its communicator's name: the purpose and the axes, in the mesh's order.
  std::string communicatorName() const;
};

/// A plan's name of an element type; DTYPE_INVALID for those that it lacks.
plan::pb::DType dtypeOf(mlir::Type type);

/// The collective that an op issues; none for other ops.
std::optional<CollectiveSpec> collectiveSpec(mlir::Operation *op);

/// The kernel of a tfm op, which has its name; null for other ops.
const plan::KernelSpec *kernelOf(mlir::Operation *op);

/// The kernel's operand that is the result of its op; null when there is none.
const plan::OperandSpec *kernelOperandOf(mlir::OpResult result);

/// The op's operand in whose memory its kernel writes the result, because
/// nothing else reads it; null when the result has memory of its own.
mlir::Value overwrittenBy(mlir::OpResult result);

/// The op's operand that the kernel reads in a role; null when there is none.
mlir::Value operandInRole(mlir::Operation *op, const plan::KernelSpec &kernel,
                          plan::Role role);

/// Whether an op runs a kernel on the compute stream: neither a collective nor
/// an op that only names memory (split, await, release, a joined concat).
bool runsKernel(mlir::Operation *op);

/// Whether every input of a concat can be written where the result has it, so
/// that no copy is left.
bool isJoinedInPlace(mlir::Operation *concat);

/// Uses of a value that read it: all but gtp.release.
llvm::SmallVector<mlir::OpOperand *> readingUses(mlir::Value value);

/// Prices ops of a program on a mesh by a machine's profile.
class CostModel {
public:
  CostModel(const machine::Profile &profile, dist::MeshAttr mesh)
      : profile(profile), mesh(mesh) {}

  const machine::Profile &machine() const { return profile; }

  /// Time on the compute stream; 0 when it runs no kernel.
  int64_t kernelNs(mlir::Operation *op) const;
  /// How much longer it takes, per mille, without the multiprocessors that
  /// collectives hold.
  int64_t crowdedPermille(mlir::Operation *op) const;
  /// Scratch that its kernel needs.
  int64_t scratchBytes(mlir::Operation *op) const;
  int64_t copyNs(int64_t bytes) const { return profile.copyNs(bytes); }

  /// By the transport of the least duration and contention, of those that
  /// compute what it means; of gathers, that of a large one, since a
  /// communicator's policy makes all of its gathers alike. Reports at `loc`
  /// when no transport of the machine can carry it.
  mlir::FailureOr<machine::CollectivePrice> price(const CollectiveSpec &spec,
                                                  mlir::Location loc) const;
  /// Scratch of the collective by the transport of its price.
  int64_t scratchBytes(const CollectiveSpec &spec,
                       const machine::CollectivePrice &price,
                       bool accumulates) const;

  /// The ranks of a collective over `axes`, as the network sees them.
  machine::Group group(llvm::ArrayRef<mlir::StringAttr> axes) const;

private:
  const machine::Profile &profile;
  dist::MeshAttr mesh;
};

} // namespace gtp

#endif // GTP_ANALYSIS_COSTMODEL_H
