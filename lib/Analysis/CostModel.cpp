//===- CostModel.cpp - What the ops of a partitioned step cost ------------===//

#include "gtp/Analysis/CostModel.h"

#include "dialects/Tfm/TfmDialect.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/KernelSignature.h"
#include "gtp/Plan/Operand.h"
#include "mlir/IR/Diagnostics.h"

using namespace gtp;
using namespace mlir;

// Profiles know no plans, and neither knows the dialect: where the three meet,
// transports go from one to the other by number.
static constexpr bool agree(machine::Transport ofProfile,
                            planir::Transport ofDialect,
                            plan::pb::Collective::Transport ofPlan) {
  return int(ofProfile) == int(ofPlan) && int(ofDialect) == int(ofPlan) &&
         machine::holdsMultiprocessors(ofProfile) ==
             plan::holdsMultiprocessors(ofPlan);
}
static_assert(agree(machine::Transport::Auto, planir::Transport::Auto,
                    plan::pb::Collective::AUTO));
static_assert(agree(machine::Transport::CopyEngine,
                    planir::Transport::CopyEngine,
                    plan::pb::Collective::COPY_ENGINE));
static_assert(agree(machine::Transport::Symmetric, planir::Transport::Symmetric,
                    plan::pb::Collective::SYMMETRIC));
static_assert(agree(machine::Transport::Ring, planir::Transport::RingTransport,
                    plan::pb::Collective::RING_TRANSPORT));
static_assert(agree(machine::Transport::Host, planir::Transport::Host,
                    plan::pb::Collective::HOST));
static_assert(agree(machine::Transport::Pairwise, planir::Transport::Pairwise,
                    plan::pb::Collective::PAIRWISE));

int64_t CollectiveSpec::fullBytes() const {
  return planir::elementBytes(resultType.getElementType()) *
         ShapedType::getNumElements(fullShape);
}

plan::CollectiveMeaning CollectiveSpec::meaning(int64_t ranks) const {
  using plan::pb::Collective;
  plan::CollectiveMeaning meaning;
  meaning.kind = isGather() ? Collective::ALL_GATHER
                 : kind == dist::CollectiveKind::ReduceScatter
                     ? Collective::REDUCE_SCATTER
                     : Collective::ALL_REDUCE;
  meaning.order =
      order == dist::Order::Ring ? Collective::RING : Collective::FLAT;
  meaning.type = dtypeOf(resultType.getElementType());
  meaning.wire = dtypeOf(wire);
  meaning.accumulation = dtypeOf(accumulation);
  meaning.ranks = uint64_t(ranks);
  return meaning;
}

int64_t CollectiveSpec::sentBytes() const {
  return int64_t(plan::dtypeSize(plan::sentType(meaning(1)))) *
         ShapedType::getNumElements(fullShape);
}

planir::Purpose CollectiveSpec::purpose() const {
  if (isGather())
    return planir::Purpose::Gather;
  return resultType.getRank() == 0 ? planir::Purpose::Scalar
                                   : planir::Purpose::Reduce;
}

