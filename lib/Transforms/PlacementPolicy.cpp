//===- PlacementPolicy.cpp - Where what a training step takes is ----------===//

#include "gtp/Transforms/PlacementPolicy.h"

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Transforms/Mesh.h"

#include <numeric>

using namespace mlir;
using namespace gtp;
using namespace gtp::dist;

/// Bytes that rows of a shard together are a multiple of, in every stored type.
static constexpr int64_t kShardAlignment = 16;

static SmallVector<StringAttr> axesThat(MeshAttr mesh,
                                        bool AxisKind::*property) {
  SmallVector<StringAttr> axes;
  for (const AxisKind &kind : axisKinds()) {
    auto name = StringAttr::get(mesh.getContext(), kind.name);
    if (kind.*property && mesh.degree(name) > 1)
      axes.push_back(name);
  }
  return axes;
}

FailureOr<MeshAttr>
gtp::parseMesh(MLIRContext *context, StringRef text,
               function_ref<InFlightDiagnostic()> emitError) {
  Mesh mesh;
  if (!text.empty()) {
    llvm::Expected<Mesh> parsed = Mesh::parse(text);
    if (!parsed)
      return emitError() << "mesh=" << text << ": "
                         << llvm::toString(parsed.takeError());
    mesh = std::move(*parsed);
  }
  SmallVector<StringAttr> names;
  SmallVector<int64_t> degrees;
  for (const MeshAxis &axis : mesh.axes) {
    names.push_back(StringAttr::get(context, axis.name));
    degrees.push_back(axis.degree);
  }
  return MeshAttr::get(context, names, degrees);
}

/// Fewest rows of a tensor whose bytes are a multiple of the alignment.
static int64_t rowGranule(ArrayRef<int64_t> shape, Type element) {
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  for (int64_t size : shape.drop_front())
    bytes = std::gcd(bytes * std::gcd(size, kShardAlignment), kShardAlignment);
  return kShardAlignment / std::gcd(bytes, kShardAlignment);
}

static bool isParameterOf(func::FuncOp step, unsigned index) {
  auto role = step.getArgAttrOfType<StringAttr>(index, tfm::kArgAttr);
  return role && step.getArgAttr(index, tfm::kParameterAttr) &&
         llvm::is_contained({"weight", "master", "remainder", "state"},
                            role.getValue());
}

PlacementPolicy::PlacementPolicy(MeshAttr mesh, func::FuncOp step)
    : mesh(mesh), step(step) {
  auto module = step->getParentOfType<ModuleOp>();
  for (auto parameter : module.getOps<tfm::ParameterOp>())
    if (parameter.getReplicated())
      replicated.insert(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  // A parameter rests the same way for all functions that take it, whichever
  // of its stored types each of them sees.
  for (auto function : module.getOps<func::FuncOp>())
    addGranules(function);
}

void PlacementPolicy::addGranules(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!isParameterOf(function, index) || !tensor || tensor.getRank() < 2)
      continue;
    int64_t &granule =
        granules.try_emplace(function.getArgAttr(index, tfm::kParameterAttr), 1)
            .first->second;
    // Gradients are reduced in float32 whatever is stored.
    for (Type element :
         {tensor.getElementType(), Type(Float32Type::get(mesh.getContext()))})
      granule = std::lcm(granule, rowGranule(tensor.getShape(), element));
  }
}

bool PlacementPolicy::isParameter(unsigned index) {
  return isParameterOf(step, index);
}

PlacementAttr PlacementPolicy::placeParameter(RankedTensorType type,
                                              Attribute parameter) const {
  PlacementAttr whole = PlacementAttr::replicated(mesh, type.getShape());
  SmallVector<StringAttr> axes = axesThat(mesh, &AxisKind::cutsWeights);
  // A vector is small: gathering it would cost latency and save nothing.
  if (type.getRank() < 2 || axes.empty() || replicated.contains(parameter))
    return whole;
  return whole.withDim(0,
                       DimAttr::get(mesh.getContext(), type.getDimSize(0),
                                    ArrayRef<StringAttr>(), ArrayRef<int64_t>(),
                                    ArrayRef<StringAttr>(), axes,
                                    granules.lookup(parameter)));
}

FailureOr<PlacementAttr>
PlacementPolicy::placeBatch(BlockArgument argument) const {
  auto type = cast<RankedTensorType>(argument.getType());
  PlacementAttr whole = PlacementAttr::replicated(mesh, type.getShape());
  SmallVector<StringAttr> axes = axesThat(mesh, &AxisKind::cutsData);
  if (axes.empty())
    return whole;
  if (type.getRank() < 2)
    return emitError(argument.getLoc())
           << "expected tokens and labels of [..., batch, sequence], found "
           << type;
  unsigned batch = type.getRank() - 2;
  int64_t size = type.getDimSize(batch), ranks = mesh.degree(axes);
  if (size % ranks)
    return emitError(argument.getLoc())
           << "a microbatch of " << size << " sequences cannot be cut over "
           << axesText(axes) << " of " << mesh << ": expected a multiple of "
           << ranks;
  return whole.withDim(batch, DimAttr::get(mesh.getContext(), size, axes));
}

FailureOr<PlacementAttr> PlacementPolicy::placeArgument(unsigned index) {
  BlockArgument argument = step.getArgument(index);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type || !type.hasStaticShape() || type.getEncoding())
    return emitError(argument.getLoc())
           << "cannot place argument #" << index << " of type "
           << argument.getType()
           << ": expected a tensor of static shape without a placement";
  if (isParameter(index))
    return placeParameter(type, step.getArgAttr(index, tfm::kParameterAttr));
  auto role = step.getArgAttrOfType<StringAttr>(index, tfm::kArgAttr);
  if (role && (role == "tokens" || role == "labels"))
    return placeBatch(argument);
  return PlacementAttr::replicated(mesh, type.getShape());
}
