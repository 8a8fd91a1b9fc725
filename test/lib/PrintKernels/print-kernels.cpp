//===- print-kernels.cpp - The kernel registry as a page ------------------===//
//
// Prints docs/reference/kernels.md; scripts/make-reference.py writes it.
//
//===----------------------------------------------------------------------===//

#include "gtp/Plan/KernelRegistry.h"

#include <iostream>
#include <string>

using namespace gtp::plan;

namespace {

const char *name(Access access) {
  switch (access) {
  case Access::Read:
    return "read";
  case Access::Write:
    return "write";
  case Access::ReadWrite:
    return "read, write";
  }
  return "?";
}

const char *name(Role role) {
  switch (role) {
  case Role::Value:
    return "value";
  case Role::Weight:
    return "weight";
  case Role::Gradient:
    return "gradient";
  case Role::Master:
    return "master";
  case Role::Compute:
    return "compute shard";
  case Role::Remainder:
    return "remainder";
  case Role::State:
    return "optimizer state";
  case Role::Hyper:
    return "rates of the step";
  case Role::SquaredNorm:
    return "squared norm of all gradients";
  case Role::Scale:
    return "factor of all gradients";
  case Role::Scratch:
    return "scratch";
  }
  return "?";
}

const char *name(AttributeSpec::Kind kind) {
  switch (kind) {
  case AttributeSpec::Kind::Float:
    return "float";
  case AttributeSpec::Kind::Int:
    return "integer";
  case AttributeSpec::Kind::Constant:
    return "list of floats";
  }
  return "?";
}

std::string remarks(const OperandSpec &operand) {
  std::string text;
  auto add = [&](bool holds, const std::string &remark) {
    if (holds)
      text += (text.empty() ? "" : ", ") + remark;
  };
  add(operand.variadic && operand.maxCount == UINT32_MAX,
      std::to_string(operand.minCount) + " or more");
  add(operand.variadic && operand.maxCount != UINT32_MAX,
      std::to_string(operand.minCount) + " to " +
          std::to_string(operand.maxCount));
  add(operand.strided, "may be strided");
  add(operand.accumulable, "may accumulate");
  add(operand.identifiesUse, "tells uses apart");
  return text;
}

void print(const KernelSpec &kernel) {
  std::cout << "\n## " << kernel.name << "\n\nVersion " << kernel.version;
  if (!kernel.deterministic)
    std::cout << ", not deterministic";
  if (kernel.contribution == Contribution::Produces)
    std::cout << ", makes a contribution to a gradient";
  if (kernel.contribution == Contribution::Merges)
    std::cout << ", unites contributions to a gradient";
  if (kernel.sums == SumsOver::Tokens)
    std::cout << ", sums over tokens";
  if (kernel.sums == SumsOver::Elements)
    std::cout << ", sums over elements";
  std::cout << ".\n\n"
            << kernel.meaning << "\n\n"
            << "| operand | access | role | |\n|---|---|---|---|\n";
  for (const OperandSpec &operand : kernel.operands)
    std::cout << "| `" << operand.name << "` | " << name(operand.access)
              << " | " << name(operand.role) << " | " << remarks(operand)
              << " |\n";
  if (kernel.attributes.empty())
    return;
  std::cout << "\n| attribute | kind |\n|---|---|\n";
  for (const AttributeSpec &attribute : kernel.attributes)
    std::cout << "| `" << attribute.name << "` | " << name(attribute.kind)
              << (attribute.optional ? ", optional" : "") << " |\n";
}

} // namespace

int main() {
  std::cout << "# Kernels\n\n"
               "Made from the registry (`lib/Plan/KernelRegistry.cpp`) by "
               "`scripts/make-reference.py`.\n"
               "Shapes: `..` stands for any leading dimensions, which count as "
               "rows.\n";
  for (const KernelSpec &kernel : kernelRegistry())
    print(kernel);
  return 0;
}
