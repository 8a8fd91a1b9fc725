//===- RunPlan.cpp - What a run needs to know of a plan -------------------===//

#include "gtp-rt/RunPlan.h"
#include "gtp/Plan/Iteration.h"
#include "gtp/Plan/Operand.h"

#include <map>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

StatusOr<RunPlan> RunPlan::create(const pb::Plan &proto) {
  RunPlan plan;
  plan.plan = &proto;
  GTP_RETURN_IF_ERROR(plan.findMesh());
  GTP_RETURN_IF_ERROR(plan.checkBatch());
  GTP_RETURN_IF_ERROR(plan.findBuffers());
  return plan;
}

Status RunPlan::findMesh() {
  GTP_RETURN_IF_ERROR(verifyMesh(plan->mesh()));
  rankCount = plan::rankCount(plan->mesh());
  for (const pb::MeshAxis &axis : plan->mesh().axes())
    if (axis.degree() > 1 && !isDataAxis(axis))
      return Status::error("mesh axis '" + axis.name() + "' of degree " +
                           std::to_string(axis.degree()) +
                           " is not supported yet; expected dp and gtp");
  return Status::ok();
}

Status RunPlan::checkBatch() const {
  const pb::Model &model = plan->model();
  auto batch = checkedMul(model.microbatches(), model.micro_batch());
  if (batch)
    batch = checkedMul(*batch, dataRanks());
  if (!batch || *batch != model.global_batch() || *batch == 0)
    return Status::error(
        "global batch " + std::to_string(model.global_batch()) + " is not " +
        std::to_string(model.microbatches()) + " microbatches of " +
        std::to_string(model.micro_batch()) + " sequences on " +
        std::to_string(dataRanks()) + " data ranks");
  if (model.sequence() == 0 || model.vocabulary() == 0)
    return Status::error(
        "sequence " + std::to_string(model.sequence()) + " and vocabulary " +
        std::to_string(model.vocabulary()) + " must be at least 1");
  return Status::ok();
}

Status RunPlan::findBuffer(uint32_t programIndex, const char *name,
                           bool isInput, uint64_t bytes,
                           uint32_t &buffer) const {
  const pb::Program &program = plan->programs(int(programIndex));
  for (const pb::Io &io : isInput ? program.inputs() : program.outputs()) {
    if (io.name() >= uint32_t(plan->strings_size()) || text(io.name()) != name)
      continue;
    buffer = io.buffer();
    uint64_t found = buffer < uint32_t(plan->buffers_size())
                         ? plan->buffers(int(buffer)).size()
                         : 0;
    if (found < bytes)
      return Status::error(std::string("buffer of '") + name + "' has " +
                           std::to_string(found) + " bytes, expected " +
                           std::to_string(bytes));
    return Status::ok();
  }
  return Status::error(
      std::string(programIndex == 0 ? "training step" : "evaluation") +
      " has no " + (isInput ? "input" : "output") + " '" + name + "'");
}

Status RunPlan::findBuffers() {
  if (plan->programs_size() == 0 ||
      plan->programs(0).kind() != pb::Program::TRAIN_STEP ||
      plan->programs(0).rotated())
    return Status::error(
        "first program is not a training step that ends in its update");
  const pb::Model &model = plan->model();
  auto samples =
      checkedMul(model.microbatches() * model.micro_batch(), model.sequence());
  auto bytes = samples ? checkedMul(*samples, sizeof(int32_t)) : samples;
  if (!bytes)
    return Status::error("sequence " + std::to_string(model.sequence()) +
                         " makes a step of more bytes than 64 bits count");
  GTP_RETURN_IF_ERROR(findBuffer(0, "tokens", true, *bytes, tokens));
  GTP_RETURN_IF_ERROR(findBuffer(0, "labels", true, *bytes, labels));
  GTP_RETURN_IF_ERROR(findBuffer(0, "hyper", true, 8 * sizeof(float), hyper));
  GTP_RETURN_IF_ERROR(findBuffer(0, "loss", false, sizeof(float), loss));
  GTP_RETURN_IF_ERROR(
      findBuffer(0, "grad_norm", false, sizeof(float), gradNorm));
  return findEval(*bytes);
}

Status RunPlan::findEval(uint64_t idBytes) {
  uint32_t programs = uint32_t(plan->programs_size()), index = 1;
  while (index < programs &&
         plan->programs(int(index)).kind() != pb::Program::EVAL)
    ++index;
  if (index >= programs)
    return Status::ok();
  Eval found;
  found.program = index;
  GTP_RETURN_IF_ERROR(findBuffer(index, "tokens", true, idBytes, found.tokens));
  GTP_RETURN_IF_ERROR(findBuffer(index, "labels", true, idBytes, found.labels));
  GTP_RETURN_IF_ERROR(
      findBuffer(index, "loss", false, sizeof(float), found.loss));
  GTP_RETURN_IF_ERROR(
      findBuffer(index, "count", false, sizeof(int64_t), found.count));
  eval = found;
  return Status::ok();
}

std::string RunPlan::meshText() const {
  std::string text;
  for (const pb::MeshAxis &axis : plan->mesh().axes())
    text += (text.empty() ? "" : ", ") + axis.name() + "=" +
            std::to_string(axis.degree());
  return text.empty() ? "one rank" : text;
}

std::string RunPlan::transportsText() const {
  using pb::Collective;
  std::map<std::pair<Collective::Kind, Collective::Transport>, uint64_t> counts;
  for (const pb::Region &region : plan->programs(0).regions())
    for (const pb::Operation &operation : region.operations())
      if (operation.has_collective())
        counts[{operation.collective().kind(),
                operation.collective().transport()}] +=
            plan::runCount(operation.when(), region.repeat());
  std::string text;
  for (const auto &[key, count] : counts) {
    if (count == 0)
      continue;
    const char *kind = key.first == Collective::ALL_GATHER ? "all-gather"
                       : key.first == Collective::REDUCE_SCATTER
                           ? "reduce-scatter"
                           : "all-reduce";
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind +
            (count == 1 ? "" : "s") + " by " +
            Collective::Transport_Name(key.second);
  }
  return text;
}

uint64_t RunPlan::arenaBytes() const {
  uint64_t bytes = 0;
  for (const pb::MemoryRegion &region : plan->memory())
    bytes += region.kind() == pb::MemoryRegion::DEVICE ? region.size() : 0;
  return bytes;
}

uint64_t RunPlan::replicatedBytes() const {
  uint64_t bytes = 0;
  for (const pb::Parameter &parameter : plan->parameters()) {
    uint64_t elements = 1;
    for (uint64_t size : parameter.shape())
      elements *= size;
    uint64_t each = dtypeSize(computeType());
    if (parameter.master_buffer_plus1())
      each += dtypeSize(masterType());
    if (parameter.remainder_buffer_plus1())
      each += dtypeSize(pb::I16);
    each += uint64_t(parameter.state_buffers_size()) * dtypeSize(masterType());
    if (parameter.gradient_buffer_plus1())
      each += dtypeSize(gradientType());
    bytes += elements * each;
  }
  return bytes;
}
