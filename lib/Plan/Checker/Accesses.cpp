//===- Accesses.cpp - Which bytes every operation touches -----------------===//

#include "Context.h"

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>
#include <numeric>

using namespace gtp::plan;
using namespace gtp::plan::check;

static Touch makeTouch(const Context &context, const pb::Region &region,
                       const pb::Operand &operand, bool reads, bool writes) {
  Touch touch;
  touch.operand = &operand;
  touch.reads = reads || operand.accumulate();
  touch.writes = writes;
  touch.begin = operand.offset();
  touch.end = operand.offset() + *byteExtent(operand) +
              (region.repeat() - 1) * operand.iteration_stride();
  for (const pb::AxisStride &stride : operand.rank_strides())
    touch.end +=
        stride.stride() *
        (context.plan.mesh().axes(static_cast<int>(stride.axis())).degree() -
         1);
  return touch;
}

/// The touches of a kernel whose operands are `operands` of the operation's.
static void touchOperands(const Context &context, const pb::Region &region,
                          const std::vector<int> &operands,
                          OperationInfo &info) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec *spec = operandSpec(*info.kernel, i, operands.size());
    info.touches.push_back(makeTouch(
        context, region, info.operation->kernel().operands(operands[i]),
        spec->access != Access::Write, spec->access != Access::Read));
    info.touches.back().spec = spec;
  }
}

/// Whether the weight that a part of a fused kernel reads is that kernel's
/// second.
static bool isAboutSecond(const KernelSpec &fused, const KernelPart &part) {
  unsigned weights = 0;
  for (unsigned i = 0; i < fused.operands.size(); ++i)
    if (fused.operands[i].role == Role::Weight && weights++ > 0 &&
        std::count(part.operands.begin(), part.operands.end(), i))
      return true;
  return false;
}

static OperationInfo derive(const Context &context, const pb::Region &region,
                            const pb::Operation &operation) {
  OperationInfo info;
  info.operation = &operation;
  auto add = [&](const pb::Operand &operand, bool reads, bool writes) {
    info.touches.push_back(makeTouch(context, region, operand, reads, writes));
  };
  switch (operation.body_case()) {
  case pb::Operation::kKernel: {
    const pb::Kernel &kernel = operation.kernel();
    info.kernel = lookupKernel(kernelName(context.plan, kernel));
    info.parameterPlus1 = kernel.parameter_plus1();
    std::vector<int> all(static_cast<size_t>(kernel.operands_size()));
    std::iota(all.begin(), all.end(), 0);
    touchOperands(context, region, all, info);
    for (const KernelPart &part : info.kernel->parts) {
      OperationInfo step;
      step.operation = &operation;
      step.kernel = lookupKernel(part.kernel);
      step.parameterPlus1 = isAboutSecond(*info.kernel, part)
                                ? kernel.second_parameter_plus1()
                                : kernel.parameter_plus1();
      touchOperands(context, region, partOperands(*info.kernel, kernel, part),
                    step);
      info.parts.push_back(std::move(step));
    }
    break;
  }
  case pb::Operation::kCollective:
    for (const pb::Operand &operand : operation.collective().sources())
      add(operand, true, false);
    for (const pb::Operand &operand : operation.collective().destinations())
      add(operand, false, true);
    // What it held does not matter.
    if (operation.collective().has_scratch())
      add(operation.collective().scratch(), false, true);
    break;
  case pb::Operation::kCopy:
    add(operation.copy().source(), true, false);
    add(operation.copy().destination(), false, true);
    break;
  case pb::Operation::kFill:
    add(operation.fill().destination(), false, true);
    break;
  case pb::Operation::BODY_NOT_SET:
    break;
  }
  return info;
}

/// Finds where transient buffers begin their life. In a repeated region that is
/// in every iteration, unless something carries the buffer over from one to the
/// next: an accumulation or an operation that not every iteration runs.
static void findAcquisitions(Context &context) {
  std::vector<bool> touched(static_cast<size_t>(context.plan.buffers_size()));
  std::vector<bool> carried(touched.size());
  for (RegionInfo &region : context.regions) {
    std::fill(carried.begin(), carried.end(), false);
    for (const OperationInfo &info : region.operations)
      for (const Touch &touch : info.touches)
        if (isCarried(touch, *info.operation))
          carried[touch.buffer()] = true;
    for (OperationInfo &info : region.operations)
      for (const Touch &touch : info.touches) {
        uint32_t buffer = touch.buffer();
        if (touched[buffer])
          continue;
        touched[buffer] = true;
        if (context.buffer(buffer).kind() == pb::Buffer::TRANSIENT)
          info.acquired.push_back({buffer, !carried[buffer]});
      }
  }
}