std::string CollectiveSpec::communicatorName() const {
  std::string name = planir::stringifyEnum(purpose()).str();
  dist::MeshAttr mesh = dist::placementOf(resultType).getMesh();
  for (StringAttr axis : mesh.sorted(axes))
    name += "_" + axis.str();
  return name;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

plan::pb::DType gtp::dtypeOf(Type type) {
  if (type.isF32())
    return plan::pb::F32;
  if (type.isBF16())
    return plan::pb::BF16;
  if (type.isF64())
    return plan::pb::F64;
  if (type.isSignlessInteger(16))
    return plan::pb::I16;
  if (type.isSignlessInteger(32))
    return plan::pb::I32;
  if (type.isSignlessInteger(64))
    return plan::pb::I64;
  return type.isSignlessInteger(8) ? plan::pb::U8 : plan::pb::DTYPE_INVALID;
}

/// The axes that the gather of a weight joins, and the dimension.
static void findStorage(CollectiveSpec &spec, dist::PlacementAttr shard) {
  spec.dim = shard.storageDim().value_or(0);
  llvm::append_range(spec.axes, shard.getDims()[spec.dim].getStorageAxes());
}

static SmallVector<StringAttr> axesOf(ArrayAttr axes) {
  SmallVector<StringAttr> list;
  if (axes)
    for (Attribute axis : axes)
      list.push_back(cast<StringAttr>(axis));
  return list;
}

/// The local shape with `dim` of all pieces together.
static SmallVector<int64_t> joinedShape(RankedTensorType piece, unsigned dim,
                                        ArrayRef<StringAttr> axes) {
  SmallVector<int64_t> shape(piece.getShape());
  shape[dim] *= dist::placementOf(piece).getMesh().degree(axes);
  return shape;
}

std::optional<CollectiveSpec> gtp::collectiveSpec(Operation *op) {
  CollectiveSpec spec;
  std::optional<Type> wire;
  auto from = [&](dist::CollectiveKind kind, Value source, Type result) {
    spec.kind = kind;
    spec.source = source;
    spec.resultType = cast<RankedTensorType>(result);
  };
  if (auto gather = dyn_cast<dist::MaterializeOp>(op)) {
    from(dist::CollectiveKind::Materialize, gather.getSource(),
         gather.getResult().getType());
  } else if (auto gather = dyn_cast<dist::AllGatherOp>(op)) {
    from(dist::CollectiveKind::AllGather, gather.getSource(),
         gather.getResult().getType());
    spec.axes = axesOf(gather.getAxes());
    spec.dim = gather.getDim();
  } else if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op)) {
    from(dist::CollectiveKind::ReduceScatter, scatter.getSource(),
         scatter.getResult().getType());
    spec.axes = axesOf(scatter.getAxes());
    spec.dim = scatter.getDim();
    spec.order = scatter.getOrder();
    wire = scatter.getWire();
  } else if (auto reduce = dyn_cast<dist::AllReduceOp>(op)) {
    from(dist::CollectiveKind::AllReduce, reduce.getSource(),
         reduce.getResult().getType());
    spec.axes = axesOf(reduce.getAxes());
    spec.order = reduce.getOrder();
    wire = reduce.getWire();
  } else if (auto prefetch = dyn_cast<dist::PrefetchOp>(op)) {
    from(prefetch.getKind(), prefetch.getSource(),
         cast<dist::TicketType>(prefetch.getTicket().getType()).getTensor());
    spec.axes = axesOf(prefetch.getAxesAttr());
    spec.dim = prefetch.getDim().value_or(0);
    spec.order = prefetch.getOrder();
    wire = prefetch.getWire();
  } else {
    return std::nullopt;
  }

  auto source = cast<RankedTensorType>(spec.source.getType());
  dist::PlacementAttr placement = dist::placementOf(source);
  if (spec.kind == dist::CollectiveKind::Materialize)
    findStorage(spec, placement);
  spec.wire = wire ? *wire : Type();
  if (!spec.wire)
    spec.wire = source.getElementType();
  spec.accumulation = placement.getAccumulation();
  if (!spec.accumulation)
    spec.accumulation = spec.wire;
  switch (spec.kind) {
  case dist::CollectiveKind::Materialize:
  case dist::CollectiveKind::AllGather:
    spec.fullShape = joinedShape(source, spec.dim, spec.axes);
    break;
  case dist::CollectiveKind::ReduceScatter:
    spec.fullShape = joinedShape(spec.resultType, spec.dim, spec.axes);
    break;
  case dist::CollectiveKind::AllReduce:
    spec.fullShape = llvm::to_vector(source.getShape());
    break;
  }
  return spec;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

SmallVector<OpOperand *> gtp::readingUses(Value value) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    if (!isa<dist::ReleaseOp>(use.getOwner()))
      uses.push_back(&use);
  return uses;
}

const plan::KernelSpec *gtp::kernelOf(Operation *op) {
  if (!isa_and_present<tfm::TfmDialect>(op->getDialect()))
    return nullptr;
  StringRef name = op->getName().stripDialect();
  return plan::lookupKernel({name.data(), name.size()});
}

const plan::OperandSpec *gtp::kernelOperandOf(OpResult result) {
  const plan::KernelSpec *kernel = kernelOf(result.getOwner());
  if (!kernel)
    return nullptr;
  unsigned written = 0;
  for (const plan::OperandSpec &operand : kernel->operands)
    if (operand.role != plan::Role::Scratch &&
        operand.access != plan::Access::Read &&
        written++ == result.getResultNumber())
      return &operand;
  return nullptr;
}

Value gtp::overwrittenBy(OpResult result) {
  Operation *op = result.getOwner();
  const plan::KernelSpec *kernel = kernelOf(op);
  if (!kernel)
    return {};
  unsigned reads = 0, writes = 0;
  for (const plan::OperandSpec &operand : kernel->operands) {
    if (operand.role == plan::Role::Scratch)
      continue;
    bool isResult = operand.access != plan::Access::Read &&
                    writes++ == result.getResultNumber();
    if (operand.variadic && operand.access != plan::Access::Write)
      return {}; // what stands behind any number of operands has no fixed place
    if (isResult && operand.access == plan::Access::ReadWrite &&
        operand.role == plan::Role::Value && reads < op->getNumOperands()) {
      Value value = op->getOperand(reads);
      Operation *def = value.getDefiningOp();
      bool isOwn = def && def->getBlock() == op->getBlock() &&
                   runsKernel(def) && readingUses(value).size() == 1;
      return isOwn ? value : Value();
    }
    reads += operand.access != plan::Access::Write;
  }
  return {};
}

