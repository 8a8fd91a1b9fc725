//===- ParameterStore.cpp - Parameters, logical and on the ranks ----------===//

#include "gtp-rt/ParameterStore.h"
#include "NumberFormat.h"
#include "Shard.h"
#include "ShardWriter.h"
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

/// All buffers that hold numbers of the parameter's shard.
static std::vector<PlaneBuffer> allBuffers(const RunPlan &plan,
                                           const pb::Parameter &parameter) {
  std::vector<PlaneBuffer> buffers = {
      {parameter.compute_buffer(), plan.computeType()}};
  if (parameter.master_buffer_plus1())
    buffers.push_back({parameter.master_buffer_plus1() - 1, plan.masterType()});
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
  std::vector<PlaneBuffer> buffers = allBuffers(plan, parameter);
  for (const PlaneBuffer &held : buffers)
    if (!isParameterType(held.type))
      return Status::error(std::string("is held as ") + dtypeName(held.type) +
                           ", expected f32 or bf16");
  if (parameter.remainder_buffer_plus1()) {
    if (parameter.master_buffer_plus1() || plan.computeType() != pb::BF16 ||
        plan.masterType() != pb::F32)
      return Status::error("has a remainder, which only a f32 master beside a "
                           "bf16 weight has, without a buffer of its own");
    buffers.push_back({parameter.remainder_buffer_plus1() - 1, pb::I16});
  }
  for (auto [buffer, type] : buffers) {
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
  ShardWriter writer(plan, weights, backend);
  for (const pb::Parameter &parameter : plan.proto().parameters())
    GTP_RETURN_IF_ERROR(writer.write(parameter));
  return Status::ok();
}

/// A shard's bytes: those of this process's rank, or those that rank 0 gets
/// from another. Elsewhere it sends what it has, and the result is empty.
static StatusOr<std::vector<uint8_t>>
collectShard(Backend &backend, ControlChannel *job, uint64_t rank,
             uint32_t buffer, uint64_t size) {
  std::vector<uint8_t> bytes;
  const bool isHere = rank >= backend.firstRank() &&
                      rank < backend.firstRank() + backend.localRanks();
  if (isHere) {
    bytes.resize(size);
    GTP_RETURN_IF_ERROR(
        backend.readBuffer(rank, buffer, 0, bytes.data(), bytes.size()));
    if (!job || job->rank() == 0)
      return bytes;
    GTP_RETURN_IF_ERROR(job->send(bytes.data(), bytes.size()));
    return std::vector<uint8_t>();
  }
  if (!job || job->rank() != 0)
    return bytes;
  GTP_ASSIGN_OR_RETURN(std::string sent, job->receive(rank));
  if (sent.size() != size)
    return Status::error("rank " + std::to_string(rank) + " sent " +
                         std::to_string(sent.size()) + " bytes of a shard of " +
                         std::to_string(size));
  return std::vector<uint8_t>(sent.begin(), sent.end());
}

/// The logical value that buffers of the parameter hold over all ranks: the
/// reduced gradient, or the master weights. In a job, rank 0 gets those of all.
static Status gatherParameter(const RunPlan &run, Backend &backend,
                              ControlChannel *job,
                              const pb::Parameter &parameter,
                              ParameterStore::Plane plane,
                              std::vector<float> &logical) {
  const pb::Plan &plan = run.proto();
  PlaneBuffer from{parameter.compute_buffer(), run.computeType()};
  if (plane == ParameterStore::Plane::Gradients)
    from = {parameter.gradient_buffer_plus1() - 1, run.gradientType()};
  else if (parameter.master_buffer_plus1())
    from = {parameter.master_buffer_plus1() - 1, run.masterType()};
  bool isSplit = plane == ParameterStore::Plane::Weights &&
                 parameter.remainder_buffer_plus1() != 0;
  const pb::Layout &layout = plan.layouts(int(parameter.layout()));
  logical.assign(logicalElements(parameter), 0.0f);
  for (uint64_t rank = 0; rank < rankCount(plan.mesh()); ++rank) {
    Shard shard(plan.mesh(), layout, rank);
    if (!shard.isFirstReplica())
      continue;
    const uint64_t size = shard.elements() * dtypeSize(from.type);
    GTP_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes,
                         collectShard(backend, job, rank, from.buffer, size));
    std::vector<uint8_t> rest;
    if (isSplit) {
      GTP_ASSIGN_OR_RETURN(
          rest, collectShard(backend, job, rank,
                             parameter.remainder_buffer_plus1() - 1, size));
    }
    if (!bytes.empty())
      shard.place(isSplit ? join(bytes, rest) : decode(bytes, from.type),
                  logical);
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
    GTP_RETURN_IF_ERROR(gatherParameter(plan, backend, nullptr, parameter,
                                        Plane::Gradients, logical));
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
                              SafetensorsWriter &writer,
                              ControlChannel *job) const {
  const pb::Plan &proto = plan.proto();
  if (backend.localRanks() != plan.ranks() && !job)
    return Status::error("a dump needs all ranks of the plan").in(path);
  const bool writes = !job || job->rank() == 0;
  auto isDumped = [&](const pb::Parameter &parameter) {
    return plane == Plane::Weights || parameter.gradient_buffer_plus1() != 0;
  };
  std::vector<SafetensorsWriter::Declaration> tensors;
  for (const pb::Parameter &parameter : proto.parameters())
    for (int i = 0; isDumped(parameter) && i < parameter.tensors_size(); ++i)
      tensors.push_back(
          {plan.text(parameter.tensors(i).name()), tensorShape(parameter, i)});
  if (writes) {
    GTP_ASSIGN_OR_RETURN(writer, SafetensorsWriter::create(path, tensors));
  }
  std::vector<float> logical;
  for (const pb::Parameter &parameter : proto.parameters()) {
    if (!isDumped(parameter))
      continue;
    GTP_RETURN_IF_ERROR(
        gatherParameter(plan, backend, job, parameter, plane, logical));
    if (!writes)
      continue;
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
