//===- GtpPrefetch.cpp - Asynchronous collectives -------------------------===//

#include "dialects/Gtp/GtpDialect.h"
#include "gtp/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gtp {
#define GEN_PASS_DEF_GTPPREFETCHPASS
#include "gtp/Transforms/Passes.h.inc"
} // namespace gtp

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

namespace {

/// Splits the collectives of one block. Positions are those of ops before
/// anything moved; the synchronous ops stay as marks until the end.
class BlockSplitter {
public:
  /// With `onlyPinned`, gathers that are `gtp.pinned`, and no other collective.
  BlockSplitter(Block &block, bool onlyPinned);

  LogicalResult run();

private:
  LogicalResult splitMaterialize(MaterializeOp op);
  LogicalResult split(Operation *op);

  /// The decision attached to an op, checked against [first, last]; `fallback`
  /// when there is none.
  FailureOr<int64_t> decision(Operation *op, StringRef name, int64_t first,
                              int64_t last, int64_t fallback);
  int64_t positionOf(Operation *op) const { return positions.lookup(op); }
  /// Position of the first and last use; -1 without uses.
  std::pair<int64_t, int64_t> usesOf(Value value) const;
  /// Puts the builder behind the op at a position, and behind what was put
  /// there before; -1 is the start of the block.
  void goBehind(int64_t position);
  /// Releases a value behind the op at a position; what a terminator uses
  /// stays.
  void release(Value value, Value ticket, int64_t position, Location loc);
  /// The asynchronous form of a synchronous collective, at the builder.
  PrefetchOp createPrefetch(Operation *op, CollectiveKind kind);

  Block &block;
  bool onlyPinned;
  OpBuilder builder;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, int64_t> positions;
  /// By position + 1: what was last put behind an op.
  DenseMap<int64_t, Operation *> tails;
};

struct GtpPrefetchPass
    : public gtp::impl::GtpPrefetchPassBase<GtpPrefetchPass> {
  using GtpPrefetchPassBase::GtpPrefetchPassBase;
  void runOnOperation() override;
};

} // namespace

BlockSplitter::BlockSplitter(Block &block, bool onlyPinned)
    : block(block), onlyPinned(onlyPinned),
      builder(block.getParent()->getContext()) {
  for (Operation &op : block) {
    positions[&op] = ops.size();
    ops.push_back(&op);
  }
}

FailureOr<int64_t> BlockSplitter::decision(Operation *op, StringRef name,
                                           int64_t first, int64_t last,
                                           int64_t fallback) {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  if (!attribute)
    return fallback;
  if (attribute.getInt() < first || attribute.getInt() > last)
    return op->emitOpError()
           << "has " << name << " = " << attribute.getInt() << " at position "
           << positionOf(op) << " of its block, expected " << first << " to "
           << last;
  return attribute.getInt();
}

std::pair<int64_t, int64_t> BlockSplitter::usesOf(Value value) const {
  int64_t first = -1, last = -1;
  for (Operation *user : value.getUsers()) {
    Operation *inBlock = block.findAncestorOpInBlock(*user);
    auto found = positions.find(inBlock);
    // What this pass has put into the block stands beside its mark.
    if (!inBlock || found == positions.end())
      continue;
    first = first < 0 ? found->second : std::min(first, found->second);
    last = std::max(last, found->second);
  }
  return {first, last};
}

void BlockSplitter::goBehind(int64_t position) {
  Operation *&tail = tails[position + 1];
  if (!tail && position >= 0)
    tail = ops[position];
  if (tail)
    builder.setInsertionPointAfter(tail);
  else
    builder.setInsertionPointToStart(&block);
}

void BlockSplitter::release(Value value, Value ticket, int64_t position,
                            Location loc) {
  if (ops[position]->hasTrait<OpTrait::IsTerminator>())
    return;
  builder.setInsertionPointAfter(ops[position]);
  ReleaseOp::create(builder, loc, value, ticket);
}