Value gtp::operandInRole(Operation *op, const plan::KernelSpec &kernel,
                         plan::Role role) {
  unsigned index = 0;
  for (const plan::OperandSpec &operand : kernel.operands) {
    // What stands behind any number of operands has no fixed place.
    if (operand.variadic || index >= op->getNumOperands())
      return {};
    if (operand.role == plan::Role::Scratch ||
        operand.access == plan::Access::Write)
      continue;
    if (operand.role == role)
      return op->getOperand(index);
    ++index;
  }
  return {};
}

/// Whether the kernel of `value`'s op can write it with a pitch.
static bool writesStrided(Value value) {
  auto result = dyn_cast<OpResult>(value);
  const plan::OperandSpec *written = result ? kernelOperandOf(result) : nullptr;
  return written && written->strided && written->access == plan::Access::Write;
}

bool gtp::isJoinedInPlace(Operation *concat) {
  return llvm::all_of(concat->getOperands(), [&](Value input) {
    Operation *def = input.getDefiningOp();
    // A concat in a concat is left alone: one level is all that programs have.
    return def && def->getBlock() == concat->getBlock() &&
           !isa<tfm::ConcatOp>(def) && readingUses(input).size() == 1 &&
           writesStrided(input);
  });
}

bool gtp::runsKernel(Operation *op) {
  if (isa<dist::KeepFirstOp, dist::SliceOp>(op))
    return true;
  if (isa<tfm::SplitOp>(op))
    return false;
  if (isa<tfm::ConcatOp>(op))
    return !isJoinedInPlace(op);
  return kernelOf(op);
}

/// The type that a kernel computes in: of its first tensor of floats. What it
/// keeps beside (statistics) and accumulates in may be wider.
static machine::DType precision(Operation *op) {
  auto find = [](TypeRange types) -> std::optional<machine::DType> {
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !isa<FloatType>(tensor.getElementType()))
        continue;
      if (tensor.getElementType().isF64())
        return machine::DType::F64;
      return tensor.getElementType().isF32() ? machine::DType::F32
                                             : machine::DType::BF16;
    }
    return std::nullopt;
  };
  if (std::optional<machine::DType> operand = find(op->getOperandTypes()))
    return *operand;
  return find(op->getResultTypes()).value_or(machine::DType::F32);
}

/// The signature of the call that the op becomes: its operands and results in
/// the kernel's order; empty of what is no kernel.
static std::string signatureOf(Operation *op) {
  std::string signature;
  StringRef registered = op->getName().stripDialect();
  const plan::KernelSpec *found =
      plan::lookupKernel({registered.data(), registered.size()});
  if (!found)
    return signature;
  const plan::KernelSpec &kernel = *found;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    plan::pb::Operand operand;
    operand.set_dtype(dtypeOf(type.getElementType()));
    for (int64_t size : type.getShape())
      operand.add_dims(static_cast<uint64_t>(size));
    plan::addToSignature(signature, operand);
  };
  unsigned fixedReads = 0;
  for (const plan::OperandSpec &operand : kernel.operands)
    fixedReads += !operand.variadic && operand.role != plan::Role::Scratch &&
                  operand.access != plan::Access::Write;
  ValueRange reads = op->getOperands(), results = op->getResults();
  const size_t variadic =
      reads.size() > fixedReads ? reads.size() - fixedReads : 0;
  for (const plan::OperandSpec &operand : kernel.operands) {
    if (operand.role == plan::Role::Scratch)
      continue;
    const bool isWritten = operand.access == plan::Access::Write;
    ValueRange &from = isWritten ? results : reads;
    const size_t count = !operand.variadic ? 1
                         : isWritten       ? results.size()
                                           : variadic;
    for (Value value : from.take_front(std::min(count, from.size())))
      add(value);
    from = from.drop_front(std::min(count, from.size()));
    // What is updated is a result too.
    if (operand.access == plan::Access::ReadWrite)
      results = results.drop_front(std::min<size_t>(1, results.size()));
  }
  return signature;
}

/// What profiles call the kernel of an op.
static std::string pricedName(Operation *op) {
  std::string name = op->getName().stripDialect().str();
  if (auto gradient = dyn_cast<tfm::AttentionGradOp>(op))
    if (gradient.getFast())
      name += ".fast";
  return name;
}

