//===- CallSite.h - A plan's kernel call as a backend sees it -------------===//
//
// A backend turns a call of a plan, already verified against the registry, into
// a body that only needs addresses. That happens at load and does everything
// that is the same in every step; bodies keep no state and allocate nothing.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_EXECUTOR_CALLSITE_H
#define GTP_RUNTIME_EXECUTOR_CALLSITE_H

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/Status.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace gtp::rt {

/// An operand's elements as rows of its last dimension.
struct Shape {
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t pitch = 0;
  uint64_t elementBytes = 0;

  uint64_t elements() const { return rows * columns; }
};

Shape shapeOf(const plan::pb::Operand &operand);

/// Where an operand is on this rank in this iteration.
struct Argument {
  std::byte *data = nullptr;
  /// Add to what is there.
  bool add = false;
};

struct KernelCall {
  const Argument *arguments;
  /// The rank's coordinate on each axis of the mesh, 0 on those it lacks.
  const uint64_t *coordinates;
  /// The plan's stream that the operation is issued to.
  uint32_t stream = 0;

  float *f32(size_t operand) const { return as<float>(operand); }
  template <typename T>
  T *as(size_t operand) const {
    return reinterpret_cast<T *>(arguments[operand].data);
  }
  bool add(size_t operand) const { return arguments[operand].add; }
};

using KernelBody = std::function<Status(const KernelCall &)>;

/// A verified call, at load.
class CallSite {
public:
  CallSite(const plan::pb::Plan &plan, const plan::pb::Kernel &kernel,
           const plan::KernelSpec &spec)
      : plan(plan), kernel(kernel), spec(spec) {}

  /// The same call with other operands.
  CallSite withKernel(const plan::pb::Kernel &other) const {
    return {plan, other, spec};
  }
  /// The call as one of another kernel.
  CallSite asKernel(const plan::pb::Kernel &other,
                    const plan::KernelSpec &kind) const {
    return {plan, other, kind};
  }
  const plan::pb::Kernel &proto() const { return kernel; }
  const plan::KernelSpec &kind() const { return spec; }
  /// What the registry says of an operand.
  const plan::OperandSpec &operandKind(size_t index) const {
    return *plan::operandSpec(spec, index, count());
  }

  std::string_view name() const { return spec.name; }
  size_t count() const { return static_cast<size_t>(kernel.operands_size()); }
  const plan::pb::Operand &operand(size_t index) const {
    return kernel.operands(static_cast<int>(index));
  }
  Shape shape(size_t index) const { return shapeOf(operand(index)); }
  uint64_t dim(size_t index, int dimension) const {
    return operand(index).dims(dimension);
  }

  double real(std::string_view name) const {
    return plan::floatAttribute(plan, kernel, name);
  }
  int64_t integer(std::string_view name) const {
    return plan::intAttribute(plan, kernel, name);
  }
  const plan::pb::FloatList &constant(std::string_view name) const {
    return *plan::constantAttribute(plan, kernel, name);
  }

  /// "'q' bf16[2, 4] ...", for messages.
  std::string text(size_t index) const;

private:
  const plan::pb::Plan &plan;
  const plan::pb::Kernel &kernel;
  const plan::KernelSpec &spec;
};

} // namespace gtp::rt

#endif // GTP_RUNTIME_EXECUTOR_CALLSITE_H