PrefetchOp BlockSplitter::createPrefetch(Operation *op, CollectiveKind kind) {
  OperationState state(op->getLoc(), PrefetchOp::getOperationName());
  state.addOperands(op->getOperands());
  state.addTypes(
      TicketType::get(cast<RankedTensorType>(op->getResult(0).getType())));
  // Inherent attributes have the same names in both forms.
  if (auto attributes =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    state.addAttributes(attributes.getValue());
  state.addAttribute(PrefetchOp::getKindAttrName(OperationName(
                         PrefetchOp::getOperationName(), op->getContext())),
                     CollectiveKindAttr::get(op->getContext(), kind));
  return cast<PrefetchOp>(builder.create(state));
}

LogicalResult BlockSplitter::splitMaterialize(MaterializeOp op) {
  int64_t own = positionOf(op);
  auto [first, last] = usesOf(op.getResult());
  FailureOr<int64_t> trigger =
      decision(op, GtpDialect::kTriggerAttr, -1, own - 1, own);
  if (failed(trigger))
    return failure();
  if (first < 0) // no use, no gather
    return success();
  if (Operation *source = op.getSource().getDefiningOp())
    if (source->getBlock() == &block && *trigger < positionOf(source))
      return op.emitOpError() << "is triggered before its operand is defined";
  goBehind(*trigger);
  PrefetchOp prefetch = createPrefetch(op, CollectiveKind::Materialize);
  tails[*trigger + 1] = prefetch;
  builder.setInsertionPoint(ops[first]);
  auto await =
      AwaitOp::create(builder, op.getLoc(), op.getType(), prefetch.getTicket());
  op.getResult().replaceAllUsesWith(await.getResult());
  release(await.getResult(), Value(), last, op.getLoc());
  return success();
}

LogicalResult BlockSplitter::split(Operation *op) {
  CollectiveKind kind = isa<AllGatherOp>(op) ? CollectiveKind::AllGather
                        : isa<ReduceScatterOp>(op)
                            ? CollectiveKind::ReduceScatter
                            : CollectiveKind::AllReduce;
  Value source = op->getOperand(0), result = op->getResult(0);
  int64_t own = positionOf(op), end = ops.size() - 1;
  auto [first, last] = usesOf(result);
  FailureOr<int64_t> before =
      decision(op, GtpDialect::kReleaseBeforeAttr, own + 1, end, -1);
  if (failed(before))
    return failure();
  if (first < 0)
    return success();
  int64_t lastRead = usesOf(source).second;
  if (*before >= 0 && *before <= lastRead)
    return op->emitOpError()
           << "has " << GtpDialect::kReleaseBeforeAttr << " = " << *before
           << " but its operand is used at position " << lastRead;

  builder.setInsertionPoint(op);
  PrefetchOp prefetch = createPrefetch(op, kind);
  builder.setInsertionPoint(ops[first]);
  auto await = AwaitOp::create(builder, op->getLoc(), result.getType(),
                               prefetch.getTicket());
  result.replaceAllUsesWith(await.getResult());
  // Arguments and values of outer blocks live on.
  Operation *producer = source.getDefiningOp();
  if (!producer || producer->getBlock() != &block)
    return success();
  if (*before >= 0) {
    builder.setInsertionPoint(ops[*before]);
    ReleaseOp::create(builder, op->getLoc(), source, prefetch.getTicket());
  } else if (lastRead >= first) {
    release(source, prefetch.getTicket(), lastRead, op->getLoc());
  } else {
    builder.setInsertionPointAfter(await);
    ReleaseOp::create(builder, op->getLoc(), source, prefetch.getTicket());
  }
  return success();
}

LogicalResult BlockSplitter::run() {
  SmallVector<Operation *> marks;
  for (Operation *op : ops) {
    if (onlyPinned && !op->hasAttr(GtpDialect::kPinnedAttr))
      continue;
    LogicalResult result = success();
    if (auto materialize = dyn_cast<MaterializeOp>(op))
      result = splitMaterialize(materialize);
    else if (isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op))
      result = split(op);
    else
      continue;
    if (failed(result))
      return failure();
    marks.push_back(op);
  }
  for (Operation *op : llvm::reverse(marks))
    op->erase();
  return success();
}

void GtpPrefetchPass::runOnOperation() {
  func::FuncOp function = getOperation();
  if (function.isDeclaration())
    return;
  if (!function->hasAttr(GtpDialect::kPartitionedAttr)) {
    function.emitError()
        << "gtp-prefetch: expected a partitioned function; run "
           "gtp-partition first";
    return signalPassFailure();
  }
  SmallVector<Block *> blocks;
  function.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    if (failed(BlockSplitter(*block, /*onlyPinned=*/sync).run()))
      return signalPassFailure();
  if (sync)
    function.walk([](Operation *op) {
      op->removeDiscardableAttr(GtpDialect::kTriggerAttr);
      op->removeDiscardableAttr(GtpDialect::kReleaseBeforeAttr);
    });
}