int64_t CostModel::kernelNs(Operation *op) const {
  if (!runsKernel(op))
    return 0;
  const std::string name = pricedName(op);
  machine::KernelWork work;
  work.kernel = name;
  work.dtype = precision(op);
  if (auto interface = dyn_cast<tfm::CostOpInterface>(op)) {
    tfm::OpCost cost = interface.getCost();
    work.flops = cost.flops;
    work.bytes = cost.bytes;
    switch (cost.resource) {
    case tfm::OpCost::Resource::Matrix:
      work.resource = machine::Resource::Matrix;
      break;
    case tfm::OpCost::Resource::Vector:
      work.resource = machine::Resource::Vector;
      break;
    case tfm::OpCost::Resource::Memory:
      work.resource = machine::Resource::Memory;
      break;
    }
  } else {
    work.bytes = tfm::tensorBytes(op->getOperandTypes()) +
                 tfm::tensorBytes(op->getResultTypes());
  }
  std::string signature;
  if (!profile.measuredKernels.empty())
    signature = signatureOf(op);
  work.signature = signature;
  return profile.kernelNs(work);
}

int64_t CostModel::crowdedPermille(Operation *op) const {
  return runsKernel(op)
             ? profile.crowdedPermille(pricedName(op), signatureOf(op))
             : 0;
}

template <typename Attention>
static machine::KernelDims attentionDims(Attention op) {
  machine::KernelDims dims;
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  dims.batch = q.getDimSize(0);
  dims.sequence = q.getDimSize(1);
  dims.keys = k.getDimSize(1);
  dims.heads = op.getHeads();
  dims.kvHeads = op.getKvHeads();
  dims.headDim = q.getDimSize(2) / std::max<int64_t>(1, dims.heads);
  return dims;
}

int64_t CostModel::scratchBytes(Operation *op) const {
  machine::KernelDims dims;
  if (auto attention = dyn_cast<tfm::AttentionOp>(op))
    dims = attentionDims(attention);
  else if (auto gradient = dyn_cast<tfm::AttentionGradOp>(op))
    dims = attentionDims(gradient);
  return profile.scratchBytes(pricedName(op), dims);
}

machine::Group CostModel::group(ArrayRef<StringAttr> axes) const {
  // Ranks of the innermost axis are the closest; outer axes of the list only
  // make the group larger.
  int64_t stride = 1;
  unsigned innermost = 0;
  for (StringAttr axis : axes)
    innermost = std::max(innermost, mesh.position(axis));
  for (unsigned i = innermost + 1; i < mesh.getDegrees().size(); ++i)
    stride *= mesh.getDegrees()[i];
  return profile.group(mesh.degree(axes), stride, mesh.size());
}

/// Both count them alike.
static plan::pb::Collective::Transport
pbTransport(machine::Transport transport) {
  return plan::pb::Collective::Transport(static_cast<int>(transport));
}

FailureOr<machine::CollectivePrice> CostModel::price(const CollectiveSpec &spec,
                                                     Location loc) const {
  machine::CollectiveKind kind = machine::CollectiveKind::AllReduce;
  if (spec.isGather())
    kind = machine::CollectiveKind::AllGather;
  else if (spec.kind == dist::CollectiveKind::ReduceScatter)
    kind = machine::CollectiveKind::ReduceScatter;
  machine::Group ranks = group(spec.axes);
  plan::CollectiveMeaning meaning = spec.meaning(ranks.size);
  constexpr int64_t kLargeGather = int64_t(1) << 30;
  int64_t deciding = spec.isGather() ? kLargeGather : spec.sentBytes();
  machine::Transport chosen = machine::Transport::Auto;
  int64_t least = INT64_MAX;
  std::string reasons;
  for (machine::Transport transport : profile.transports(kind, ranks)) {
    // A scalar is not worth a window.
    if (spec.purpose() == planir::Purpose::Scalar &&
        plan::needsWindow(pbTransport(transport)))
      continue;
    std::string whyNot = plan::whyNotBy(pbTransport(transport), meaning);
    if (!whyNot.empty()) {
      reasons += (reasons.empty() ? "" : "; ") + whyNot;
      continue;
    }
    StatusOr<machine::CollectivePrice> price =
        profile.collective(kind, deciding, ranks, transport);
    if (price.isOk() && price->durationNs + price->contentionNs < least) {
      chosen = transport;
      least = price->durationNs + price->contentionNs;
    }
  }
  if (least == INT64_MAX && !reasons.empty())
    return emitError(loc) << profile.title()
                          << " has no transport that computes what its "
                          << StringRef(machine::name(kind)) << " means: not "
                          << reasons;
  StatusOr<machine::CollectivePrice> price =
      profile.collective(kind, spec.sentBytes(), ranks, chosen);
  if (!price.isOk())
    return emitError(loc) << price.message();
  return *price;
}

int64_t CostModel::scratchBytes(const CollectiveSpec &spec,
                                const machine::CollectivePrice &price,
                                bool accumulates) const {
  return int64_t(plan::memberScratchBytes(
      pbTransport(price.transport), spec.meaning(group(spec.axes).size),
      uint64_t(ShapedType::getNumElements(spec.fullShape)), accumulates));
}
