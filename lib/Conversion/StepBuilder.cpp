//===- StepBuilder.cpp - Appends plan operations in issue order -----------===//

#include "StepBuilder.h"

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

StepBuilder::StepBuilder(ProgramOp program, Block &block)
    : program(program), block(block), builder(OpBuilder::atBlockEnd(&block)) {}

void StepBuilder::setInsertionPointBeforeRegions() {
  if (firstRegion)
    builder.setInsertionPoint(firstRegion);
  else
    builder.setInsertionPointToEnd(&block);
}

Value StepBuilder::createBuffer(Location loc, BufferKind kind, int64_t bytes,
                                StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  setInsertionPointBeforeRegions();
  return BufferOp::create(builder, loc, builder.getType<BufferType>(), kind,
                          bytes, name, std::nullopt);
}

RegionOp StepBuilder::beginRegion(Location loc, RegionKind kind,
                                  int64_t repeat) {
  builder.setInsertionPointToEnd(&block);
  region = RegionOp::create(builder, loc, kind, repeat, /*events=*/0);
  region.getBody().emplaceBlock();
  if (!firstRegion)
    firstRegion = region;
  builder.setInsertionPointToEnd(&region.getBody().front());
  // Regions begin and end with a join of all streams.
  accesses.clear();
  indexOf.clear();
  held.clear();
  lastCompute = {};
  nextIndex = 0;
  return region;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// First and one past the last byte that a view reaches on any rank, in any
/// iteration.
static std::pair<int64_t, int64_t> reach(ViewAttr view, RegionOp region,
                                         MeshAttr mesh) {
  int64_t end = view.getOffset() + view.getExtent() +
                view.getIterationStride() * (region.getRepeat() - 1);
  ArrayRef<int64_t> strides = view.getRankStrides();
  for (size_t i = 0; i + 1 < strides.size(); i += 2)
    end += strides[i + 1] * (mesh.getDegrees()[strides[i]] - 1);
  return {view.getOffset(), end};
}

void StepBuilder::finish(StepOpInterface step, ArrayRef<Value> also) {
  unsigned index = nextIndex++;
  indexOf[step.getToken()] = index;
  // Of the operations of one stream only the last matters.
  std::array<Value, kCopyStream + 1> after;
  auto needs = [&](Value token) {
    auto other = token.getDefiningOp<StepOpInterface>();
    if (other.getStream() == step.getStream())
      return;
    Value &last = after[other.getStream()];
    if (!last || indexOf.lookup(last) < indexOf.lookup(token))
      last = token;
  };
  llvm::for_each(also, needs);

  for (auto [i, pair] :
       llvm::enumerate(llvm::zip(step.getBuffers(), step.getViews()))) {
    auto [buffer, attr] = pair;
    int64_t begin, end;
    std::tie(begin, end) =
        reach(cast<ViewAttr>(attr), region, program.getMesh());
    bool writes = step.getAccess(i) != plan::Access::Read;
    SmallVector<Access, 2> &past = accesses[buffer];
    for (Access &access : past)
      if (access.index != index && access.begin < end && begin < access.end &&
          (writes || access.writes))
        needs(access.step.getToken());
    // Whoever conflicts with what this write covers conflicts with the write,
    // and the write comes after it.
    if (writes)
      llvm::erase_if(past, [&](const Access &access) {
        return access.index != index && begin <= access.begin &&
               access.end <= end;
      });
    past.push_back({step, index, begin, end, writes});
  }
  SmallVector<Value> tokens;
  llvm::copy_if(after, std::back_inserter(tokens),
                [](Value token) { return bool(token); });
  step.getAfterMutable().assign(tokens);
}

void StepBuilder::finishCompute(StepOpInterface step) {
  finish(step, held);
  held.clear();
  lastCompute = step.getToken();
}

void StepBuilder::finishTransfer(StepOpInterface step) {
  SmallVector<Value> trigger;
  if (lastCompute)
    trigger.push_back(lastCompute);
  finish(step, trigger);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static SmallVector<Value> buffersOf(ArrayRef<Slot> slots) {
  return llvm::map_to_vector(slots,
                             [](const Slot &slot) { return slot.buffer; });
}

static ArrayAttr viewsOf(OpBuilder &builder, ArrayRef<Slot> slots) {
  return builder.getArrayAttr(llvm::map_to_vector(
      slots, [](const Slot &slot) { return Attribute(slot.view); }));
}

KernelOp StepBuilder::kernel(Location loc, StringRef name,
                             ArrayRef<Slot> operands, DictionaryAttr settings,
                             FlatSymbolRefAttr parameter, int64_t duration,
                             FlatSymbolRefAttr secondParameter) {
  auto op = KernelOp::create(builder, loc, token(), builder.getStringAttr(name),
                             parameter, secondParameter, settings,
                             /*algorithm=*/"", /*sm_target=*/0,
                             buffersOf(operands), viewsOf(builder, operands),
                             ValueRange(), kComputeStream);
  op.setDuration(duration);
  finishCompute(op);
  return op;
}

static CopyOp createCopy(OpBuilder &builder, Location loc, const Slot &source,
                         const Slot &destination, StreamIndex stream,
                         int64_t duration) {
  Slot slots[] = {source, destination};
  auto op = CopyOp::create(builder, loc, builder.getType<TokenType>(),
                           buffersOf(slots), viewsOf(builder, slots),
                           ValueRange(), stream);
  op.setDuration(duration);
  return op;
}

CopyOp StepBuilder::copy(Location loc, const Slot &source,
                         const Slot &destination, int64_t duration) {
  CopyOp op =
      createCopy(builder, loc, source, destination, kComputeStream, duration);
  finishCompute(op);
  return op;
}

CopyOp StepBuilder::copyOwnShard(Location loc, const Slot &shard,
                                 const Slot &piece, int64_t duration) {
  CopyOp op = createCopy(builder, loc, shard, piece, kCopyStream, duration);
  finishTransfer(op);
  return op;
}

FillOp StepBuilder::fill(Location loc, const Slot &destination,
                         int64_t duration) {
  auto op = FillOp::create(
      builder, loc, token(), /*byte=*/0, buffersOf(destination),
      viewsOf(builder, destination), ValueRange(), kComputeStream);
  op.setDuration(duration);
  finishCompute(op);
  return op;
}

CollectiveOp StepBuilder::collective(Location loc,
                                     const Collective &collective) {
  SmallVector<Slot> slots = {collective.source, collective.destination};
  if (collective.scratch)
    slots.push_back(collective.scratch);
  bool gathers = collective.kind == CollectiveKind::AllGather;
  auto op = CollectiveOp::create(
      builder, loc, token(), collective.kind, collective.communicator,
      collective.parameter, TypeAttr::get(collective.wire),
      TypeAttr::get(collective.accumulation), Reduce::Sum, collective.order,
      collective.transport, /*ctas=*/0, /*chunk_bytes=*/0, buffersOf(slots),
      viewsOf(builder, slots), ValueRange(),
      gathers ? kGatherStream : kReduceStream);
  op.setDuration(collective.duration);
  finishTransfer(op);
  return op;
}
