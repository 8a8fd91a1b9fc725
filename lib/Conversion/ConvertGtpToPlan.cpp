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

namespace {

class Converter {
public:
  Converter(ModuleOp module, func::FuncOp step, tfm::MicrobatchesOp body,
            ProgramOp program, ParameterTable parameters,
            const CostModel &costs)
      : module(module), step(step), body(body), program(program),
        parameters(std::move(parameters)), costs(costs),
        mesh(step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr)),
        repeat(cast<RankedTensorType>(body.getInputs().front().getType())
                   .getDimSize(0)),
        steps(program), places(steps), communicators(mesh) {}

  LogicalResult run();

private:
  void placeArguments();
  void placeResults();
  void placeSums();
  LogicalResult convertOnce();
  LogicalResult convertBody();
  LogicalResult convertUpdate();
  void emitDeclarations();

  LogicalResult convert(Operation &op);
  LogicalResult convertKernel(Operation &op, const plan::KernelSpec &spec);
  LogicalResult convertCollective(Operation &op, const CollectiveSpec &spec);
  LogicalResult convertSlice(dist::SliceOp op);
  void convertSplit(tfm::SplitOp op);
  void convertKeepFirst(dist::KeepFirstOp op);
  FailureOr<DictionaryAttr> settingsOf(Operation &op,
                                       const plan::KernelSpec &spec);
  /// The slot of an operand, copied when the kernel cannot read its pitch.
  Slot readable(Operation &op, Value value, const plan::OperandSpec &spec);
  void clearTail(Location loc, Value value, const Slot &slot);

  ModuleOp module;
  func::FuncOp step;
  tfm::MicrobatchesOp body;
  ProgramOp program;
  ParameterTable parameters;
  const CostModel &costs;
  dist::MeshAttr mesh;
  int64_t repeat;
  StepBuilder steps;
  Places places;
  Communicators communicators;
  SmallVector<std::pair<StringAttr, Value>> inputs, outputs;
  DenseMap<Value, Value> tokens; ///< of tickets
};

} // namespace

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
  if (!isa<tfm::TfmDialect>(def->getDialect()))
    return false;
  StringRef name = def->getName().stripDialect();
  const plan::KernelSpec *spec = plan::lookupKernel({name.data(), name.size()});
  if (!spec)
    return false;
  unsigned written = 0;
  for (const plan::OperandSpec &operand : spec->operands)
    if (operand.access == plan::Access::Write &&
        written++ == produced.getResultNumber())
      return operand.accumulable;
  return false;
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
// Kernels
//===----------------------------------------------------------------------===//

FailureOr<DictionaryAttr> Converter::settingsOf(Operation &op,
                                                const plan::KernelSpec &spec) {
  Builder builder(op.getContext());
  NamedAttrList settings;
  for (const plan::AttributeSpec &attribute : spec.attributes) {
    StringRef name(attribute.name.data(), attribute.name.size());
    std::optional<Attribute> given = op.getInherentAttr(name);
    Attribute value = given ? *given : Attribute();
    using Kind = plan::AttributeSpec::Kind;
    Attribute setting;
    if (attribute.kind == Kind::Int) {
      // A unit attribute that is absent is 0.
      int64_t number = isa_and_present<UnitAttr>(value);
      if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
        number = integer.getType().isInteger(1) ? !integer.getValue().isZero()
                                                : integer.getInt();
      else if (value && !isa<UnitAttr>(value))
        return op.emitOpError() << "has '" << name << "' that is no integer";
      setting = builder.getI64IntegerAttr(number);
    } else if (attribute.kind == Kind::Float) {
      setting = dyn_cast_or_null<FloatAttr>(value);
    } else {
      setting = dyn_cast_or_null<DenseF64ArrayAttr>(value);
    }
    if (!setting) {
      if (attribute.optional)
        continue;
      return op.emitOpError() << "lacks '" << name << "', which kernel \""
                              << op.getName().stripDialect() << "\" needs";
    }
    settings.set(name, setting);
  }
  return settings.empty() ? DictionaryAttr()
                          : settings.getDictionary(op.getContext());
}

Slot Converter::readable(Operation &op, Value value,
                         const plan::OperandSpec &spec) {
  const Slot &slot = places[value];
  if (spec.strided || slot.view.isDense())
    return slot;
  auto type = cast<RankedTensorType>(value.getType());
  Slot dense = places.allocate(op.getLoc(), BufferKind::Transient, type, 0,
                               sourceName(op.getLoc()));
  steps.copy(op.getLoc(), slot, dense, costs.copyNs(Places::bytesOf(type)));
  return dense;
}

/// A kernel writes the rows of its result; the padding behind them is what was
/// in the memory before.
void Converter::clearTail(Location loc, Value value, const Slot &slot) {
  int64_t tail = places.tailBytes(value);
  if (tail == 0)
    return;
  MLIRContext *context = loc.getContext();
  auto view = ViewAttr::get(context, IntegerType::get(context, 8), tail,
                            slot.view.getOffset() + slot.view.getExtent());
  steps.fill(loc, {slot.buffer, view}, costs.copyNs(tail));
}

