//===- GtpToPlanKernels.cpp - Kernels, splits and slices ------------------===//

#include "GtpToPlan.h"

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

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
    // Optional attributes are 0 when they are absent, and absent when 0.
    auto isZero = [](Attribute number) {
      if (auto integer = dyn_cast_or_null<IntegerAttr>(number))
        return integer.getValue().isZero();
      auto real = dyn_cast_or_null<FloatAttr>(number);
      return !number || (real && real.getValue().isZero());
    };
    if (attribute.optional && isZero(setting))
      continue;
    if (!setting) {
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

Slot Converter::updated(Value operand, OpResult result) {
  const Slot slot = places[operand];
  if (overwrittenBy(result) == operand && !places.isAssigned(result) &&
      places.tailBytes(result) <= places.tailBytes(operand))
    return slot;
  Slot copy = places.destination(result);
  steps.copy(result.getLoc(), slot, copy,
             costs.copyNs(Places::bytesOf(Places::tensorType(operand))));
  return copy;
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

FailureOr<Slot> Converter::scratch(Operation &op,
                                   const plan::OperandSpec &operand) {
  int64_t bytes = costs.scratchBytes(&op);
  const bool isOptional = operand.variadic && operand.minCount == 0;
  if (isOptional && bytes == 0)
    return Slot();
  // No device has this much; sums of what is larger could overflow.
  constexpr int64_t kMost = int64_t(1) << 44;
  if (bytes > kMost)
    return op.emitOpError("needs scratch of ")
           << bytes << " bytes by the target's profile, expected at most "
           << kMost << "; see \"scratch\" there";
  auto type =
      RankedTensorType::get(bytes, IntegerType::get(op.getContext(), 8));
  auto make = [&](StringRef name) {
    return places.allocate(op.getLoc(), BufferKind::Transient, type, 0, name);
  };
  if (!isOptional)
    return make(sourceName(op.getLoc()));
  // A workspace is small and the same for many kernels: hundreds of buffers
  // with lives of one operation would only make the memory harder to pack.
  Slot &workspace = workspaces[bytes];
  if (!workspace)
    workspace = make("workspace");
  return workspace;
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
  FlatSymbolRefAttr parameter, secondParameter;
  unsigned weights = 0;
  bool fits = true;
  auto write = [&](Value result, const Slot &slot) {
    written.emplace_back(result, slot);
    if (!parameter)
      parameter = parameters.gradientOf(result);
  };
  for (const plan::OperandSpec &operand : spec.operands) {
    if (isScratch(operand)) {
      FailureOr<Slot> slot = scratch(op, operand);
      if (failed(slot))
        return failure();
      if (*slot)
        slots.push_back(*slot);
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
      // Persistent state is advanced where it is.
      if (!isRead && operand.role == plan::Role::Value)
        slots.push_back(updated(value, cast<OpResult>(results.front())));
      else
        slots.push_back(readable(op, value, operand));
      if (operand.role == plan::Role::Weight && weights++ > 0)
        secondParameter = parameters.weightOf(value);
      else if (operand.role == plan::Role::Weight ||
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
               parameter, costs.kernelNs(&op), secondParameter);
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

Slot Converter::ownPiece(const Slot &whole, ArrayRef<StringAttr> axes,
                         ArrayRef<int64_t> shape) const {
  ViewAttr view = whole.view;
  // The coordinate along the axes, the last of which varies fastest, counts
  // pieces.
  SmallVector<int64_t> strides;
  int64_t stride = llvm::product_of(shape) * view.getElementBytes();
  for (StringAttr axis : llvm::reverse(axes)) {
    strides.append({int64_t(mesh.position(axis)), stride});
    stride *= mesh.degree(axis);
  }
  return {whole.buffer, ViewAttr::get(view.getContext(), view.getDtype(), shape,
                                      view.getOffset(), /*pitch=*/0,
                                      view.getIterationStride(), strides,
                                      /*accumulate=*/false)};
}

LogicalResult Converter::convertSlice(dist::SliceOp op) {
  auto type = op.getResult().getType();
  Slot source = places[op.getSource()];
  if (op.getDim() != 0 || !source.view.isDense())
    return op.emitOpError("slices another dimension than the first of a dense "
                          "value, which plans do not do yet");
  Slot destination = places.destination(op.getResult());
  steps.copy(op.getLoc(),
             ownPiece(source,
                      llvm::to_vector(op.getAxes().getAsRange<StringAttr>()),
                      type.getShape()),
             destination, costs.copyNs(Places::bytesOf(type)));
  places.set(op.getResult(), destination);
  return success();
}
