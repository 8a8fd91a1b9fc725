//===- KernelLookup.cpp - Finding kernels and their operands --------------===//

#include "KernelSpecs.h"

#include <algorithm>
#include <iterator>

using namespace gtp::plan;

const std::vector<KernelSpec> &gtp::plan::kernelRegistry() {
  static const std::vector<KernelSpec> registry = [] {
    std::vector<KernelSpec> all = plainKernels();
    std::vector<KernelSpec> fused = fusedKernels();
    std::move(fused.begin(), fused.end(), std::back_inserter(all));
    std::sort(all.begin(), all.end(),
              [](const KernelSpec &a, const KernelSpec &b) {
                return a.name < b.name;
              });
    return all;
  }();
  return registry;
}

const KernelSpec *gtp::plan::lookupKernel(std::string_view name) {
  const std::vector<KernelSpec> &registry = kernelRegistry();
  auto it = std::lower_bound(registry.begin(), registry.end(), name,
                             [](const KernelSpec &spec, std::string_view key) {
                               return spec.name < key;
                             });
  return it != registry.end() && it->name == name ? &*it : nullptr;
}

const OperandSpec *gtp::plan::operandSpec(const KernelSpec &kernel,
                                          size_t index, size_t count) {
  size_t least = 0, most = 0;
  for (const OperandSpec &spec : kernel.operands) {
    least += spec.variadic ? spec.minCount : 1;
    most += spec.variadic ? spec.maxCount : 1;
  }
  if (count < least || count > most || index >= count)
    return nullptr;
  for (const OperandSpec &spec : kernel.operands) {
    size_t taken = spec.variadic ? spec.minCount + (count - least) : 1;
    if (index < taken)
      return &spec;
    index -= taken;
  }
  return nullptr;
}

unsigned gtp::plan::weightCount(const KernelSpec &kernel) {
  return static_cast<unsigned>(std::count_if(
      kernel.operands.begin(), kernel.operands.end(),
      [](const OperandSpec &spec) { return spec.role == Role::Weight; }));
}