void check::deriveAccesses(Context &context) {
  uint32_t index = 0;
  context.regions.clear();
  for (const pb::Region &region : context.program().regions()) {
    RegionInfo info;
    info.region = &region;
    info.index = index++;
    info.program = context.programIndex;
    info.operations.reserve(static_cast<size_t>(region.operations_size()));
    for (const pb::Operation &operation : region.operations()) {
      info.operations.push_back(derive(context, region, operation));
      context.report.operations++;
      context.report.collectives += operation.has_collective();
      context.report.waits += static_cast<uint64_t>(operation.waits_size());
    }
    context.regions.push_back(std::move(info));
  }
  findAcquisitions(context);
}

/// Bytes between the starts of two rows; 0 when rows leave no gap.
static uint64_t pitchBytes(const pb::Operand &operand) {
  return isDense(operand) ? 0 : rowPitch(operand) * dtypeSize(operand.dtype());
}

/// Whether both are column bands of the same rows that share no column.
static bool disjointBands(uint64_t aBase, const Touch &a, uint64_t bBase,
                          const Touch &b) {
  uint64_t pitch = pitchBytes(*a.operand);
  if (pitch == 0 || pitch != pitchBytes(*b.operand))
    return false;
  for (const pb::Operand *operand : {a.operand, b.operand}) {
    if (operand->iteration_stride() % pitch != 0)
      return false;
    for (const pb::AxisStride &stride : operand->rank_strides())
      if (stride.stride() % pitch != 0)
        return false;
  }
  auto width = [](const pb::Operand &operand) {
    return rowElements(operand) * dtypeSize(operand.dtype());
  };
  uint64_t aColumn = (aBase + a.operand->offset()) % pitch;
  uint64_t bColumn = (bBase + b.operand->offset()) % pitch;
  uint64_t aToB = (bColumn + pitch - aColumn) % pitch;
  uint64_t bToA = (aColumn + pitch - bColumn) % pitch;
  return aToB >= width(*a.operand) && bToA >= width(*b.operand);
}

void check::checkAliases(Context &context) {
  for (const RegionInfo &region : context.regions)
    for (size_t i = 0; i < region.operations.size(); ++i) {
      const std::vector<Touch> &touches = region.operations[i].touches;
      for (size_t w = 0; w < touches.size(); ++w) {
        if (!touches[w].writes)
          continue;
        if (!context.spend(touches.size()))
          return;
        for (size_t o = 0; o < touches.size(); ++o) {
          const Touch &a = touches[w], &b = touches[o];
          if (o == w || (b.writes && o < w))
            continue;
          const pb::Buffer &aBuffer = context.buffer(a.buffer());
          const pb::Buffer &bBuffer = context.buffer(b.buffer());
          if (aBuffer.memory() != bBuffer.memory() ||
              aBuffer.offset() + a.end <= bBuffer.offset() + b.begin ||
              bBuffer.offset() + b.end <= aBuffer.offset() + a.begin ||
              disjointBands(aBuffer.offset(), a, bBuffer.offset(), b))
            continue;
          // An all-reduce works in place; so does a gather that finds the
          // rank's own piece there, which rule `structure` has checked.
          const pb::Operation &operation = *region.operations[i].operation;
          if (operation.has_collective() &&
              (operation.collective().kind() == pb::Collective::ALL_REDUCE ||
               (operation.collective().kind() == pb::Collective::ALL_GATHER &&
                !b.operand->rank_strides().empty())) &&
              w == o + touches.size() / 2 && a.buffer() == b.buffer() &&
              a.begin == b.begin && !a.operand->accumulate())
            continue;
          context.failAt("alias", region.place(i),
                         " writes " + context.bufferText(a.buffer()) +
                             " where it also uses " +
                             context.bufferText(b.buffer()) +
                             ": operands of one operation must not overlap "
                             "what it writes");
        }
      }
    }
}

void check::checkReadOnly(Context &context) {
  if (context.trains())
    return;
  for (const RegionInfo &region : context.regions)
    for (size_t i = 0; i < region.operations.size(); ++i)
      for (const Touch &touch : region.operations[i].touches)
        if (touch.writes &&
            context.buffer(touch.buffer()).kind() == pb::Buffer::PERSISTENT)
          context.failAt("read-only", region.place(i),
                         " writes " + context.bufferText(touch.buffer()) +
                             ", which lives across steps: only the training "
                             "step may change weights and states");
}
