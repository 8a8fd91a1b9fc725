//===- ConvertGtpToPlan.cpp - From the partitioned step to a plan ---------===//

#include "GtpToPlan.h"
#include "gtp/Analysis/StepSchedule.h"
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

Slot Converter::fixedPlace(Location loc, BufferKind kind, RankedTensorType type,
                           Attribute owner, StringAttr part, StringRef name) {
  Slot &slot = plan.fixed[{owner, part}];
  if (!slot || slot.view != Places::wholeView(type))
    slot = places.allocate(loc, kind, type, 0, name);
  return slot;
}

void Converter::placeArguments() {
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto role = step.getArgAttrOfType<StringAttr>(index, tfm::kArgAttr);
    auto type = cast<RankedTensorType>(argument.getType());
    FlatSymbolRefAttr parameter = parameters.weightOf(argument);
    SmallString<64> name(parameter ? parameter.getValue() : role.getValue());
    auto state = step.getArgAttrOfType<StringAttr>(index, tfm::kStateAttr);
    if (role == "master" || role == "remainder")
      (name += ".") += role.getValue();
    else if (state)
      (name += ".") += state.getValue();
    StringAttr part = state ? state : role;
    Slot slot =
        fixedPlace(argument.getLoc(),
                   parameter ? BufferKind::Persistent : BufferKind::Input, type,
                   parameter ? Attribute(parameter)
                             : StringAttr::get(step.getContext(), "input"),
                   part, name);
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
        fixedPlace(value.getLoc(), BufferKind::Output,
                   cast<RankedTensorType>(value.getType()),
                   StringAttr::get(step.getContext(), "output"), name, name);
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

RegionOp Converter::beginRegion(Location loc, planir::RegionKind kind,
                                int64_t times) {
  workspaces.clear();
  return steps.beginRegion(loc, kind, times);
}

LogicalResult Converter::convertOnce() {
  beginRegion(step.getLoc(), planir::RegionKind::Once, 1);
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
  beginRegion(body.getLoc(), planir::RegionKind::Body, repeat);
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

LogicalResult Converter::convertRest() {
  // Only a program that replaces what it was given has an update.
  bool updates =
      llvm::any_of(llvm::seq(step.getNumResults()), [&](unsigned index) {
        return bool(step.getResultAttr(index, tfm::kTiedToAttr));
      });
  RegionOp region = beginRegion(
      step.getLoc(),
      updates ? planir::RegionKind::Update : planir::RegionKind::Once, 1);
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
  if (!updates && region.getBody().front().empty())
    region.erase();
  return success();
}

void Converter::declarePlan() {
  steps.setInsertionPointBeforeRegions();
  OpBuilder &builder = steps.ops();
  for (const ParameterEntry &entry : parameters.entries())
    emitParameter(builder, entry, places);
  plan.communicators.emit(builder, plan.program);
  auto addStream = [&](planir::StreamKind kind) {
    StreamOp::create(builder, step.getLoc(), kind,
                     kind == planir::StreamKind::Compute ? 0 : 1);
  };
  // By position, as `StreamIndex` has them.
  for (auto kind : {planir::StreamKind::Compute, planir::StreamKind::Gather,
                    planir::StreamKind::Reduce})
    addStream(kind);
  bool copies = plan.program
                    .walk([](planir::CopyOp copy) {
                      return copy.getStream() == kCopyStream
                                 ? WalkResult::interrupt()
                                 : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (copies)
    addStream(planir::StreamKind::Copy);
}

void Converter::declareIo() {
  steps.setInsertionPointBeforeRegions();
  OpBuilder &builder = steps.ops();
  for (auto [name, buffer] : inputs)
    InputOp::create(builder, step.getLoc(), name, buffer);
  for (auto [name, buffer] : outputs)
    OutputOp::create(builder, step.getLoc(), name, buffer);
}

LogicalResult Converter::run() {
  placeArguments();
  placeResults();
  return success(succeeded(convertOnce()) && succeeded(convertBody()) &&
                 succeeded(convertRest()));
}

void Converter::describe(ModuleOp module) {
  describeProgram(plan.program, module, parameters, step, body, costs);
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
  /// The converter of a function, to the end of the block.
  FailureOr<std::unique_ptr<Converter>> convertFunction(func::FuncOp step,
                                                        PlanParts &plan,
                                                        Block &block,
                                                        const CostModel &costs);
};
} // namespace

/// What the conversion relies on and verifiers of single ops do not say: values
/// that buffers can hold, and results that somebody gets.
static LogicalResult verifyContract(func::FuncOp step) {
  auto fits = [](Type type) {
    if (isa<dist::TicketType>(type))
      return true;
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() &&
           elementBytes(tensor.getElementType()) > 0;
  };
  constexpr const char *kExpected = ", which no buffer of a plan can hold; "
                                    "expected a ranked tensor of static "
                                    "shape, of f32, bf16, f64, i32, i64 or i8";
  for (BlockArgument argument : step.getArguments())
    if (!fits(argument.getType()))
      return emitError(step.getLoc())
             << "argument " << argument.getArgNumber() << " has type "
             << argument.getType() << kExpected;
  WalkResult walked = step.getBody().walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (!fits(type)) {
        op->emitOpError("has a result of type ") << type << kExpected;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (!step.getResultAttr(i, tfm::kTiedToAttr) &&
        !step.getResultAttr(i, tfm::kResultAttr))
      return emitError(step.getLoc())
             << "result " << i << " has neither " << tfm::kTiedToAttr << " nor "
             << tfm::kResultAttr << ", so nothing would read it";
  return success();
}

FailureOr<std::unique_ptr<Converter>>
ConvertGtpToPlanPass::convertFunction(func::FuncOp step, PlanParts &plan,
                                      Block &block, const CostModel &costs) {
  auto bodies = llvm::to_vector(step.getOps<tfm::MicrobatchesOp>());
  if (bodies.size() != 1 || bodies.front().getInputs().empty())
    return emitError(step.getLoc())
           << "there are " << bodies.size()
           << " tfm.microbatches, expected one with inputs";
  if (failed(verifyContract(step)))
    return failure();
  FailureOr<ParameterTable> parameters =
      ParameterTable::build(step, bodies.front());
  if (failed(parameters))
    return failure();
  auto converter = std::make_unique<Converter>(
      step, bodies.front(), plan, block, std::move(*parameters), costs);
  if (failed(converter->run()))
    return failure();
  return converter;
}

LogicalResult ConvertGtpToPlanPass::convert() {
  ModuleOp module = getOperation();
  SmallVector<func::FuncOp> functions = stepFunctions(module);
  for (func::FuncOp function : functions)
    if (!function->hasAttr(dist::GtpDialect::kPartitionedAttr) ||
        !function->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr))
      return emitError(function.getLoc())
             << "@" << function.getSymName()
             << " is not partitioned; run gtp-place and gtp-partition first";
  if (functions.empty())
    return emitError(module.getLoc())
           << "there is no function @" << tfm::kTrainStepFunction
           << " of one block";
  func::FuncOp step = functions.front();
  StatusOr<machine::Profile> profile = machine::Profile::load(target);
  if (!profile.isOk())
    return emitError(module.getLoc()) << profile.message();
  auto mesh = step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr);
  CostModel costs(*profile, mesh);

  OpBuilder builder(step);
  auto program = ProgramOp::create(
      builder, step.getLoc(), builder.getStringAttr("program"),
      planir::MeshAttr::get(&getContext(), mesh.getNames(), mesh.getDegrees()),
      /*arena=*/0, /*model=*/nullptr, /*numerics=*/nullptr,
      /*provenance=*/nullptr, /*claims=*/nullptr, /*stats=*/nullptr);
  PlanParts plan(program, mesh, profile->ctaReserve);
  Block *block = &program.getBody().emplaceBlock();
  SmallVector<std::unique_ptr<Converter>> converters;
  for (func::FuncOp function : functions) {
    if (function != step) {
      builder.setInsertionPointToEnd(&program.getBody().front());
      block = &SubprogramOp::create(builder, function.getLoc(),
                                    planir::ProgramKind::Eval)
                   .getBody()
                   .emplaceBlock();
    }
    FailureOr<std::unique_ptr<Converter>> converter =
        convertFunction(function, plan, *block, costs);
    if (failed(converter))
      return failure();
    converters.push_back(std::move(*converter));
  }
  converters.front()->declarePlan();
  for (std::unique_ptr<Converter> &converter : converters)
    converter->declareIo();
  converters.front()->describe(module);
  for (auto parameter :
       llvm::make_early_inc_range(module.getOps<tfm::ParameterOp>()))
    parameter.erase();
  program.setSymName(step.getSymName());
  module->removeAttr(kPlanStepAttr); // now claims and statistics of the program
  for (func::FuncOp function : functions)
    function.erase();
  return success();
}