LogicalResult Converter::convertKernel(Operation &op,
                                       const plan::KernelSpec &spec) {
  FailureOr<DictionaryAttr> settings = settingsOf(op, spec);
  if (failed(settings))
    return failure();

  // Operands of the kernel are, in its order, operands and results of the op:
  // what it updates is both.
  auto isScratch = [](const plan::OperandSpec &operand) {
    return operand.role == plan::Role::Scratch;
  };
  unsigned fixedReads = 0;
  for (const plan::OperandSpec &operand : spec.operands)
    fixedReads += !operand.variadic && !isScratch(operand) &&
                  operand.access != plan::Access::Write;
  ValueRange reads = op.getOperands(), results = op.getResults();
  unsigned variadicReads =
      reads.size() >= fixedReads ? reads.size() - fixedReads : 0;

  SmallVector<Slot> slots;
  SmallVector<std::pair<Value, Slot>> written;
  FlatSymbolRefAttr parameter;
  bool fits = true;
  auto write = [&](Value result, const Slot &slot) {
    written.emplace_back(result, slot);
    if (!parameter)
      parameter = parameters.gradientOf(result);
  };
  for (const plan::OperandSpec &operand : spec.operands) {
    if (isScratch(operand)) {
      int64_t bytes = costs.scratchBytes(&op);
      auto type =
          RankedTensorType::get(bytes, IntegerType::get(op.getContext(), 8));
      slots.push_back(places.allocate(op.getLoc(), BufferKind::Transient, type,
                                      0, sourceName(op.getLoc())));
      continue;
    }
    bool isRead = operand.access == plan::Access::Read;
    if (operand.access == plan::Access::Write) {
      unsigned count = operand.variadic ? results.size() : 1;
      if (count > results.size()) {
        fits = false;
        break;
      }
      for (Value result : results.take_front(count)) {
        Slot slot = places.destination(result);
        slots.push_back(slot);
        write(result, slot);
      }
      results = results.drop_front(count);
      continue;
    }
    unsigned count = operand.variadic ? variadicReads : 1;
    if (count > reads.size() || (!isRead && results.empty())) {
      fits = false;
      break;
    }
    for (Value value : reads.take_front(count)) {
      slots.push_back(readable(op, value, operand));
      if (operand.role == plan::Role::Weight ||
          operand.role == plan::Role::Master)
        parameter = parameters.weightOf(value);
    }
    reads = reads.drop_front(count);
    if (!isRead) {
      write(results.front(), slots.back());
      results = results.drop_front();
    }
  }
  if (!fits || !reads.empty() || !results.empty())
    return op.emitOpError()
           << "has operands and results that kernel \""
           << op.getName().stripDialect() << "\" does not take";

  steps.kernel(op.getLoc(), op.getName().stripDialect(), slots, *settings,
               parameter, costs.kernelNs(&op));
  for (auto &[result, slot] : written) {
    places.set(result, {slot.buffer, slot.view.withAccumulate(false)});
    clearTail(op.getLoc(), result, slot);
  }
  return success();
}

void Converter::convertKeepFirst(dist::KeepFirstOp op) {
  int64_t mask = 0;
  for (Attribute axis : op.getAxes())
    mask |= int64_t(1) << mesh.position(cast<StringAttr>(axis));
  Builder builder(op.getContext());
  auto settings = builder.getDictionaryAttr(
      builder.getNamedAttr("axes_mask", builder.getI64IntegerAttr(mask)));
  Slot source = places[op.getSource()];
  Slot destination = places.destination(op.getResult());
  steps.kernel(op.getLoc(), "keep_first", {source, destination}, settings,
               parameters.gradientOf(op.getResult()), costs.kernelNs(op));
  places.set(op.getResult(),
             {destination.buffer, destination.view.withAccumulate(false)});
  clearTail(op.getLoc(), op.getResult(), destination);
}

void Converter::convertSplit(tfm::SplitOp op) {
  const Slot source = places[op.getX()];
  ViewAttr view = source.view;
  int64_t pitch = view.getPitch() ? view.getPitch() : view.getDims().back();
  int64_t offset = view.getOffset();
  for (Value result : op.getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    places.set(result,
               {source.buffer,
                ViewAttr::get(op.getContext(), type.getElementType(),
                              type.getShape(), offset, pitch,
                              view.getIterationStride(), view.getRankStrides(),
                              /*accumulate=*/false)});
    offset += type.getShape().back() * view.getElementBytes();
  }
}

