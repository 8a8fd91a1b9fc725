//===- KernelCall.cpp - A plan's call of a registered kernel --------------===//
//
// What all kernels have in common; KernelShapes.cpp has each kernel's own
// rules.
//
//===----------------------------------------------------------------------===//

#include "KernelShapes.h"

#include "gtp/Plan/Operand.h"

#include <cmath>

using namespace gtp;
using namespace gtp::plan;

std::string_view gtp::plan::kernelName(const pb::Plan &plan,
                                       const pb::Kernel &kernel) {
  if (kernel.name() >= static_cast<uint64_t>(plan.strings_size()))
    return {};
  return plan.strings(static_cast<int>(kernel.name()));
}

static const pb::Attribute *findAttribute(const pb::Plan &plan,
                                          const pb::Kernel &kernel,
                                          std::string_view name) {
  for (const pb::Attribute &attribute : kernel.attributes())
    if (attribute.name() < static_cast<uint64_t>(plan.strings_size()) &&
        plan.strings(static_cast<int>(attribute.name())) == name)
      return &attribute;
  return nullptr;
}

double gtp::plan::floatAttribute(const pb::Plan &plan, const pb::Kernel &kernel,
                                 std::string_view name, double otherwise) {
  const pb::Attribute *attribute = findAttribute(plan, kernel, name);
  return attribute && attribute->has_f() ? attribute->f() : otherwise;
}

int64_t gtp::plan::intAttribute(const pb::Plan &plan, const pb::Kernel &kernel,
                                std::string_view name, int64_t otherwise) {
  const pb::Attribute *attribute = findAttribute(plan, kernel, name);
  return attribute && attribute->has_i() ? attribute->i() : otherwise;
}

bool gtp::plan::isFast(const pb::Plan &plan, const pb::Kernel &kernel,
                       const KernelSpec &spec) {
  return !spec.fastAttribute.empty() &&
         intAttribute(plan, kernel, spec.fastAttribute) != 0;
}

const pb::FloatList *gtp::plan::constantAttribute(const pb::Plan &plan,
                                                  const pb::Kernel &kernel,
                                                  std::string_view name) {
  const pb::Attribute *attribute = findAttribute(plan, kernel, name);
  if (!attribute || !attribute->has_constant() ||
      attribute->constant() >= static_cast<uint64_t>(plan.constants_size()))
    return nullptr;
  return &plan.constants(static_cast<int>(attribute->constant()));
}

OperandRange gtp::plan::findOperands(const KernelSpec &spec,
                                     const pb::Kernel &kernel,
                                     std::string_view name) {
  OperandRange range;
  size_t count = static_cast<size_t>(kernel.operands_size());
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec *operand = operandSpec(spec, i, count);
    if (!operand || operand->name != name)
      continue;
    if (range.count++ == 0)
      range.first = static_cast<int>(i);
  }
  return range;
}

std::vector<int> gtp::plan::partOperands(const KernelSpec &spec,
                                         const pb::Kernel &kernel,
                                         const KernelPart &part) {
  std::vector<int> indices;
  for (unsigned operand : part.operands) {
    OperandRange range =
        findOperands(spec, kernel, spec.operands[operand].name);
    for (int i = 0; i < range.count; ++i)
      indices.push_back(range.first + i);
  }
  return indices;
}

pb::Kernel gtp::plan::partCall(const KernelSpec &spec, const pb::Kernel &kernel,
                               const KernelPart &part) {
  pb::Kernel call = kernel;
  call.clear_operands();
  for (int index : partOperands(spec, kernel, part))
    *call.add_operands() = kernel.operands(index);
  return call;
}

