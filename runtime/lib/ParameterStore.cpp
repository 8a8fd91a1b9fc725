//===- ParameterStore.cpp - Parameters, logical and on the ranks ----------===//

#include "gtp-rt/ParameterStore.h"
#include "NumberFormat.h"
#include "Shard.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

static uint64_t logicalElements(const pb::Parameter &parameter) {
  uint64_t elements = 1;
  for (uint64_t size : parameter.shape())
    elements *= size;
  return elements;
}

namespace {
/// A buffer of a parameter and the type of what it holds.
struct PlaneBuffer {
  uint32_t buffer;
  pb::DType type;
};
} // namespace

/// The buffers that hold weights: compute precision, and the master if it is
/// apart.
static std::vector<PlaneBuffer> weightBuffers(const RunPlan &plan,
                                              const pb::Parameter &parameter) {
  std::vector<PlaneBuffer> buffers = {
      {parameter.compute_buffer(), plan.computeType()}};
  if (parameter.master_buffer_plus1())
    buffers.push_back({parameter.master_buffer_plus1() - 1, plan.masterType()});
  return buffers;
}

/// All buffers that hold something of the parameter's shard.
static std::vector<PlaneBuffer> allBuffers(const RunPlan &plan,
                                           const pb::Parameter &parameter) {
  std::vector<PlaneBuffer> buffers = weightBuffers(plan, parameter);
  for (uint32_t state : parameter.state_buffers())
    buffers.push_back({state, plan.masterType()});
  if (parameter.gradient_buffer_plus1())
    buffers.push_back(
        {parameter.gradient_buffer_plus1() - 1, plan.gradientType()});
  return buffers;
}

/// The layout cuts the parameter's shape, and its tensors are all of its rows.
static Status checkShape(const pb::Plan &plan, const pb::Parameter &parameter) {
  if (parameter.layout() >= uint32_t(plan.layouts_size()))
    return Status::error("has no layout");
  const pb::Layout &layout = plan.layouts(int(parameter.layout()));
  GTP_RETURN_IF_ERROR(verifyLayout(plan.mesh(), layout));
  bool isSame =
      layout.dims_size() == parameter.shape_size() && layout.dims_size() > 0;
  for (int i = 0; isSame && i < layout.dims_size(); ++i)
    isSame = layout.dims(i).logical() == parameter.shape(i);
  if (!isSame)
    return Status::error("has a layout of another shape");
  uint64_t rows = 0;
  for (const pb::CheckpointTensor &tensor : parameter.tensors()) {
    if (tensor.name() >= uint32_t(plan.strings_size()) ||
        tensor.rows() > parameter.shape(0) - rows)
      return Status::error("has checkpoint tensors that are not its rows");
    rows += tensor.rows();
    uint64_t groups = tensor.interleaved_groups();
    uint64_t parts = tensor.interleaved_parts();
    bool fits =
        tensor.transposed() ? parameter.shape_size() == 2 && !groups && !parts
        : groups && parts
            ? tensor.rows() % groups == 0 && tensor.rows() / groups % parts == 0
            : groups == parts;
    if (!fits)
      return Status::error("has a checkpoint tensor whose layout does not fit "
                           "its " +
                           std::to_string(tensor.rows()) + " rows");
  }
  if (rows != parameter.shape(0))
    return Status::error("has checkpoint tensors of " + std::to_string(rows) +
                         " rows, expected " +
                         std::to_string(parameter.shape(0)));
  for (uint32_t name : parameter.tied_names())
    if (name >= uint32_t(plan.strings_size()))
      return Status::error("has a tied name that does not exist");
  return Status::ok();
}

static Status checkBuffers(const RunPlan &plan,
                           const pb::Parameter &parameter) {
  const pb::Plan &proto = plan.proto();
  uint64_t elements = 1;
  for (uint64_t size :
       shardShape(proto.mesh(), proto.layouts(int(parameter.layout()))))
    elements *= size;
  for (auto [buffer, type] : allBuffers(plan, parameter)) {
    if (!isParameterType(type))
      return Status::error(std::string("is held as ") + dtypeName(type) +
                           ", expected f32 or bf16");
    uint64_t found = buffer < uint32_t(proto.buffers_size())
                         ? proto.buffers(int(buffer)).size()
                         : 0;
    if (found < elements * dtypeSize(type))
      return Status::error("has a buffer of " + std::to_string(found) +
                           " bytes, its shard needs " +
                           std::to_string(elements * dtypeSize(type)));
  }
  return Status::ok();
}

/// No two parameters have a checkpoint tensor of one name.
static Status checkNames(const RunPlan &plan, const pb::Parameter &parameter,
                         std::set<std::string> &names) {
  for (const pb::CheckpointTensor &tensor : parameter.tensors())
    if (!names.insert(plan.text(tensor.name())).second)
      return Status::error("has checkpoint tensor '" +
                           plan.text(tensor.name()) +
                           "', which is in the plan already");
  return Status::ok();
}

static std::string nameOf(const RunPlan &plan, const pb::Parameter &parameter) {
  bool isNamed = parameter.name() < uint32_t(plan.proto().strings_size());
  return isNamed ? plan.text(parameter.name()) : "?";
}

