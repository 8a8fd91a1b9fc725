//===- GtpVerify.cpp - Verification of gtp ops ----------------------------===//
//
// The numbers are those of the constraints in GtpOps.td. Synchronous ops and
// their asynchronous form share the checks, which take the two types.
//
//===----------------------------------------------------------------------===//

#include "dialects/Gtp/GtpDialect.h"

using namespace mlir;
using namespace gtp::dist;

namespace {
using EmitError = function_ref<InFlightDiagnostic()>;

/// The two ends of a conversion.
struct Ends {
  EmitError emitError;
  RankedTensorType source, result;

  PlacementAttr from() const { return placementOf(source); }
  PlacementAttr to() const { return placementOf(result); }
};
} // namespace

static SmallVector<StringAttr> toVector(ArrayAttr axes) {
  return llvm::to_vector(axes.getAsRange<StringAttr>());
}

/// C1 of every op.
static LogicalResult verifySameValue(const Ends &ends) {
  if (ends.source.getElementType() != ends.result.getElementType())
    return ends.emitError()
           << "changes the element type from " << ends.source.getElementType()
           << " to " << ends.result.getElementType();
  if (ends.from().getMesh() != ends.to().getMesh())
    return ends.emitError() << "changes the mesh from " << ends.from().getMesh()
                            << " to " << ends.to().getMesh();
  if (ends.from().logicalShape() != ends.to().logicalShape())
    return ends.emitError() << "changes the logical shape from " << ends.source
                            << " to " << ends.result;
  return success();
}

/// C1 and C2 of every op of a rank.
static LogicalResult verifyLocal(const Ends &ends) {
  if (failed(verifySameValue(ends)))
    return failure();
  for (RankedTensorType type : {ends.source, ends.result})
    if (!hasLocalShape(type))
      return ends.emitError()
             << "expected the shape of a rank, "
             << localType(type.getElementType(), placementOf(type))
             << ", found " << type;
  return success();
}

static LogicalResult expectPlacement(const Ends &ends, const char *whose,
                                     PlacementAttr found,
                                     PlacementAttr expected) {
  if (found == expected)
    return success();
  return ends.emitError() << "expected the " << whose << "'s placement to be "
                          << expected << ", found " << found;
}

static LogicalResult verifyMaterialize(const Ends &ends) {
  if (failed(verifyLocal(ends)))
    return failure();
  // C3
  if (!ends.from().storageDim())
    return ends.emitError() << "expected storage axes to cut one dimension of "
                               "the operand, found "
                            << ends.from();
  return expectPlacement(ends, "result", ends.to(),
                         ends.from().withoutStorage());
}

static LogicalResult verifyAxes(const Ends &ends, ArrayRef<StringAttr> axes) {
  if (axes.empty())
    return ends.emitError() << "expected axes, found none";
  return success();
}

/// `uncut` is `cut` without `axes`, the last that cut its dimension `dim`; null
/// after an error.
static PlacementAttr dropAxes(const Ends &ends, const char *whose,
                              PlacementAttr cut, int64_t dim,
                              ArrayRef<StringAttr> axes) {
  if (failed(verifyAxes(ends, axes)))
    return {};
  if (dim >= static_cast<int64_t>(cut.getDims().size())) {
    ends.emitError() << "dimension " << dim << " of a tensor of rank "
                     << cut.getDims().size();
    return {};
  }
  DimAttr dropped = cut.getDims()[dim].withoutLast(axes);
  if (dropped)
    return cut.withDim(dim, dropped);
  ends.emitError() << "expected " << axesText(axes)
                   << " to be the last axes that cut "
                   << "dimension " << dim << " of the " << whose << ", found "
                   << cut.getDims()[dim];
  return {};
}

static LogicalResult verifyAllGather(const Ends &ends, int64_t dim,
                                     ArrayRef<StringAttr> axes) {
  if (failed(verifyLocal(ends)))
    return failure();
  // C3
  PlacementAttr expected = dropAxes(ends, "operand", ends.from(), dim, axes);
  return failure(!expected ||
                 failed(expectPlacement(ends, "result", ends.to(), expected)));
}

