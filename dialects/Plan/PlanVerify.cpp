//===- PlanVerify.cpp - Verifiers of the plan dialect ---------------------===//
//
// Local rules only: whether the whole plan is right is the checker's business
// (gtp/Plan/Checker.h, pass plan-verify).
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace gtp::planir;
using namespace mlir;

LogicalResult BufferOp::verify() {
  if (std::optional<int64_t> offset = getOffset())
    if (*offset < 0 || *offset % kBufferAlignment != 0)
      return emitOpError() << "is at " << *offset << ", expected a multiple of "
                           << kBufferAlignment;
  return success();
}

LogicalResult ParameterOp::verify() {
  if (getTensorNames().size() != getTensorRows().size())
    return emitOpError() << "has " << getTensorNames().size()
                         << " tensors but rows of " << getTensorRows().size();
  if (getTensorLayouts() &&
      getTensorLayouts()->size() != 2 * getTensorRows().size())
    return emitOpError() << "has " << getTensorRows().size() << " tensors but "
                         << getTensorLayouts()->size()
                         << " numbers for their layouts, expected two each";
  if (getShape().size() != getLayout().getDims().size())
    return emitOpError() << "has " << getShape().size()
                         << " dimensions but a layout of "
                         << getLayout().getDims().size();
  for (auto [size, dim] : llvm::zip(getShape(), getLayout().getDims()))
    if (size != dim.getLogical())
      return emitOpError() << "has a dimension of " << size
                           << " that its layout calls " << dim.getLogical();
  int64_t rows = 0;
  for (int64_t part : getTensorRows())
    rows += part;
  int64_t expected = getShape().empty() ? 1 : getShape().front();
  if (rows != expected)
    return emitOpError() << "has tensors of " << rows << " rows, expected "
                         << expected;
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Bytes that the view may reach over all iterations and ranks, or none when
/// that does not fit.
static std::optional<int64_t> reach(ViewAttr view, int64_t repeat,
                                    MeshAttr mesh) {
  int64_t end = 0, product = 0;
  if (llvm::AddOverflow(view.getOffset(), view.getExtent(), end) ||
      llvm::MulOverflow(view.getIterationStride(), repeat - 1, product) ||
      llvm::AddOverflow(end, product, end))
    return std::nullopt;
  ArrayRef<int64_t> strides = view.getRankStrides();
  for (size_t i = 0; i + 1 < strides.size(); i += 2) {
    if (strides[i] < 0 || strides[i] >= int64_t(mesh.getDegrees().size()) ||
        strides[i + 1] < 0 ||
        llvm::MulOverflow(strides[i + 1], mesh.getDegrees()[strides[i]] - 1,
                          product) ||
        llvm::AddOverflow(end, product, end))
      return std::nullopt;
  }
  return end;
}

LogicalResult gtp::planir::verifyStep(StepOpInterface step) {
  auto region = step->getParentOfType<RegionOp>();
  auto program = step->getParentOfType<ProgramOp>();
  if (!region || !program)
    return success(); // another verifier reports the parent
  if (step.getBuffers().size() != step.getViews().size())
    return step->emitOpError()
           << "has " << step.getBuffers().size() << " buffers but "
           << step.getViews().size() << " views";
  for (auto [buffer, attr] : llvm::zip(step.getBuffers(), step.getViews())) {
    auto def = buffer.getDefiningOp<BufferOp>();
    if (!def)
      return step->emitOpError() << "touches a buffer of no plan.buffer";
    auto view = cast<ViewAttr>(attr);
    std::optional<int64_t> end =
        reach(view, region.getRepeat(), program.getMesh());
    if (end && *end <= def.getSize())
      continue;
    InFlightDiagnostic diag =
        step->emitOpError() << "reaches outside its buffer with view " << view;
    diag.attachNote(def.getLoc()) << "buffer of " << def.getSize() << " bytes";
    return diag;
  }
  return success();
}

static ViewAttr viewAt(ArrayAttr views, unsigned index) {
  return cast<ViewAttr>(views[index]);
}

LogicalResult KernelOp::verify() {
  const plan::KernelSpec *spec = plan::lookupKernel(getName());
  if (!spec)
    return emitOpError() << "calls kernel \"" << getName()
                         << "\", which is not registered";
  for (unsigned i = 0, e = getViews().size(); i < e; ++i) {
    const plan::OperandSpec *operand = plan::operandSpec(*spec, i, e);
    if (!operand)
      return emitOpError() << "passes " << e << " operands to kernel \""
                           << getName() << "\", which takes another number";
    if (viewAt(getViews(), i).getAccumulate() && !operand->accumulable)
      return emitOpError() << "accumulates into operand '"
                           << StringRef(operand->name.data(),
                                        operand->name.size())
                           << "', which kernel \"" << getName()
                           << "\" cannot do";
  }
  return success();
}

LogicalResult CollectiveOp::verify() {
  if (getMembers() == 0)
    return emitOpError() << "has " << getViews().size()
                         << " views, expected pairs of source and destination, "
                            "and scratch at most";
  if (hasScratch() &&
      !viewAt(getViews(), 2 * getMembers()).getDtype().isInteger(8))
    return emitOpError() << "has scratch of "
                         << viewAt(getViews(), 2 * getMembers()).getDtype()
                         << ", expected i8";
  for (unsigned i = 0, e = getMembers(); i < e; ++i) {
    ViewAttr source = viewAt(getViews(), i);
    ViewAttr destination = viewAt(getViews(), e + i);
    if (source.getDtype() != destination.getDtype())
      return emitOpError() << "has a source of " << source.getDtype()
                           << " and a destination of "
                           << destination.getDtype();
    if (!source.isDense() || !destination.isDense())
      return emitOpError() << "has a view with gaps";
    if (source.getAccumulate() || (destination.getAccumulate() &&
                                   getKind() != CollectiveKind::ReduceScatter &&
                                   getKind() != CollectiveKind::AllReduce))
      return emitOpError()
             << "accumulates, which only destinations of reductions do";
  }
  return success();
}

LogicalResult CopyOp::verify() {
  if (getViews().size() != 2)
    return emitOpError() << "has " << getViews().size()
                         << " views, expected a source and a destination";
  ViewAttr source = viewAt(getViews(), 0), destination = viewAt(getViews(), 1);
  if (source.getDtype() != destination.getDtype() ||
      source.getElements() != destination.getElements())
    return emitOpError() << "copies " << source << " to " << destination
                         << ", expected as many elements of the same type";
  if (source.getAccumulate() || destination.getAccumulate())
    return emitOpError() << "may not accumulate";
  return success();
}

LogicalResult FillOp::verify() {
  if (getViews().size() != 1 || !viewAt(getViews(), 0).isDense())
    return emitOpError() << "expects one dense view";
  if (getByte() < 0 || getByte() > 255)
    return emitOpError() << "fills with " << getByte()
                         << ", expected a byte from 0 to 255";
  return success();
}

//===----------------------------------------------------------------------===//
// Program and regions
//===----------------------------------------------------------------------===//

LogicalResult RegionOp::verifyRegions() {
  // Every event is recorded by an operation, so this also bounds memory.
  int64_t operations = getBody().front().getOperations().size();
  if (getEvents() < 0 || getEvents() > operations)
    return emitOpError() << "has " << getEvents() << " events, expected 0 to "
                         << operations << ", one an operation at most";
  SmallVector<Operation *> recorders(getEvents());
  for (Operation &op : getBody().front()) {
    auto step = dyn_cast<StepOpInterface>(op);
    if (!step)
      return op.emitOpError("may not appear in a region");
    for (int64_t event : step.getWaits())
      if (event < 0 || event >= int64_t(recorders.size()) || !recorders[event])
        return op.emitOpError() << "waits for event " << event
                                << ", which no earlier operation records";
    std::optional<int64_t> event = step.getEvent();
    if (!event)
      continue;
    if (*event < 0 || *event >= int64_t(recorders.size()))
      return op.emitOpError() << "records event " << *event
                              << " of a region with " << getEvents();
    if (Operation *other = recorders[*event]) {
      InFlightDiagnostic diag = op.emitOpError()
                                << "records event " << *event << " again";
      diag.attachNote(other->getLoc()) << "recorded here before";
      return diag;
    }
    recorders[*event] = &op;
  }
  return success();
}

SmallVector<Block *, 2> gtp::planir::programBlocks(ProgramOp program) {
  SmallVector<Block *, 2> blocks = {&program.getBody().front()};
  for (auto other : program.getOps<SubprogramOp>())
    blocks.push_back(&other.getBody().front());
  return blocks;
}

LogicalResult SubprogramOp::verifyRegions() {
  if (getKind() == ProgramKind::TrainStep)
    return emitOpError("is a training step, which is the program around it");
  for (Operation &op : getBody().front())
    if (!isa<BufferOp, InputOp, OutputOp, RegionOp>(op))
      return op.emitOpError("may not appear in a subprogram, which has "
                            "buffers, inputs, outputs and regions only");
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  int64_t streams = 0;
  for (Operation &op : getBody().front())
    streams += isa<StreamOp>(op);
  mlir::SymbolTable symbols(*this);
  SmallVector<RegionOp> regions;
  for (Block *block : programBlocks(*this))
    llvm::append_range(regions, block->getOps<RegionOp>());
  for (RegionOp region : regions) {
    for (auto step : region.getOps<StepOpInterface>()) {
      if (step.getStream() >= streams)
        return step->emitOpError() << "runs on stream " << step.getStream()
                                   << " of a program with " << streams;
      FlatSymbolRefAttr parameter, second;
      if (auto kernel = dyn_cast<KernelOp>(*step)) {
        parameter = kernel.getParameterAttr();
        second = kernel.getSecondParameterAttr();
        if (second && !parameter)
          return step->emitOpError()
                 << "names " << second
                 << " as the parameter of a second weight and none of the "
                    "first; expected both";
      } else if (auto collective = dyn_cast<CollectiveOp>(*step)) {
        parameter = collective.getParameterAttr();
        if (!symbols.lookup<CommunicatorOp>(collective.getCommunicator()))
          return step->emitOpError() << "names no communicator: "
                                     << collective.getCommunicatorAttr();
      }
      for (FlatSymbolRefAttr name : {parameter, second})
        if (name && !symbols.lookup<ParameterOp>(name.getAttr()))
          return step->emitOpError() << "names no parameter: " << name;
    }
  }
  int64_t axes = getMesh().getDegrees().size();
  for (auto communicator : getOps<CommunicatorOp>())
    for (int64_t axis : communicator.getAxes())
      if (axis < 0 || axis >= axes)
        return communicator.emitOpError()
               << "has axis " << axis << " of a mesh with " << axes;
  return success();
}
