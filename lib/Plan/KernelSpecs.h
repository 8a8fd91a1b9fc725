//===- KernelSpecs.h - Words that the registry is written in ----*- C++ -*-===//

#ifndef GTP_LIB_PLAN_KERNELSPECS_H
#define GTP_LIB_PLAN_KERNELSPECS_H

#include "gtp/Plan/KernelRegistry.h"

namespace gtp::plan {

/// The registry's kernels that do work of their own, in order of their names.
std::vector<KernelSpec> plainKernels();

/// Those that do the work of others of it.
std::vector<KernelSpec> fusedKernels();

namespace specs {

using Spec = OperandSpec;

inline Spec read(std::string_view name) { return {name, Access::Read}; }
inline Spec write(std::string_view name) { return {name, Access::Write}; }
inline Spec update(std::string_view name) { return {name, Access::ReadWrite}; }

inline Spec strided(Spec spec) {
  spec.strided = true;
  return spec;
}
inline Spec accumulable(Spec spec) {
  spec.accumulable = true;
  return spec;
}
inline Spec role(Role role, Spec spec) {
  spec.role = role;
  return spec;
}
inline Spec variadic(uint32_t minCount, uint32_t maxCount, Spec spec) {
  spec.variadic = true;
  spec.minCount = minCount;
  spec.maxCount = maxCount;
  return spec;
}
inline Spec use(Spec spec) {
  spec.identifiesUse = true;
  return spec;
}
inline Spec cotangent(Spec spec) {
  spec.cotangent = true;
  return spec;
}
inline Spec slopeOne(Spec spec) {
  spec.slopeOne = true;
  return spec;
}
inline Spec weight(std::string_view name) {
  return role(Role::Weight, read(name));
}
inline Spec gradient(std::string_view name) {
  return role(Role::Gradient, accumulable(write(name)));
}
/// Where the document of each token starts; none: at the start of the sequence.
inline Spec starts() { return variadic(0, 1, read("starts")); }
inline Spec scratch() { return role(Role::Scratch, update("scratch")); }
/// Of a kernel that computes the same without it, maybe more slowly.
inline Spec optionalScratch() { return variadic(0, 1, scratch()); }

// Words of the table, which read better without a k.
// NOLINTBEGIN(readability-identifier-naming)
constexpr uint32_t any = UINT32_MAX;
constexpr auto Float = AttributeSpec::Kind::Float;
constexpr auto Int = AttributeSpec::Kind::Int;
constexpr auto Constant = AttributeSpec::Kind::Constant;
// NOLINTEND(readability-identifier-naming)

} // namespace specs
} // namespace gtp::plan

#endif // GTP_LIB_PLAN_KERNELSPECS_H
