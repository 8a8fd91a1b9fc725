//===- Context.cpp - What all parts of the checker share ------------------===//

#include "Context.h"

#include "gtp/Plan/Iteration.h"
#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Layout.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

/// By one iteration of each variant.
bool check::runsIn(pb::Operation::When when, Variant variant) {
  switch (variant) {
  case Variant::Only:
    return plan::runsIn(when, 0, 1);
  case Variant::First:
    return plan::runsIn(when, 0, 3);
  case Variant::Middle:
    return plan::runsIn(when, 1, 3);
  case Variant::Last:
    return plan::runsIn(when, 2, 3);
  }
  return true;
}

std::vector<Variant> check::orderVariants(const pb::Region &region) {
  if (region.repeat() == 1)
    return {Variant::Only};
  bool conditional = false;
  for (const pb::Operation &operation : region.operations())
    conditional |= operation.when() != pb::Operation::ALWAYS;
  if (!conditional)
    return {Variant::Middle};
  if (region.repeat() == 2)
    return {Variant::First, Variant::Last};
  return {Variant::First, Variant::Middle, Variant::Last};
}

void Context::record(Finding finding) {
  if (!full() && known.insert(finding.rule + ": " + finding.message).second)
    report.findings.push_back(std::move(finding));
}

bool Context::spend(uint64_t units) {
  constexpr uint64_t limit = 20'000'000;
  work += units;
  if (work <= limit)
    return true;
  fail("structure", "the plan is too complex to check: its accesses overlap "
                    "more than those of any training step");
  return false;
}

std::string Context::string(uint64_t index) const {
  if (index < static_cast<uint64_t>(plan.strings_size()))
    return plan.strings(static_cast<int>(index));
  return "<string " + std::to_string(index) + ">";
}

std::string Context::bufferText(uint32_t index) const {
  std::string text = "buffer " + std::to_string(index);
  if (index < static_cast<uint64_t>(plan.buffers_size()))
    text += " '" + string(buffer(index).name()) + "'";
  return text;
}

std::string Context::parameterText(uint32_t index) const {
  return "parameter '" + string(parameter(index).name()) + "'";
}

std::string Context::where(OperationPlace place) const {
  const pb::Program &holder = plan.programs(static_cast<int>(place.program));
  const pb::Region &region = holder.regions(static_cast<int>(place.region));
  const pb::Operation &op =
      region.operations(static_cast<int>(place.operation));
  std::string text = place.program == 0
                         ? std::string()
                         : pb::Program::Kind_Name(holder.kind()) + ", ";
  text += "region " + std::to_string(place.region) + " (" +
          pb::Region::Kind_Name(region.kind()) + "), operation " +
          std::to_string(place.operation) + " (" + string(op.source());
  switch (op.body_case()) {
  case pb::Operation::kKernel:
    text += ": " + string(op.kernel().name());
    break;
  case pb::Operation::kCollective:
    text += ": " + pb::Collective::Kind_Name(op.collective().kind());
    break;
  case pb::Operation::kCopy:
    text += ": copy";
    break;
  case pb::Operation::kFill:
    text += ": fill";
    break;
  case pb::Operation::BODY_NOT_SET:
    break;
  }
  return text + ")";
}

std::string Context::axesText(AxisMask mask) const {
  std::string text;
  for (int i = 0; i < plan.mesh().axes_size(); ++i)
    if (mask >> i & 1)
      text += (text.empty() ? "" : ",") + plan.mesh().axes(i).name();
  return text.empty() ? "none" : text;
}

AxisMask Context::tokenAxes() const {
  AxisMask mask = 0;
  for (int i = 0; i < plan.mesh().axes_size(); ++i)
    if (plan.mesh().axes(i).degree() > 1 && isDataAxis(plan.mesh().axes(i)))
      mask |= AxisMask(1) << i;
  return mask;
}

AxisMask Context::storageAxes(uint32_t index) const {
  AxisMask mask = 0;
  const pb::Layout &layout =
      plan.layouts(static_cast<int>(parameter(index).layout()));
  for (const pb::LayoutDim &dim : layout.dims())
    mask |= maskOf(dim.storage_axes());
  return mask;
}
