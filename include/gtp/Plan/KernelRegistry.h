//===- KernelRegistry.h - What every kernel reads, writes and means -------===//
//
// The one table that compiler, checker and backends share. A plan names a
// kernel and gives typed operands; everything else (which operands are read or
// written, what the numbers mean, which contribution a gradient kernel makes)
// is here, so that the checker derives accesses and trusts no label. No LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_KERNELREGISTRY_H
#define GTP_PLAN_KERNELREGISTRY_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gtp::plan {

/// How a kernel touches an operand.
enum class Access { Read, Write, ReadWrite };

/// What an operand is to the abstract interpreter of the checker.
enum class Role {
  Value,       ///< an activation, a scalar, data
  Weight,      ///< a full weight, of the version of this step
  Gradient,    ///< written: a contribution to the gradient of the kernel's
               ///< parameter; read: that gradient, whole
  Master,      ///< a persistent shard that an update kernel advances
  Compute,     ///< the compute-precision shard that an update kernel publishes
  Remainder,   ///< what the master's type does not hold of a split master
  State,       ///< optimizer state
  Hyper,       ///< the input of that name: rates of this step
  SquaredNorm, ///< the sum of squares of every trained gradient
  Scale,       ///< written: the factor of every gradient; read: that factor
  Scratch,     ///< contents undefined before and after
};

struct OperandSpec {
  std::string_view name;
  Access access;
  Role role = Role::Value;
  /// `Operand.accumulate` may be set: later iterations add.
  bool accumulable = false;
  /// Takes `minCount` to `maxCount` operands; at most one such operand a
  /// kernel.
  bool variadic = false;
  uint32_t minCount = 1;
  uint32_t maxCount = 1;
  /// `Operand.pitch` may exceed the last dimension.
  bool strided = false;
  /// The activation that tells one use of a weight from another: a forward
  /// kernel and the gradient kernel of the same use read the same value here.
  /// On a weight and its gradient, where that needs no activation (a bias):
  /// uses are counted but not told apart.
  bool identifiesUse = false;
  /// The gradient of the forward kernel's result. All kernels that are about
  /// one use of a parameter read the same.
  bool cotangent = false;
  /// The gradient of the result is also that of this operand, so a parameter
  /// added to a value has the contributions that the value's producer has.
  bool slopeOne = false;
};

/// How a kernel's result relates to the gradient of a parameter.
enum class Contribution {
  None,
  Produces, ///< makes a contribution of its own (wgrad, norm and embedding
            ///< gradients)
  Merges,   ///< linear in its inputs: unites their contributions (add, cast,
            ///< keep_first)
};

/// What a kernel sums over. Axes that cut it leave the result partial over
/// them.
enum class SumsOver {
  Nothing,
  Tokens,   ///< the rows of activations, which the data axes cut
  Elements, ///< every element of its operand, which the axes of its layout cut
};

struct AttributeSpec {
  enum class Kind { Float, Int, Constant };
  std::string_view name;
  Kind kind;
  bool optional = false;
};

/// One of the kernels whose work a fused kernel does.
struct KernelPart {
  std::string_view kernel;
  /// For each of its operands the one of the fused kernel that it is, by index
  /// in that kernel's table. An operand that is written and read again is named
  /// by several parts.
  std::vector<unsigned> operands;
};

struct KernelSpec {
  std::string_view name;
  uint32_t version;
  std::vector<OperandSpec> operands;
  std::vector<AttributeSpec> attributes;
  Contribution contribution = Contribution::None;
  SumsOver sums = SumsOver::Nothing;
  bool deterministic = true;
  /// The formula, accumulation type and shape rule, for docs and messages.
  std::string_view meaning;
  /// The float attribute that every element written is; empty: none is.
  std::string_view fillAttribute = {};
  /// The attribute that is a mask of axes: ranks that are not first on all of
  /// them write zeros, so the result is partial over these. Empty: none.
  std::string_view keepFirstAttribute = {};
  /// Rows of the result are those of each input, one behind the other.
  bool concatenates = false;
  /// The integer attribute that, when it is not 0, leaves the order of sums to
  /// the backend, so that a result's last bits may differ between ranks and
  /// runs. Empty: none does.
  std::string_view fastAttribute = {};
  /// A fused kernel means these, one after the other: each rounds what it
  /// writes to the operand's type, and those behind it read that. Attributes of
  /// a part are those of its names. Empty: the kernel's meaning is its own.
  std::vector<KernelPart> parts = {};
  /// Of a fused kernel: what passes between its parts is not rounded, so that
  /// each backend has a body of its own for it.
  bool roundsOnce = false;

  /// Whether running its parts one after the other is what it means.
  bool runsAsParts() const { return !parts.empty() && !roundsOnce; }
};

/// All kernels, in name order.
const std::vector<KernelSpec> &kernelRegistry();

/// Null when there is no kernel of that name.
const KernelSpec *lookupKernel(std::string_view name);

/// The spec of operand `index` of a call with `count` operands, variadic ones
/// expanded; null when the call has a wrong number of operands.
const OperandSpec *operandSpec(const KernelSpec &kernel, size_t index,
                               size_t count);

/// How many weights a call of the kernel reads, 0 to 2.
unsigned weightCount(const KernelSpec &kernel);

} // namespace gtp::plan

#endif // GTP_PLAN_KERNELREGISTRY_H
