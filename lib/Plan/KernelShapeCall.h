//===- KernelShapeCall.h - A call as its rules on shapes see it -----------===//

#ifndef GTP_LIB_PLAN_KERNELSHAPECALL_H
#define GTP_LIB_PLAN_KERNELSHAPECALL_H

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>
#include <type_traits>

namespace gtp::plan::shapes {

/// The first violated rule of one call. Rules after it are not evaluated, and a
/// dimension that does not exist reads as 0, so rules need no guards.
class Call {
public:
  Call(const pb::Plan &plan, const pb::Kernel &kernel, const KernelSpec &spec)
      : plan(plan), kernel(kernel), spec(spec) {}

  Status take() const {
    return problem.empty() ? Status::ok()
                           : Status::error("kernel " + std::string(spec.name) +
                                           ": " + problem);
  }

  /// Operand by the name of its spec; all kernels put variadic operands so that
  /// the first of the name is the one meant.
  int index(std::string_view name) const {
    return findOperands(spec, kernel, name).first;
  }
  const pb::Operand &at(std::string_view name) const {
    return kernel.operands(index(name));
  }
  uint64_t last(std::string_view name) const { return rowElements(at(name)); }
  uint64_t count(std::string_view name) const {
    return elementCount(at(name)).value_or(0);
  }
  uint64_t rows(std::string_view name) const {
    return last(name) ? count(name) / last(name) : 0;
  }
  uint64_t dim(std::string_view name, int i) const {
    return i < at(name).dims_size() ? at(name).dims(i) : 0;
  }
  uint64_t vocabulary() const { return plan.model().vocabulary(); }
  const pb::Model &model() const { return plan.model(); }
  int64_t integer(std::string_view name) const {
    return intAttribute(plan, kernel, name);
  }
  double real(std::string_view name) const {
    return floatAttribute(plan, kernel, name);
  }
  const pb::FloatList *constant(std::string_view name) const {
    return constantAttribute(plan, kernel, name);
  }
  OperandRange all(std::string_view name) const {
    return findOperands(spec, kernel, name);
  }
  const pb::Operand &at(int i) const { return kernel.operands(i); }

  /// An operand in a message; rendered only when the rule is violated.
  struct Ref {
    std::string_view name;
  };
  static Ref ref(std::string_view name) { return {name}; }

  template <typename... Parts>
  void require(bool holds, const Parts &...parts) {
    if (holds || !problem.empty())
      return;
    (append(parts), ...);
  }
  void type(std::string_view name, pb::DType expected) {
    require(at(name).dtype() == expected, ref(name), " must be ",
            dtypeName(expected));
  }
  void floating(std::string_view name) {
    require(isFloat(at(name).dtype()), ref(name), " must be a float type");
  }
  /// All of `names` have one float type.
  void sameFloat(std::initializer_list<std::string_view> names) {
    std::string_view first = *names.begin();
    floating(first);
    for (std::string_view name : names)
      require(at(name).dtype() == at(first).dtype(), ref(name),
              " must have the type of ", ref(first));
  }
  void sameShape(std::string_view a, std::string_view b) {
    require(sameDims(at(a), at(b)), ref(b), " must have the shape of ", ref(a));
  }
  static bool sameDims(const pb::Operand &a, const pb::Operand &b) {
    return std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(),
                      b.dims().end());
  }
  void sameRows(std::string_view a, std::string_view b) {
    require(rows(a) == rows(b), ref(a), " and ", ref(b),
            " must have the same number of rows");
  }
  void rank(std::string_view name, int expected) {
    require(at(name).dims_size() == expected, ref(name), " must have ",
            expected, " dimensions");
  }
  void scalar(std::string_view name, pb::DType expected) {
    type(name, expected);
    require(count(name) == 1, ref(name), " must have one element");
  }

private:
  void append(const char *text) { problem += text; }
  void append(Ref ref) {
    problem += "'" + std::string(ref.name) + "' " + describe(at(ref.name));
  }
  template <typename Number>
  std::enable_if_t<std::is_arithmetic_v<Number>> append(Number number) {
    problem += std::to_string(number);
  }

  const pb::Plan &plan;
  const pb::Kernel &kernel;
  const KernelSpec &spec;
  std::string problem;
};

} // namespace gtp::plan::shapes

#endif // GTP_LIB_PLAN_KERNELSHAPECALL_H
