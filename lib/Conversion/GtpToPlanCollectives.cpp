//===- GtpToPlanCollectives.cpp - Collectives of a step -------------------===//

#include "GtpToPlan.h"

using namespace gtp;
using namespace gtp::planir;
using namespace mlir;

/// The gather's source becomes the rank's own piece of its destination.
void Converter::copyOwnShard(Location loc, const CollectiveSpec &spec,
                             const machine::CollectivePrice &price,
                             StepBuilder::Collective &gather) {
  Slot piece = ownPiece(gather.destination, mesh.sorted(spec.axes),
                        gather.source.view.getDims());
  steps.copyOwnShard(loc, gather.source, piece, price.ownCopyNs);
  gather.source = piece;
}

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

  out.transport = Transport(static_cast<int>(price->transport));
  out.communicator =
      plan.communicators
          .get(spec, out.transport, costs.group(spec.axes).spansDomains())
          .symbol;
  if (int64_t bytes = costs.scratchBytes(spec, *price,
                                         out.destination.view.getAccumulate()))
    out.scratch = places.allocate(
        op.getLoc(), BufferKind::Transient,
        RankedTensorType::get(bytes, IntegerType::get(op.getContext(), 8)), 0,
        sourceName(op.getLoc()));
  out.parameter = parameters.weightOf(spec.source);
  if (!out.parameter)
    out.parameter = parameters.gradientOf(result);
  out.wire = spec.wire;
  out.accumulation = spec.accumulation;
  out.order = spec.order == dist::Order::Ring ? planir::Order::Ring
                                              : planir::Order::Flat;
  out.duration = price->durationNs;
  if (price->copiesApart && spec.isGather())
    copyOwnShard(op.getLoc(), spec, *price, out);
  else
    out.duration += price->ownCopyNs;
  Value token = steps.collective(op.getLoc(), out).getToken();
  if (isa<dist::PrefetchOp>(op))
    tokens[result] = token;
  else
    steps.holdCompute(token);
  return success();
}