LogicalResult Converter::convertSlice(dist::SliceOp op) {
  auto type = op.getResult().getType();
  Slot source = places[op.getSource()];
  if (op.getDim() != 0 || !source.view.isDense())
    return op.emitOpError("slices another dimension than the first of a dense "
                          "value, which plans do not do yet");
  // The coordinate along the listed axes, major to minor, counts pieces.
  SmallVector<int64_t> strides;
  int64_t stride = Places::bytesOf(type);
  for (Attribute attr : llvm::reverse(op.getAxes())) {
    auto axis = cast<StringAttr>(attr);
    strides.append({int64_t(mesh.position(axis)), stride});
    stride *= mesh.degree(axis);
  }
  ViewAttr view = source.view;
  auto piece = ViewAttr::get(op.getContext(), view.getDtype(), type.getShape(),
                             view.getOffset(), 0, view.getIterationStride(),
                             strides, /*accumulate=*/false);
  Slot destination = places.destination(op.getResult());
  steps.copy(op.getLoc(), {source.buffer, piece}, destination,
             costs.copyNs(Places::bytesOf(type)));
  places.set(op.getResult(), destination);
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

LogicalResult Converter::convertCollective(Operation &op,
                                           const CollectiveSpec &spec) {
  Value result = op.getResult(0);
  FailureOr<machine::CollectivePrice> price = costs.price(spec, op.getLoc());
  if (failed(price))
    return failure();
  if (spec.dim != 0)
    return op.emitOpError() << "works along dimension " << spec.dim
                            << ", plans only join and cut the first";

  StepBuilder::Collective out;
  out.source = places[spec.source];
  bool reduces = spec.kind == dist::CollectiveKind::AllReduce;
  if (reduces && !places.isAssigned(result) &&
      places.reducesInPlace(spec.source))
    places.assign(result, out.source);
  out.destination = places.destination(result);
  places.set(result, {out.destination.buffer,
                      out.destination.view.withAccumulate(false)});

  // The long side is that of all shards, padding included.
  auto full = [&](const Slot &slot) -> Slot {
    return {slot.buffer, ViewAttr::get(op.getContext(), slot.view.getDtype(),
                                       spec.fullShape, slot.view.getOffset())};
  };
  bool scalar = spec.resultType.getRank() == 0;
  switch (spec.kind) {
  case dist::CollectiveKind::Materialize:
  case dist::CollectiveKind::AllGather:
    out.kind = CollectiveKind::AllGather;
    out.destination = full(out.destination);
    break;
  case dist::CollectiveKind::ReduceScatter:
    out.kind = CollectiveKind::ReduceScatter;
    out.source = full(out.source);
    break;
  case dist::CollectiveKind::AllReduce:
    out.kind = CollectiveKind::AllReduce;
    break;
  }
  if (!out.source.view.isDense() || !out.destination.view.isDense())
    return op.emitOpError("works on a value whose rows are apart in memory");

  Purpose purpose = spec.isGather() ? Purpose::Gather
                    : scalar        ? Purpose::Scalar
                                    : Purpose::Reduce;
  out.communicator = communicators.get(purpose, spec.axes);
  out.parameter = parameters.weightOf(spec.source);
  if (!out.parameter)
    out.parameter = parameters.gradientOf(result);
  out.wire = spec.wire;
  out.accumulation = spec.accumulation;
  out.order = spec.order == dist::Order::Ring ? planir::Order::Ring
                                              : planir::Order::Flat;
  out.transport = price->transport == machine::Transport::Host
                      ? Transport::Host
                      : Transport::Auto;
  out.duration = price->durationNs + (spec.isGather() ? price->ownCopyNs : 0);
  Value token = steps.collective(op.getLoc(), out).getToken();
  if (isa<dist::PrefetchOp>(op))
    tokens[result] = token;
  else
    steps.holdCompute(token);
  return success();
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
  if (isa<tfm::TfmDialect>(op.getDialect())) {
    StringRef name = op.getName().stripDialect();
    if (const plan::KernelSpec *spec =
            plan::lookupKernel({name.data(), name.size()}))
      return convertKernel(op, *spec);
  }
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
    return module.emitError() << "there is no function @"
                              << tfm::kTrainStepFunction << " of one block";
  if (!step->hasAttr(dist::GtpDialect::kPartitionedAttr) ||
      !step->getAttrOfType<dist::MeshAttr>(dist::GtpDialect::kMeshAttr))
    return step.emitOpError("is not partitioned; run gtp-place and "
                            "gtp-partition first");
  auto bodies = llvm::to_vector(step.getOps<tfm::MicrobatchesOp>());
  if (bodies.size() != 1 || bodies.front().getInputs().empty())
    return step.emitOpError() << "has " << bodies.size()
                              << " tfm.microbatches, expected one with inputs";
  tfm::MicrobatchesOp body = bodies.front();
  StatusOr<machine::Profile> profile = machine::Profile::load(target);
  if (!profile.isOk())
    return module.emitError() << profile.message();
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
  step.erase();
  return success();
}
