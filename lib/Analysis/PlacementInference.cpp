//===- PlacementInference.cpp - From operands' placements to results' -----===//

#include "gtp/Analysis/PlacementInference.h"

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

using tfm::PlacementRule;

namespace {
/// How each factor of a rule is cut: a dimension of any size that has the cut.
class FactorCuts {
public:
  FactorCuts(const PlacementRule &rule, MeshAttr mesh)
      : rule(rule), mesh(mesh), cuts(rule.factors.size()) {}

  /// Takes the cuts of an operand's dimensions into account.
  void add(ArrayRef<unsigned> factors, PlacementAttr placement);
  /// Leaves an axis to the first factor that it cuts.
  void resolveConflicts();

  /// The dimension of a value of this factor and size.
  DimAttr get(unsigned factor, int64_t size) const;
  /// Axes that cut a factor.
  SmallVector<StringAttr> axesOf(unsigned factor) const;
  bool isCutBy(StringAttr axis) const;
  /// Axes that cut factors other than these.
  SmallVector<StringAttr> axesOutside(ArrayRef<unsigned> factors) const;

private:
  const PlacementRule &rule;
  MeshAttr mesh;
  SmallVector<DimAttr> cuts; ///< null: not cut
};
} // namespace

void FactorCuts::add(ArrayRef<unsigned> factors, PlacementAttr placement) {
  for (auto [factor, dim] : llvm::zip_equal(factors, placement.getDims())) {
    if (rule.factors[factor] == PlacementRule::Factor::Whole)
      continue;
    DimAttr cut = rule.acceptsStorageCuts ? dim : dim.withoutStorage();
    int64_t units = rule.units[factor];
    if (units && units % mesh.degree(cut.getComputeAxes()))
      continue;
    if (cut.isCut() && cut.axes().size() > axesOf(factor).size())
      cuts[factor] = cut;
  }
}

void FactorCuts::resolveConflicts() {
  SmallVector<StringAttr> used;
  for (DimAttr &cut : cuts) {
    if (!cut)
      continue;
    SmallVector<StringAttr> axes = cut.axes();
    size_t kept = 0;
    while (kept < axes.size() && !llvm::is_contained(used, axes[kept]))
      used.push_back(axes[kept++]);
    cut = cut.withoutLast(ArrayRef<StringAttr>(axes).drop_front(kept));
  }
}

DimAttr FactorCuts::get(unsigned factor, int64_t size) const {
  DimAttr cut = cuts[factor];
  if (!cut || !cut.isCut())
    return DimAttr::get(mesh.getContext(), size);
  return cut.withSize(size);
}

SmallVector<StringAttr> FactorCuts::axesOf(unsigned factor) const {
  return cuts[factor] ? cuts[factor].axes() : SmallVector<StringAttr>();
}

bool FactorCuts::isCutBy(StringAttr axis) const {
  for (unsigned factor = 0; factor < cuts.size(); ++factor)
    if (llvm::is_contained(axesOf(factor), axis))
      return true;
  return false;
}

SmallVector<StringAttr>
FactorCuts::axesOutside(ArrayRef<unsigned> factors) const {
  SmallVector<StringAttr> axes;
  for (unsigned factor = 0; factor < cuts.size(); ++factor)
    if (!llvm::is_contained(factors, factor))
      llvm::append_range(axes, axesOf(factor));
  return axes;
}

InferredPlacements gtp::inferPlacements(const PlacementRule &rule,
                                        MeshAttr mesh,
                                        ArrayRef<PlacementAttr> operands,
                                        ArrayRef<Type> elements,
                                        ArrayRef<RankedTensorType> results) {
  FactorCuts cuts(rule, mesh);
  for (auto [factors, placement] : llvm::zip_equal(rule.operands, operands))
    cuts.add(factors, placement);
  cuts.resolveConflicts();

  // What all operands are partial over: an axis that cuts is not one of them.
  SmallVector<StringAttr> partial;
  if (rule.linearInPartial)
    for (PlacementAttr placement : operands)
      if (placement.getPartialKind() == PartialKind::Sum)
        for (StringAttr axis : placement.getPartialAxes())
          if (!cuts.isCutBy(axis) && !llvm::is_contained(partial, axis))
            partial.push_back(axis);

  auto place = [&](ArrayRef<unsigned> factors, ArrayRef<int64_t> shape) {
    SmallVector<DimAttr> dims;
    for (auto [factor, size] : llvm::zip_equal(factors, shape))
      dims.push_back(cuts.get(factor, size));
    return PlacementAttr::get(mesh, dims);
  };
  InferredPlacements inferred;
  for (auto [factors, placement, element] :
       llvm::zip_equal(rule.operands, operands, elements)) {
    Type accumulation = placement.getPartialKind() == PartialKind::Sum
                            ? placement.getAccumulation()
                            : accumulationType(element);
    PlacementAttr needed =
        place(factors, placement.logicalShape())
            .withPartial(PartialKind::Sum, partial, accumulation);
    // Where nothing cuts a dimension, its segments are no difference.
    bool same = needed.getPartialKind() == placement.getPartialKind() &&
                needed.getPartialAxes() == placement.getPartialAxes();
    for (auto [a, b] : llvm::zip_equal(needed.getDims(), placement.getDims()))
      same &= a == b || (!a.isCut() && !b.isCut());
    inferred.operands.push_back(same ? placement : needed);
  }
  for (auto [factors, type] : llvm::zip_equal(rule.results, results)) {
    SmallVector<StringAttr> axes = cuts.axesOutside(factors);
    llvm::append_range(axes, partial);
    inferred.results.push_back(
        place(factors, type.getShape())
            .withPartial(PartialKind::Sum, axes,
                         accumulationType(type.getElementType())));
  }
  return inferred;
}