StatusOr<ParameterStore> ParameterStore::create(const RunPlan &plan) {
  std::set<std::string> names;
  for (const pb::Parameter &parameter : plan.proto().parameters()) {
    Status status = checkShape(plan.proto(), parameter);
    if (status.isOk())
      status = checkBuffers(plan, parameter);
    if (status.isOk())
      status = checkNames(plan, parameter, names);
    if (!status.isOk()) {
      return std::move(status).in("parameter '" + nameOf(plan, parameter) +
                                  "'");
    }
  }
  return ParameterStore(plan);
}

Status ParameterStore::initialize(Backend &backend,
                                  const WeightSource &weights) const {
  const pb::Plan &proto = plan.proto();
  uint64_t end = backend.firstRank() + backend.localRanks();
  std::vector<float> logical;
  for (const pb::Parameter &parameter : proto.parameters()) {
    logical.resize(logicalElements(parameter));
    uint64_t rowElements = logical.size() / parameter.shape(0), at = 0;
    for (int i = 0; i < parameter.tensors_size(); ++i) {
      weights.read(parameter, i, logical.data() + at);
      at += parameter.tensors(i).rows() * rowElements;
    }
    const pb::Layout &layout = proto.layouts(int(parameter.layout()));
    for (uint64_t rank = backend.firstRank(); rank < end; ++rank) {
      std::vector<float> shard = Shard(proto.mesh(), layout, rank).cut(logical);
      for (auto [buffer, type] : weightBuffers(plan, parameter)) {
        std::vector<uint8_t> bytes = encode(shard, type);
        GTP_RETURN_IF_ERROR(
            backend.writeBuffer(rank, buffer, 0, bytes.data(), bytes.size()));
      }
      std::vector<uint8_t> zeros(shard.size() * dtypeSize(plan.masterType()),
                                 0);
      for (uint32_t state : parameter.state_buffers())
        GTP_RETURN_IF_ERROR(
            backend.writeBuffer(rank, state, 0, zeros.data(), zeros.size()));
    }
  }
  return Status::ok();
}

/// The logical value that a buffer of the parameter holds over all ranks.
static Status gatherParameter(const pb::Plan &plan, Backend &backend,
                              const pb::Parameter &parameter, PlaneBuffer from,
                              std::vector<float> &logical) {
  const pb::Layout &layout = plan.layouts(int(parameter.layout()));
  logical.assign(logicalElements(parameter), 0.0f);
  for (uint64_t rank = 0; rank < backend.localRanks(); ++rank) {
    Shard shard(plan.mesh(), layout, rank);
    if (!shard.isFirstReplica())
      continue;
    std::vector<uint8_t> bytes(shard.elements() * dtypeSize(from.type));
    GTP_RETURN_IF_ERROR(
        backend.readBuffer(rank, from.buffer, 0, bytes.data(), bytes.size()));
    shard.place(decode(bytes, from.type), logical);
  }
  return Status::ok();
}

StatusOr<std::string> ParameterStore::explainNonFinite(Backend &backend) const {
  const pb::Plan &proto = plan.proto();
  uint64_t gradients = 0, found = 0;
  std::string first;
  for (const pb::Parameter &parameter : proto.parameters()) {
    if (parameter.gradient_buffer_plus1() == 0)
      continue;
    ++gradients;
    std::vector<float> logical;
    PlaneBuffer from{parameter.gradient_buffer_plus1() - 1,
                     plan.gradientType()};
    GTP_RETURN_IF_ERROR(
        gatherParameter(proto, backend, parameter, from, logical));
    if (std::all_of(logical.begin(), logical.end(),
                    [](float value) { return std::isfinite(value); }))
      continue;
    if (++found == 1)
      first = ", first that of '" + nameOf(plan, parameter) + "'";
  }
  return std::to_string(found) + " of " + std::to_string(gradients) +
         " gradients are not finite" + first;
}

Status ParameterStore::gather(Backend &backend, Plane plane,
                              const std::string &path,
                              SafetensorsWriter &writer) const {
  const pb::Plan &proto = plan.proto();
  if (backend.localRanks() != plan.ranks())
    return Status::error("a dump needs all ranks in one process").in(path);
  auto isDumped = [&](const pb::Parameter &parameter) {
    return plane == Plane::Weights || parameter.gradient_buffer_plus1() != 0;
  };
  std::vector<SafetensorsWriter::Declaration> tensors;
  for (const pb::Parameter &parameter : proto.parameters())
    for (int i = 0; isDumped(parameter) && i < parameter.tensors_size(); ++i)
      tensors.push_back(
          {plan.text(parameter.tensors(i).name()), tensorShape(parameter, i)});
  GTP_ASSIGN_OR_RETURN(writer, SafetensorsWriter::create(path, tensors));
  std::vector<float> logical;
  for (const pb::Parameter &parameter : proto.parameters()) {
    if (!isDumped(parameter))
      continue;
    PlaneBuffer from = plane == Plane::Weights
                           ? weightBuffers(plan, parameter).back()
                           : PlaneBuffer{parameter.gradient_buffer_plus1() - 1,
                                         plan.gradientType()};
    GTP_RETURN_IF_ERROR(
        gatherParameter(proto, backend, parameter, from, logical));
    uint64_t rowElements = logical.size() / parameter.shape(0), at = 0;
    for (int i = 0; i < parameter.tensors_size(); ++i) {
      changeLayout(parameter, i, LayoutChange::ToCheckpoint,
                   logical.data() + at);
      at += parameter.tensors(i).rows() * rowElements;
    }
    GTP_RETURN_IF_ERROR(writer.append(logical.data(), logical.size()));
  }
  return Status::ok();
}
