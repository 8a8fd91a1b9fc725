//===- GtpPlacement.cpp - Arithmetic of meshes and placements -------------===//

#include "dialects/Gtp/GtpDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gtp::dist;

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

unsigned MeshAttr::position(StringAttr axis) const {
  return llvm::find(getNames(), axis) - getNames().begin();
}

bool MeshAttr::has(StringAttr axis) const {
  return llvm::is_contained(getNames(), axis);
}

int64_t MeshAttr::degree(StringAttr axis) const {
  unsigned index = position(axis);
  return index < getDegrees().size() ? getDegrees()[index] : 1;
}

int64_t MeshAttr::degree(ArrayRef<StringAttr> axes) const {
  int64_t product = 1;
  for (StringAttr axis : axes)
    product *= degree(axis);
  return product;
}

int64_t MeshAttr::size() const { return degree(getNames()); }

SmallVector<StringAttr> MeshAttr::sorted(ArrayRef<StringAttr> axes) const {
  SmallVector<StringAttr> result(axes);
  llvm::sort(result, [&](StringAttr a, StringAttr b) {
    return position(a) < position(b);
  });
  return result;
}

//===----------------------------------------------------------------------===//
// DimAttr
//===----------------------------------------------------------------------===//

SmallVector<StringAttr> DimAttr::axes() const {
  SmallVector<StringAttr> result(getComputeAxes());
  llvm::append_range(result, getStorageAxes());
  return result;
}

bool DimAttr::isCut() const {
  return !getComputeAxes().empty() || !getStorageAxes().empty();
}

int64_t DimAttr::computeSize(MeshAttr mesh) const {
  if (getComputeAxes().empty())
    return getSize();
  int64_t degree = mesh.degree(getComputeAxes());
  if (getSegmentSizes().empty())
    return llvm::divideCeil(getSize(), degree);
  int64_t local = 0;
  for (int64_t segment : getSegmentSizes())
    local += llvm::divideCeil(segment, degree);
  return local;
}

int64_t DimAttr::localSize(MeshAttr mesh) const {
  int64_t local = computeSize(mesh);
  if (getStorageAxes().empty())
    return local;
  int64_t granules = llvm::divideCeil(local, getGranule());
  return llvm::divideCeil(granules, mesh.degree(getStorageAxes())) *
         getGranule();
}

int64_t DimAttr::paddedSize(MeshAttr mesh) const {
  return localSize(mesh) * mesh.degree(getStorageAxes());
}

DimAttr DimAttr::withoutStorage() const {
  return DimAttr::get(getContext(), getSize(), getSegmentNames(),
                      getSegmentSizes(), getComputeAxes(), {}, 1);
}

DimAttr DimAttr::withoutLast(ArrayRef<StringAttr> axes) const {
  SmallVector<StringAttr> all = this->axes();
  if (axes.size() > all.size() ||
      ArrayRef<StringAttr>(all).take_back(axes.size()) != axes)
    return {};
  size_t fromStorage = std::min(axes.size(), getStorageAxes().size());
  ArrayRef<StringAttr> storage = getStorageAxes().drop_back(fromStorage);
  return DimAttr::get(getContext(), getSize(), getSegmentNames(),
                      getSegmentSizes(),
                      getComputeAxes().drop_back(axes.size() - fromStorage),
                      storage, storage.empty() ? 1 : getGranule());
}

DimAttr DimAttr::withSize(int64_t size) const {
  if (size == getSize())
    return *this;
  // Segments are of the old size.
  return DimAttr::get(getContext(), size, ArrayRef<StringAttr>(),
                      ArrayRef<int64_t>(), getComputeAxes(), getStorageAxes(),
                      getGranule());
}

//===----------------------------------------------------------------------===//
// PlacementAttr
//===----------------------------------------------------------------------===//

PlacementAttr PlacementAttr::replicated(MeshAttr mesh,
                                        ArrayRef<int64_t> shape) {
  SmallVector<DimAttr> dims;
  for (int64_t size : shape)
    dims.push_back(DimAttr::get(mesh.getContext(), size));
  return PlacementAttr::get(mesh, dims);
}

SmallVector<int64_t> PlacementAttr::logicalShape() const {
  return llvm::map_to_vector(getDims(),
                             [](DimAttr dim) { return dim.getSize(); });
}

SmallVector<int64_t> PlacementAttr::localShape() const {
  return llvm::map_to_vector(
      getDims(), [&](DimAttr dim) { return dim.localSize(getMesh()); });
}

SmallVector<int64_t> PlacementAttr::paddedShape() const {
  return llvm::map_to_vector(
      getDims(), [&](DimAttr dim) { return dim.paddedSize(getMesh()); });
}

bool PlacementAttr::isStorageCut() const {
  return llvm::any_of(
      getDims(), [](DimAttr dim) { return !dim.getStorageAxes().empty(); });
}

bool PlacementAttr::isReplicated() const {
  return !isPartial() &&
         llvm::none_of(getDims(), [](DimAttr dim) { return dim.isCut(); });
}

std::optional<unsigned> PlacementAttr::storageDim() const {
  std::optional<unsigned> found;
  for (auto [index, dim] : llvm::enumerate(getDims())) {
    if (dim.getStorageAxes().empty())
      continue;
    if (found)
      return std::nullopt;
    found = index;
  }
  return found;
}

PlacementAttr PlacementAttr::withDims(ArrayRef<DimAttr> dims) const {
  return PlacementAttr::get(getContext(), getMesh(), dims, getPartialKind(),
                            getPartialAxes(), getAccumulation());
}

PlacementAttr PlacementAttr::withDim(unsigned index, DimAttr dim) const {
  SmallVector<DimAttr> dims(getDims());
  dims[index] = dim;
  return withDims(dims);
}

PlacementAttr PlacementAttr::withoutStorage() const {
  return withDims(llvm::map_to_vector(
      getDims(), [](DimAttr dim) { return dim.withoutStorage(); }));
}

PlacementAttr PlacementAttr::withoutPartial() const {
  return PlacementAttr::get(getMesh(), getDims());
}

PlacementAttr PlacementAttr::withPartial(PartialKind kind,
                                         ArrayRef<StringAttr> axes,
                                         Type accumulation) const {
  if (axes.empty())
    return withoutPartial();
  return PlacementAttr::get(getContext(), getMesh(), getDims(), kind,
                            getMesh().sorted(axes), accumulation);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

PlacementAttr gtp::dist::placementOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<PlacementAttr>(tensor.getEncoding())
                : PlacementAttr();
}

RankedTensorType gtp::dist::logicalType(Type element, PlacementAttr placement) {
  return RankedTensorType::get(placement.logicalShape(), element, placement);
}

RankedTensorType gtp::dist::localType(Type element, PlacementAttr placement) {
  return RankedTensorType::get(placement.localShape(), element, placement);
}

bool gtp::dist::hasLocalShape(Type type) {
  PlacementAttr placement = placementOf(type);
  return placement && cast<RankedTensorType>(type).getShape() ==
                          ArrayRef<int64_t>(placement.localShape());
}

bool gtp::dist::hasLogicalShape(Type type) {
  PlacementAttr placement = placementOf(type);
  return placement && cast<RankedTensorType>(type).getShape() ==
                          ArrayRef<int64_t>(placement.logicalShape());
}

Type gtp::dist::accumulationType(Type element) {
  if (isa<IntegerType>(element))
    return IntegerType::get(element.getContext(), 64);
  if (element.isF64())
    return element;
  return Float32Type::get(element.getContext());
}
