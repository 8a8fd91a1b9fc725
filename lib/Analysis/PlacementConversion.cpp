//===- PlacementConversion.cpp - Steps from one placement to another ------===//

#include "gtp/Analysis/PlacementConversion.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

using Kind = ConversionStep::Kind;

/// Number of leading axes that cut both dimensions alike, so that the minor
/// axes behind them can change while these stay.
static size_t commonAxes(DimAttr a, DimAttr b) {
  if (a == b)
    return a.axes().size();
  auto common = [](ArrayRef<StringAttr> x, ArrayRef<StringAttr> y) {
    size_t count = 0;
    while (count < std::min(x.size(), y.size()) && x[count] == y[count])
      ++count;
    return count;
  };
  // Compute axes cut segments; storage axes what all compute axes leave.
  size_t compute = a.getSegmentSizes() == b.getSegmentSizes()
                       ? common(a.getComputeAxes(), b.getComputeAxes())
                       : 0;
  if (a.getComputeAxes() != b.getComputeAxes() ||
      compute != a.getComputeAxes().size() || a.getGranule() != b.getGranule())
    return compute;
  return compute + common(a.getStorageAxes(), b.getStorageAxes());
}

namespace {
/// The value on its way.
class Conversion {
public:
  Conversion(PlacementAttr from, PlacementAttr to) : now(from), to(to) {}

  SmallVector<ConversionStep> run();

private:
  bool isPartialOver(StringAttr axis) const {
    return llvm::is_contained(now.getPartialAxes(), axis);
  }
  bool cutsAnyDim(StringAttr axis) const {
    return llvm::any_of(now.getDims(), [&](DimAttr dim) {
      return llvm::is_contained(dim.axes(), axis);
    });
  }
  void step(Kind kind, unsigned dim, ArrayRef<StringAttr> axes,
            PlacementAttr result) {
    steps.push_back({kind, dim, SmallVector<StringAttr>(axes), result});
    now = result;
  }
  /// Partial axes without these.
  PlacementAttr reduced(ArrayRef<StringAttr> axes) const {
    SmallVector<StringAttr> rest;
    for (StringAttr axis : now.getPartialAxes())
      if (!llvm::is_contained(axes, axis))
        rest.push_back(axis);
    return now.withPartial(now.getPartialKind(), rest, now.getAccumulation());
  }
  void cut(unsigned dim);
  void reduce();
  void gather(unsigned dim);
  void makePartial();

  PlacementAttr now, to;
  SmallVector<ConversionStep> steps;
};
} // namespace

/// Adds the axes that dimension `dim` lacks, as far as they are free.
void Conversion::cut(unsigned dim) {
  size_t have = now.getDims()[dim].axes().size();
  if (commonAxes(now.getDims()[dim], to.getDims()[dim]) != have)
    return;
  SmallVector<StringAttr> wanted = to.getDims()[dim].axes();
  wanted.erase(wanted.begin(), wanted.begin() + have);
  // Storage axes cut what all compute axes leave, at their own granule: they
  // are a step of their own.
  size_t compute = to.getDims()[dim].getComputeAxes().size();
  size_t storage = compute > have ? compute - have : 0;
  size_t free = 0;
  while (free < wanted.size() && !cutsAnyDim(wanted[free]))
    ++free;
  for (size_t begin = 0, end = 0; begin < free; begin = end) {
    bool partial = isPartialOver(wanted[begin]);
    do
      ++end;
    while (end < free && end != storage &&
           isPartialOver(wanted[end]) == partial);
    if (partial && now.getPartialKind() != PartialKind::Sum)
      return; // no reduce-scatter of maxima: reduced whole, then cut
    ArrayRef<StringAttr> axes =
        ArrayRef<StringAttr>(wanted).slice(begin, end - begin);
    ArrayRef<StringAttr> left = ArrayRef<StringAttr>(wanted).drop_front(end);
    DimAttr next = to.getDims()[dim].withoutLast(left);
    PlacementAttr result = partial ? reduced(axes) : now;
    step(partial ? Kind::ReduceScatter : Kind::Slice, dim, axes,
         result.withDim(dim, next));
  }
}

void Conversion::reduce() {
  SmallVector<StringAttr> axes;
  for (StringAttr axis : now.getPartialAxes())
    if (!llvm::is_contained(to.getPartialAxes(), axis))
      axes.push_back(axis);
  if (!axes.empty())
    step(Kind::AllReduce, 0, axes, reduced(axes));
}

/// Removes the axes that dimension `dim` should not have.
void Conversion::gather(unsigned dim) {
  DimAttr cut = now.getDims()[dim];
  SmallVector<StringAttr> axes = cut.axes();
  auto extra =
      ArrayRef<StringAttr>(axes).drop_front(commonAxes(cut, to.getDims()[dim]));
  if (!extra.empty())
    step(Kind::AllGather, dim, extra, now.withDim(dim, cut.withoutLast(extra)));
}

void Conversion::makePartial() {
  SmallVector<StringAttr> axes, all(now.getPartialAxes());
  for (StringAttr axis : to.getPartialAxes())
    if (!isPartialOver(axis)) {
      axes.push_back(axis);
      all.push_back(axis);
    }
  if (!axes.empty())
    step(Kind::KeepFirst, 0, axes,
         now.withPartial(to.getPartialKind(), all, to.getAccumulation()));
}

SmallVector<ConversionStep> Conversion::run() {
  unsigned rank = now.getDims().size();
  for (unsigned dim = 0; dim < rank; ++dim)
    cut(dim);
  reduce();
  for (unsigned dim = 0; dim < rank; ++dim)
    gather(dim);
  for (unsigned dim = 0; dim < rank; ++dim)
    cut(dim);
  makePartial();
  return std::move(steps);
}

FailureOr<SmallVector<ConversionStep>>
gtp::planConversion(PlacementAttr from, PlacementAttr to,
                    function_ref<InFlightDiagnostic()> emitError) {
  if (from.getMesh() != to.getMesh() ||
      from.logicalShape() != to.logicalShape())
    return emitError() << "no conversion between values of different mesh or "
                          "logical shape, "
                       << from << " and " << to;
  if (to.isPartial() && from.isPartial() &&
      (to.getPartialKind() != from.getPartialKind() ||
       to.getAccumulation() != from.getAccumulation()))
    return emitError() << "no conversion between partial values of different "
                          "kind or accumulation type, "
                       << from << " and " << to;
  if (to.getPartialKind() == PartialKind::Max && !from.isPartial())
    return emitError() << "no conversion to a partial maximum from " << from;
  SmallVector<ConversionStep> steps = Conversion(from, to).run();
  if ((steps.empty() ? from : steps.back().result) != to)
    return emitError() << "no conversion from " << from << " to " << to;
  return steps;
}
