//===- Places.cpp - Where the values of a step are ------------------------===//

#include "GtpToPlan.h"

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

const Slot &Places::operator[](Value value) const {
  auto found = slots.find(value);
  assert(found != slots.end() && "value is used before it is converted");
  return found->second;
}

Value Places::producedValue(Value value) {
  if (auto await = value.getDefiningOp<dist::AwaitOp>())
    return await.getTicket();
  return value;
}

Value Places::awaitedValue(Value value) {
  if (isa<dist::TicketType>(value.getType()))
    for (OpOperand &use : value.getUses())
      if (auto await = dyn_cast<dist::AwaitOp>(use.getOwner()))
        return await.getResult();
  return value;
}

RankedTensorType Places::tensorType(Value value) {
  if (auto ticket = dyn_cast<dist::TicketType>(value.getType()))
    return ticket.getTensor();
  return cast<RankedTensorType>(value.getType());
}

ViewAttr Places::wholeView(RankedTensorType type) {
  return ViewAttr::get(type.getContext(), type.getElementType(),
                       type.getShape());
}

int64_t Places::bytesOf(RankedTensorType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}

int64_t Places::paddedBytes(Value value) {
  int64_t bytes = bytesOf(tensorType(value));
  Value read = awaitedValue(value);
  int64_t element = elementBytes(tensorType(value).getElementType());
  if (Operation *def = value.getDefiningOp())
    if (std::optional<CollectiveSpec> spec = collectiveSpec(def))
      if (spec->isGather())
        bytes = std::max(bytes, spec->fullBytes());
  for (OpOperand *use : readingUses(read)) {
    if (std::optional<CollectiveSpec> spec = collectiveSpec(use->getOwner())) {
      if (spec->kind == dist::CollectiveKind::ReduceScatter)
        bytes = std::max(bytes, spec->fullBytes());
    } else if (auto slice = dyn_cast<dist::SliceOp>(use->getOwner())) {
      auto piece = slice.getResult().getType();
      auto mesh = dist::placementOf(piece).getMesh();
      int64_t pieces = 1;
      for (Attribute axis : slice.getAxes())
        pieces *= mesh.degree(cast<StringAttr>(axis));
      if (slice.getDim() == 0)
        bytes = std::max(bytes, pieces * piece.getNumElements() * element);
    }
  }
  return bytes;
}

int64_t Places::tailBytes(Value value) const {
  return paddedBytes(value) - bytesOf(tensorType(value));
}

Slot Places::allocate(Location loc, BufferKind kind, RankedTensorType type,
                      int64_t paddedBytes, StringRef name) {
  int64_t bytes = std::max(bytesOf(type), paddedBytes);
  return {steps.createBuffer(loc, kind, bytes, name), wholeView(type)};
}

bool Places::reducesInPlace(Value source) const {
  Operation *def = producedValue(source).getDefiningOp();
  if (!def || readingUses(source).size() != 1 ||
      isa<tfm::SplitOp, tfm::MicrobatchesOp>(def))
    return false;
  return runsKernel(def) || collectiveSpec(def);
}

/// The piece of a concat's result that the concat's operand becomes.
Slot Places::joined(OpOperand &use) {
  auto concat = cast<tfm::ConcatOp>(use.getOwner());
  Slot whole = has(concat.getResult()) ? (*this)[concat.getResult()]
                                       : destination(concat.getResult());
  set(concat.getResult(), whole);
  auto type = cast<RankedTensorType>(use.get().getType());
  int64_t columns = 0;
  for (Value input : concat->getOperands().take_front(use.getOperandNumber()))
    columns += cast<RankedTensorType>(input.getType()).getShape().back();
  ViewAttr view = whole.view;
  int64_t pitch = view.getPitch() ? view.getPitch() : view.getDims().back();
  int64_t offset = view.getOffset() + columns * view.getElementBytes();
  return {whole.buffer, ViewAttr::get(type.getContext(), type.getElementType(),
                                      type.getShape(), offset, pitch)};
}

Slot Places::destination(Value value) {
  if (auto found = assigned.find(value); found != assigned.end())
    return found->second;
  SmallVector<OpOperand *> uses = readingUses(awaitedValue(value));
  if (uses.size() == 1) {
    OpOperand &use = *uses.front();
    Operation *user = use.getOwner();
    if (isa<tfm::ConcatOp>(user) && isJoinedInPlace(user))
      return joined(use);
    // What an all-reduce alone reads is made where its result goes.
    std::optional<CollectiveSpec> spec = collectiveSpec(user);
    if (spec && spec->kind == dist::CollectiveKind::AllReduce &&
        reducesInPlace(awaitedValue(value)))
      if (auto found = assigned.find(user->getResult(0));
          found != assigned.end() && !found->second.view.getAccumulate())
        return found->second;
  }
  return allocate(value.getLoc(), BufferKind::Transient, tensorType(value),
                  paddedBytes(value), sourceName(value.getLoc()));
}
