//===- ConvertGtpToPlan.cpp - From the partitioned step to a plan ---------===//

#include "GtpToPlan.h"
#include "gtp/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gtp {
#define GEN_PASS_DEF_CONVERTGTPTOPLANPASS
#include "gtp/Conversion/Passes.h.inc"
} // namespace gtp

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Places that the signature and the microbatches prescribe
//===----------------------------------------------------------------------===//

void Converter::placeArguments() {
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto role = step.getArgAttrOfType<StringAttr>(index, tfm::kArgAttr);
    auto type = cast<RankedTensorType>(argument.getType());
    FlatSymbolRefAttr parameter = parameters.weightOf(argument);
    SmallString<64> name(parameter ? parameter.getValue() : role.getValue());
    if (role == "master")
      name += ".master";
    else if (auto state =
                 step.getArgAttrOfType<StringAttr>(index, tfm::kStateAttr))
      (name += ".") += state.getValue();
    Slot slot = places.allocate(
        argument.getLoc(),
        parameter ? BufferKind::Persistent : BufferKind::Input, type, 0, name);
    places.set(argument, slot);
    if (!parameter)
      inputs.emplace_back(role, slot.buffer);
  }
}

void Converter::placeResults() {
  Operation *ret = step.getBody().front().getTerminator();
  for (OpOperand &operand : ret->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    Value value = operand.get();
    if (auto tied =
            step.getResultAttrOfType<IntegerAttr>(index, tfm::kTiedToAttr)) {
      if (!places.has(value) && !places.isAssigned(value))
        places.assign(value, places[step.getArgument(tied.getInt())]);
      continue;
    }
    auto name = step.getResultAttrOfType<StringAttr>(index, tfm::kResultAttr);
    if (!name)
      continue;
    Slot slot =
        places.allocate(value.getLoc(), BufferKind::Output,
                        cast<RankedTensorType>(value.getType()), 0, name);
    outputs.emplace_back(name, slot.buffer);
    if (!places.has(value) && !places.isAssigned(value))
      places.assign(value, slot);
  }
}

/// Whether the op that makes a yielded value can add to what is there.
static bool accumulates(Value yielded) {
  if (readingUses(yielded).size() != 1)
    return false;
  auto produced = dyn_cast<OpResult>(Places::producedValue(yielded));
  if (!produced)
    return false;
  Operation *def = produced.getOwner();
  if (def->getBlock() != yielded.getParentBlock())
    return false;
  if (std::optional<CollectiveSpec> spec = collectiveSpec(def))
    return !spec->isGather();
  const plan::OperandSpec *written = kernelOperandOf(produced);
  return written && written->accumulable;
}