static LogicalResult verifySlice(const Ends &ends, int64_t dim,
                                 ArrayRef<StringAttr> axes) {
  if (failed(verifyLocal(ends)))
    return failure();
  // C3
  PlacementAttr expected = dropAxes(ends, "result", ends.to(), dim, axes);
  return failure(!expected || failed(expectPlacement(ends, "operand",
                                                     ends.from(), expected)));
}

/// `partial` is `whole` but for being partial over `axes` too.
static LogicalResult expectPartialOver(const Ends &ends, PlacementAttr partial,
                                       PlacementAttr whole,
                                       ArrayRef<StringAttr> axes) {
  if (failed(verifyAxes(ends, axes)))
    return failure();
  SmallVector<StringAttr> rest;
  for (StringAttr axis : partial.getPartialAxes())
    if (!llvm::is_contained(axes, axis))
      rest.push_back(axis);
  if (rest.size() + axes.size() != partial.getPartialAxes().size())
    return ends.emitError() << "expected a value that is partial over "
                            << axesText(axes) << ", found " << partial;
  return expectPlacement(ends, "whole value", whole,
                         partial.withPartial(partial.getPartialKind(), rest,
                                             partial.getAccumulation()));
}

static LogicalResult verifyWire(const Ends &ends, std::optional<Type> wire) {
  Type element = ends.source.getElementType();
  if (wire && (!wire->isIntOrFloat() ||
               isa<IntegerType>(*wire) != isa<IntegerType>(element) ||
               (isa<IntegerType>(element) && *wire != element)))
    return ends.emitError()
           << "wire type " << *wire << " cannot carry " << element;
  return success();
}

static LogicalResult verifyReduceScatter(const Ends &ends, int64_t dim,
                                         ArrayRef<StringAttr> axes,
                                         std::optional<Type> wire) {
  if (failed(verifyLocal(ends)) || failed(verifyWire(ends, wire)))
    return failure();
  // C3
  if (ends.from().getPartialKind() != PartialKind::Sum)
    return ends.emitError() << "expected a partial sum, found " << ends.from();
  // C4
  PlacementAttr whole = dropAxes(ends, "result", ends.to(), dim, axes);
  return failure(!whole ||
                 failed(expectPartialOver(ends, ends.from(), whole, axes)));
}

static LogicalResult verifyAllReduce(const Ends &ends,
                                     ArrayRef<StringAttr> axes,
                                     std::optional<Type> wire) {
  if (failed(verifyLocal(ends)) || failed(verifyWire(ends, wire)))
    return failure();
  // C3
  return expectPartialOver(ends, ends.from(), ends.to(), axes);
}

static LogicalResult verifyKeepFirst(const Ends &ends,
                                     ArrayRef<StringAttr> axes) {
  if (failed(verifyLocal(ends)))
    return failure();
  // C3
  if (ends.to().getPartialKind() != PartialKind::Sum)
    return ends.emitError()
           << "expected the result to be a partial sum, found " << ends.to();
  return expectPartialOver(ends, ends.to(), ends.from(), axes);
}

//===----------------------------------------------------------------------===//
// Synchronous ops
//===----------------------------------------------------------------------===//

/// Calls `check` with the ends of a conversion and errors at it.
template <typename OpTy, typename Check>
static LogicalResult verifyEnds(OpTy op, Check check) {
  auto emitError = [&] { return op.emitOpError(); };
  return check(Ends{emitError, op.getSource().getType(), op.getType()});
}

LogicalResult ConvertOp::verify() {
  return verifyEnds(*this, [&](const Ends &ends) -> LogicalResult {
    if (failed(verifySameValue(ends)))
      return failure();
    // C2
    for (RankedTensorType type : {ends.source, ends.result})
      if (!hasLogicalShape(type))
        return ends.emitError() << "expected the logical shape, found " << type;
    return success();
  });
}

LogicalResult MaterializeOp::verify() {
  return verifyEnds(*this, verifyMaterialize);
}