/// Every attribute is known, given once and of the right kind; none is missing.
static Status verifyAttributes(const pb::Plan &plan, const pb::Kernel &kernel,
                               const KernelSpec &spec) {
  std::string kernelText(spec.name);
  std::vector<bool> seen(spec.attributes.size());
  for (const pb::Attribute &attribute : kernel.attributes()) {
    if (attribute.name() >= static_cast<uint64_t>(plan.strings_size()))
      return Status::error("kernel " + kernelText +
                           " has an attribute whose name is string " +
                           std::to_string(attribute.name()) + " of " +
                           std::to_string(plan.strings_size()));
    const std::string &name = plan.strings(static_cast<int>(attribute.name()));
    std::string where = "kernel " + kernelText + ": attribute '" + name + "'";
    size_t index = 0;
    while (index < spec.attributes.size() &&
           spec.attributes[index].name != name)
      ++index;
    if (index == spec.attributes.size())
      return Status::error(where + " is none of its attributes");
    if (seen[index])
      return Status::error(where + " is given twice");
    seen[index] = true;
    switch (spec.attributes[index].kind) {
    case AttributeSpec::Kind::Float:
      if (!attribute.has_f() || !std::isfinite(attribute.f()))
        return Status::error(where + " must be a finite float");
      break;
    case AttributeSpec::Kind::Int:
      if (!attribute.has_i())
        return Status::error(where + " must be an integer");
      break;
    case AttributeSpec::Kind::Constant:
      if (!attribute.has_constant() ||
          attribute.constant() >= static_cast<uint64_t>(plan.constants_size()))
        return Status::error(where + " must be one of the plan's " +
                             std::to_string(plan.constants_size()) +
                             " constants");
      break;
    }
  }
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i] && !spec.attributes[i].optional)
      return Status::error("kernel " + kernelText + " lacks its attribute '" +
                           std::string(spec.attributes[i].name) + "'");
  return Status::ok();
}

/// What the table says of each operand by itself.
static Status verifyOperand(const KernelSpec &kernel, const OperandSpec &spec,
                            const pb::Operand &operand) {
  std::optional<uint64_t> extent = byteExtent(operand);
  const char *problem = nullptr;
  if (!dtypeSize(operand.dtype()))
    problem = "has no valid type";
  else if (!extent)
    problem = "is too large";
  else if (*extent == 0)
    problem = "has no elements";
  else if (rowPitch(operand) < rowElements(operand))
    problem = "has a pitch below its last dimension";
  else if (!spec.strided && !isDense(operand))
    problem = "must be dense";
  else if (operand.accumulate() && !spec.accumulable)
    problem = "cannot accumulate";
  if (!problem)
    return Status::ok();
  return Status::error("kernel " + std::string(kernel.name) + ": operand '" +
                       std::string(spec.name) + "' " + describe(operand) + " " +
                       problem);
}

Status gtp::plan::verifyKernelCall(const pb::Plan &plan,
                                   const pb::Kernel &kernel) {
  if (kernel.name() >= static_cast<uint64_t>(plan.strings_size()))
    return Status::error("kernel name is string " +
                         std::to_string(kernel.name()) + " of " +
                         std::to_string(plan.strings_size()));
  std::string name(kernelName(plan, kernel));
  const KernelSpec *spec = lookupKernel(name);
  if (!spec)
    return Status::error("unknown kernel '" + name + "'");
  if (kernel.version() != spec->version)
    return Status::error(
        "kernel " + name + " has version " + std::to_string(kernel.version()) +
        ", this program knows version " + std::to_string(spec->version));
  size_t count = static_cast<size_t>(kernel.operands_size());
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec *operand = operandSpec(*spec, i, count);
    if (!operand)
      break;
    GTP_RETURN_IF_ERROR(
        verifyOperand(*spec, *operand, kernel.operands(static_cast<int>(i))));
  }
  if (count == 0 || !operandSpec(*spec, 0, count))
    return Status::error("kernel " + name + " has " + std::to_string(count) +
                         " operands, which is not its number");
  GTP_RETURN_IF_ERROR(verifyAttributes(plan, kernel, *spec));
  return verifyKernelShapes(plan, kernel, *spec);
}