void Converter::placeSums() {
  Operation *yield = body.getBody().front().getTerminator();
  for (auto [sum, operand] :
       llvm::zip(body.getResults(), yield->getOperands())) {
    Slot slot = places.isAssigned(sum)
                    ? places.destination(sum)
                    : places.allocate(sum.getLoc(), BufferKind::Transient,
                                      Places::tensorType(sum),
                                      Places::bytesOf(Places::tensorType(sum)) +
                                          places.tailBytes(sum),
                                      sourceName(operand.getLoc()));
    places.set(sum, slot);
    if (accumulates(operand))
      places.assign(operand,
                    {slot.buffer, slot.view.withAccumulate(repeat > 1)});
  }
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

LogicalResult Converter::convert(Operation &op) {
  if (std::optional<CollectiveSpec> spec = collectiveSpec(&op))
    return convertCollective(op, *spec);
  if (auto await = dyn_cast<dist::AwaitOp>(op)) {
    places.set(await.getResult(), places[await.getTicket()]);
    return success();
  }
  if (auto release = dyn_cast<dist::ReleaseOp>(op)) {
    if (release.getTicket())
      steps.holdCompute(tokens.lookup(release.getTicket()));
    return success();
  }
  if (auto split = dyn_cast<tfm::SplitOp>(op)) {
    convertSplit(split);
    return success();
  }
  if (auto slice = dyn_cast<dist::SliceOp>(op))
    return convertSlice(slice);
  if (auto keep = dyn_cast<dist::KeepFirstOp>(op)) {
    convertKeepFirst(keep);
    return success();
  }
  if (isa<tfm::ConcatOp>(op) && isJoinedInPlace(&op))
    return success();
  if (const plan::KernelSpec *spec = kernelOf(&op))
    return convertKernel(op, *spec);
  return op.emitOpError("is no kernel or collective that a plan can have");
}

LogicalResult Converter::convertOnce() {
  steps.beginRegion(step.getLoc(), planir::RegionKind::Once, 1);
  for (Operation &op : step.getBody().front()) {
    if (&op == body)
      return success();
    if (failed(convert(op)))
      return failure();
  }
  return success();
}

LogicalResult Converter::convertBody() {
  Block &block = body.getBody().front();
  for (auto [input, slice] :
       llvm::zip(body.getInputs(), block.getArguments())) {
    Slot whole = places[input];
    auto type = cast<RankedTensorType>(slice.getType());
    places.set(slice, {whole.buffer,
                       ViewAttr::get(step.getContext(), type.getElementType(),
                                     type.getShape(), whole.view.getOffset(), 0,
                                     Places::bytesOf(type), {}, false)});
  }
  placeSums();
  steps.beginRegion(body.getLoc(), planir::RegionKind::Body, repeat);
  for (Operation &op : block.without_terminator())
    if (failed(convert(op)))
      return failure();

  for (auto [sum, operand] :
       llvm::zip(body.getResults(), block.getTerminator()->getOperands())) {
    const Slot &slot = places[sum];
    if (places[operand].samePlace(slot))
      continue;
    steps.kernel(
        operand.getLoc(), "add",
        {places[operand], {slot.buffer, slot.view.withAccumulate(repeat > 1)}},
        DictionaryAttr(), parameters.gradientOf(sum),
        costs.copyNs(Places::bytesOf(Places::tensorType(sum))));
    clearTail(operand.getLoc(), sum, slot);
  }
  return success();
}

LogicalResult Converter::convertUpdate() {
  steps.beginRegion(step.getLoc(), planir::RegionKind::Update, 1);
  Operation *ret = step.getBody().front().getTerminator();
  for (Operation *op = body->getNextNode(); op != ret; op = op->getNextNode())
    if (failed(convert(*op)))
      return failure();

  unsigned output = 0;
  for (OpOperand &operand : ret->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    const Slot &value = places[operand.get()];
    Slot wanted;
    if (auto tied =
            step.getResultAttrOfType<IntegerAttr>(index, tfm::kTiedToAttr))
      wanted = places[step.getArgument(tied.getInt())];
    else if (step.getResultAttr(index, tfm::kResultAttr))
      wanted = {outputs[output++].second, value.view};
    else
      continue;
    if (value.samePlace(wanted))
      continue;
    steps.copy(operand.get().getLoc(), value, wanted,
               costs.copyNs(wanted.view.getExtent()));
  }
  return success();
}

void Converter::emitDeclarations() {
  steps.setInsertionPointBeforeRegions();
  OpBuilder &builder = steps.ops();
  for (const ParameterEntry &entry : parameters.entries())
    emitParameter(builder, entry, places);
  communicators.emit(builder, step.getLoc());
  for (auto kind : {planir::StreamKind::Compute, planir::StreamKind::Gather,
                    planir::StreamKind::Reduce})
    StreamOp::create(builder, step.getLoc(), kind,
                     kind == planir::StreamKind::Compute ? 0 : 1);
  for (auto [name, buffer] : inputs)
    InputOp::create(builder, step.getLoc(), name, buffer);
  for (auto [name, buffer] : outputs)
    OutputOp::create(builder, step.getLoc(), name, buffer);
}

LogicalResult Converter::run() {
  placeArguments();
  placeResults();
  if (failed(convertOnce()) || failed(convertBody()) || failed(convertUpdate()))
    return failure();
  emitDeclarations();
  describeProgram(program, module, parameters, step, body, costs);
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct ConvertGtpToPlanPass
    : public gtp::impl::ConvertGtpToPlanPassBase<ConvertGtpToPlanPass> {
  using ConvertGtpToPlanPassBase::ConvertGtpToPlanPassBase;

  void runOnOperation() override {
    if (failed(convert()))
      signalPassFailure();
  }

private:
  LogicalResult convert();
};
} // namespace

LogicalResult ConvertGtpToPlanPass::convert() {
  ModuleOp module = getOperation();
  auto step = module.lookupSymbol<func::FuncOp>(tfm::kTrainStepFunction);
  if (!step || !step.getBody().hasOneBlock())
    return emitError(module.getLoc())
           << "there is no function @" << tfm::kTrainStepFunction
           << " of one block";
  if (!step->hasAttr(dist::GtpDialect::kPartitionedAttr) ||
      !step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr))
    return emitError(step.getLoc(),
                     "@train_step is not partitioned; run gtp-place and "
                     "gtp-partition first");
  auto bodies = llvm::to_vector(step.getOps<tfm::MicrobatchesOp>());
  if (bodies.size() != 1 || bodies.front().getInputs().empty())
    return emitError(step.getLoc())
           << "there are " << bodies.size()
           << " tfm.microbatches, expected one with inputs";
  tfm::MicrobatchesOp body = bodies.front();
  StatusOr<machine::Profile> profile = machine::Profile::load(target);
  if (!profile.isOk())
    return emitError(module.getLoc()) << profile.message();
  auto mesh = step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr);
  CostModel costs(*profile, mesh);
  FailureOr<ParameterTable> parameters = ParameterTable::build(step, body);
  if (failed(parameters))
    return failure();

  OpBuilder builder(step);
  auto program = ProgramOp::create(
      builder, step.getLoc(), builder.getStringAttr("program"),
      planir::MeshAttr::get(&getContext(), mesh.getNames(), mesh.getDegrees()),
      /*arena=*/0, /*model=*/nullptr, /*numerics=*/nullptr,
      /*provenance=*/nullptr, /*claims=*/nullptr, /*stats=*/nullptr);
  program.getBody().emplaceBlock();
  if (failed(
          Converter(module, step, body, program, std::move(*parameters), costs)
              .run()))
    return failure();
  for (auto parameter :
       llvm::make_early_inc_range(module.getOps<tfm::ParameterOp>()))
    parameter.erase();
  program.setSymName(step.getSymName());
  module->removeAttr(kPlanStepAttr); // now claims and statistics of the program
  step.erase();
  return success();
}