LogicalResult AllGatherOp::verify() {
  return verifyEnds(*this, [&](const Ends &ends) {
    return verifyAllGather(ends, getDim(), toVector(getAxes()));
  });
}

LogicalResult SliceOp::verify() {
  return verifyEnds(*this, [&](const Ends &ends) {
    return verifySlice(ends, getDim(), toVector(getAxes()));
  });
}

LogicalResult ReduceScatterOp::verify() {
  return verifyEnds(*this, [&](const Ends &ends) {
    return verifyReduceScatter(ends, getDim(), toVector(getAxes()), getWire());
  });
}

LogicalResult AllReduceOp::verify() {
  return verifyEnds(*this, [&](const Ends &ends) {
    return verifyAllReduce(ends, toVector(getAxes()), getWire());
  });
}

LogicalResult KeepFirstOp::verify() {
  return verifyEnds(*this, [&](const Ends &ends) {
    return verifyKeepFirst(ends, toVector(getAxes()));
  });
}

//===----------------------------------------------------------------------===//
// Asynchronous ops
//===----------------------------------------------------------------------===//

LogicalResult PrefetchOp::verify() {
  CollectiveKind kind = getKind();
  bool weight = kind == CollectiveKind::Materialize;
  bool scatters = kind == CollectiveKind::AllGather ||
                  kind == CollectiveKind::ReduceScatter;
  bool reduces = kind == CollectiveKind::ReduceScatter ||
                 kind == CollectiveKind::AllReduce;
  // C1
  struct Rule {
    const char *name;
    Attribute found;
    bool required, allowed;
  };
  for (const Rule &rule :
       {Rule{"plane", getPlaneAttr(), weight, weight},
        Rule{"interval", getIntervalAttr(), weight, weight},
        Rule{"dim", getDimAttr(), scatters, scatters},
        Rule{"over", getAxesAttr(), !weight, !weight},
        Rule{"wire", getWireAttr(), false, reduces},
        Rule{"order", getOrder() == Order::Flat ? Attribute() : getOrderAttr(),
             false, reduces}}) {
    if (rule.required && !rule.found)
      return emitOpError() << stringifyCollectiveKind(kind) << " needs '"
                           << rule.name << "'";
    if (rule.found && !rule.allowed)
      return emitOpError() << stringifyCollectiveKind(kind) << " has no '"
                           << rule.name << "'";
  }
  // C2
  auto emitError = [&] { return emitOpError(); };
  if (!placementOf(getTicket().getType().getTensor()))
    return emitOpError() << "expected the ticket of a tensor with a placement, "
                            "found "
                         << getTicket().getType();
  Ends ends{emitError, getSource().getType(),
            getTicket().getType().getTensor()};
  SmallVector<StringAttr> axes;
  if (getAxes())
    axes = toVector(*getAxes());
  switch (kind) {
  case CollectiveKind::Materialize:
    return verifyMaterialize(ends);
  case CollectiveKind::AllGather:
    return verifyAllGather(ends, *getDim(), axes);
  case CollectiveKind::ReduceScatter:
    return verifyReduceScatter(ends, *getDim(), axes, getWire());
  case CollectiveKind::AllReduce:
    return verifyAllReduce(ends, axes, getWire());
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult ReleaseOp::verify() {
  // C1
  for (Operation *user : getValue().getUsers()) {
    Operation *inBlock = (*this)->getBlock()->findAncestorOpInBlock(*user);
    if (user != *this && inBlock && (*this)->isBeforeInBlock(inBlock)) {
      InFlightDiagnostic diagnostic =
          emitOpError("of a value that is used later");
      diagnostic.attachNote(user->getLoc()) << "used here";
      return diagnostic;
    }
  }
  // C2
  if (!getTicket())
    return success();
  auto prefetch = getTicket().getDefiningOp<PrefetchOp>();
  if (prefetch && prefetch.getSource() != getValue()) {
    InFlightDiagnostic diagnostic =
        emitOpError("expected the ticket of a collective that reads the value");
    diagnostic.attachNote(prefetch.getLoc()) << "the collective reads another";
    return diagnostic;
  }
  return success();
}
