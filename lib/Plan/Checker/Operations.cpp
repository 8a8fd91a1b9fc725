//===- Operations.cpp - Rule `structure`, operation by operation ----------===//

#include "Structure.h"

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

namespace {

/// One region's operations. Problems are returned as text and reported with the
/// operation's place by `check`.
class RegionOperations {
public:
  RegionOperations(Context &context, uint32_t index)
      : c(context), index(index),
        region(c.program().regions(static_cast<int>(index))) {}

  void check();

private:
  Status checkEvents(const pb::Operation &operation);
  Status checkBody(const pb::Operation &operation);
  /// What an operation does with an operand.
  enum class Use { Read, Write, PutOwnPiece };
  Status checkOperand(const pb::Operand &operand, Use use);
  Status checkKernel(const pb::Kernel &kernel);
  Status checkFast(const KernelSpec &spec);
  Status checkCollective(const pb::Collective &collective);
  Status checkPair(const pb::Collective &collective, const pb::Operand &source,
                   const pb::Operand &destination);
  Status checkCopy(const pb::Copy &copy);
  Status checkFill(const pb::Fill &fill);
  Status checkParameter(uint64_t plus1);
  /// A problem that is none of the plan's.
  Status unsupported(const std::string &message) {
    rule = "unsupported";
    return Status::error(message);
  }

  Context &c;
  uint32_t index;
  const pb::Region &region;
  /// Operation that records each event.
  std::vector<const pb::Operation *> recorder;
  /// That the operation being checked violates, if any.
  const char *rule = "structure";
};

Status error(const std::string &message) { return Status::error(message); }

void RegionOperations::check() {
  // Every event is recorded by an operation, so this also bounds memory.
  if (region.events() > static_cast<uint64_t>(region.operations_size()))
    return c.fail("structure", "region " + std::to_string(index) + " has " +
                                   std::to_string(region.events()) +
                                   " events and only " +
                                   std::to_string(region.operations_size()) +
                                   " operations to record them");
  recorder.resize(region.events());
  for (int i = 0; i < region.operations_size() && !c.full(); ++i) {
    const pb::Operation &operation = region.operations(i);
    rule = "structure";
    Status status = checkEvents(operation);
    if (status.isOk())
      status = checkBody(operation);
    if (!status.isOk())
      c.failAt(rule, {index, static_cast<uint32_t>(i), c.programIndex},
               ": " + status.message());
  }
}

Status RegionOperations::checkEvents(const pb::Operation &operation) {
  if (operation.stream() >= static_cast<uint64_t>(c.plan.streams_size()))
    return error("runs on stream " + std::to_string(operation.stream()) +
                 ", which does not exist");
  if (operation.source() >= static_cast<uint64_t>(c.plan.strings_size()))
    return error("its source is no string of the plan");
  if (!pb::Operation::When_IsValid(operation.when()))
    return error("has an unknown condition");
  for (const pb::Wait &wait : operation.waits()) {
    std::string event = "event " + std::to_string(wait.event());
    if (wait.distance() != 0)
      return unsupported("waits for " + event + " of " +
                         std::to_string(wait.distance()) +
                         " iterations back, which is not supported yet");
    if (wait.event() >= recorder.size() || !recorder[wait.event()])
      return error("waits for " + event +
                   ", which no earlier operation of the "
                   "region records");
    pb::Operation::When when = recorder[wait.event()]->when();
    if (when != pb::Operation::ALWAYS && when != operation.when())
      return error("waits for " + event +
                   ", which iterations that run it may not record");
  }
  if (operation.event_plus1() == 0)
    return Status::ok();
  uint32_t event = operation.event_plus1() - 1;
  if (event >= recorder.size())
    return error("records event " + std::to_string(event) +
                 " of a region with " + std::to_string(recorder.size()));
  if (recorder[event])
    return error("records event " + std::to_string(event) +
                 ", which an earlier operation records too");
  recorder[event] = &operation;
  return Status::ok();
}

Status RegionOperations::checkBody(const pb::Operation &operation) {
  switch (operation.body_case()) {
  case pb::Operation::kKernel:
    return checkKernel(operation.kernel());
  case pb::Operation::kCollective:
    return checkCollective(operation.collective());
  case pb::Operation::kCopy:
    return checkCopy(operation.copy());
  case pb::Operation::kFill:
    return checkFill(operation.fill());
  case pb::Operation::BODY_NOT_SET:
    break;
  }
  return error("does nothing");
}

/// The operand is inside its buffer in every iteration and on every rank.
Status RegionOperations::checkOperand(const pb::Operand &operand, Use use) {
  bool writes = use != Use::Read;
  if (operand.buffer() >= static_cast<uint64_t>(c.plan.buffers_size()))
    return error("names buffer " + std::to_string(operand.buffer()) +
                 ", which does not exist");
  const pb::Buffer &buffer = c.buffer(operand.buffer());
  std::optional<uint64_t> end = byteExtent(operand);
  if (!end || *end == 0)
    return error("operand " + describe(operand) +
                 " has no valid type, no elements or too many");
  if (rowPitch(operand) < rowElements(operand))
    return error("operand " + describe(operand) +
                 " has a pitch below its last dimension");
  uint64_t unit = dtypeSize(operand.dtype());
  bool aligned =
      operand.offset() % unit == 0 && operand.iteration_stride() % unit == 0;
  auto grow = [&](std::optional<uint64_t> amount) {
    end = end && amount ? checkedAdd(*end, *amount) : std::nullopt;
  };
  grow(operand.offset());
  grow(checkedMul(operand.iteration_stride(), region.repeat() - 1));
  AxisMask seen = 0;
  for (const pb::AxisStride &stride : operand.rank_strides()) {
    if (stride.axis() >= static_cast<uint64_t>(c.plan.mesh().axes_size()))
      return error("operand of " + c.bufferText(operand.buffer()) +
                   " has a stride of an axis that does not exist");
    if (seen >> stride.axis() & 1)
      return error("operand of " + c.bufferText(operand.buffer()) +
                   " has two strides of one axis");
    seen |= AxisMask(1) << stride.axis();
    aligned &= stride.stride() % unit == 0;
    grow(checkedMul(
        stride.stride(),
        c.plan.mesh().axes(static_cast<int>(stride.axis())).degree() - 1));
  }
  if (!end || *end > buffer.size())
    return error("operand " + describe(operand) + " at offset " +
                 std::to_string(operand.offset()) + " ends at byte " +
                 (end ? std::to_string(*end) : "infinity") + " of " +
                 c.bufferText(operand.buffer()) + " of " +
                 std::to_string(buffer.size()) + " bytes");
  if (!aligned)
    return error("operand of " + c.bufferText(operand.buffer()) +
                 " is not aligned to its type");
  if (writes && buffer.kind() == pb::Buffer::INPUT)
    return error("writes input " + c.bufferText(operand.buffer()));
  // With either, what was written would differ by rank or iteration; only a
  // gather makes one value of the pieces of ranks.
  if (writes && ((seen != 0 && use != Use::PutOwnPiece) ||
                 operand.iteration_stride() != 0))
    return unsupported("writes with a stride over ranks or iterations, which "
                       "is not supported yet");
  return Status::ok();
}

Status RegionOperations::checkParameter(uint64_t plus1) {
  if (plus1 > static_cast<uint64_t>(c.plan.parameters_size()))
    return error("names parameter " + std::to_string(plus1 - 1) +
                 ", which does not exist");
  return Status::ok();
}

Status RegionOperations::checkKernel(const pb::Kernel &kernel) {
  GTP_RETURN_IF_ERROR(verifyKernelCall(c.plan, kernel));
  const KernelSpec *spec = lookupKernel(kernelName(c.plan, kernel));
  size_t count = static_cast<size_t>(kernel.operands_size());
  bool aboutParameter = false;
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec *operand = operandSpec(*spec, i, count);
    GTP_RETURN_IF_ERROR(
        checkOperand(kernel.operands(static_cast<int>(i)),
                     operand->access == Access::Read ? Use::Read : Use::Write));
    switch (operand->role) {
    case Role::Weight:
    case Role::Gradient:
    case Role::Master:
    case Role::Compute:
    case Role::Remainder:
    case Role::State:
      aboutParameter = true;
      break;
    default:
      break;
    }
  }
  if (isFast(c.plan, kernel, *spec))
    GTP_RETURN_IF_ERROR(checkFast(*spec));
  if (kernel.algorithm() >= static_cast<uint64_t>(c.plan.strings_size()))
    return error("its algorithm is no string of the plan");
  if (aboutParameter && kernel.parameter_plus1() == 0)
    return error("kernel " + std::string(spec->name) +
                 " must name the parameter that it is about");
  if (weightCount(*spec) > 1 && kernel.second_parameter_plus1() == 0)
    return error("kernel " + std::string(spec->name) +
                 " must name the parameter of its second weight");
  if (weightCount(*spec) < 2 && kernel.second_parameter_plus1() != 0)
    return error("kernel " + std::string(spec->name) +
                 " names a second parameter, and does not read two weights");
  GTP_RETURN_IF_ERROR(checkParameter(kernel.parameter_plus1()));
  return checkParameter(kernel.second_parameter_plus1());
}

/// A kernel whose bits may differ from rank to rank makes nothing that ranks
/// hold copies of.
Status RegionOperations::checkFast(const KernelSpec &spec) {
  std::string call = "kernel " + std::string(spec.name) + " with " +
                     std::string(spec.fastAttribute);
  rule = "determinism";
  if (c.plan.numerics().deterministic())
    return error(call + " is not deterministic, and the plan's numerics say "
                        "that it is");
  if (region.kind() != pb::Region::BODY)
    return error(call + " runs outside the body, where ranks must make the "
                        "same bits of the same values");
  rule = "structure";
  return Status::ok();
}

Status RegionOperations::checkCollective(const pb::Collective &collective) {
  if (!pb::Collective::Kind_IsValid(collective.kind()) ||
      !pb::Collective::Reduce_IsValid(collective.reduce()) ||
      !pb::Collective::Order_IsValid(collective.order()) ||
      !pb::Collective::Transport_IsValid(collective.transport()))
    return error("has an unknown kind, reduction, order or transport");
  if (collective.kind() == pb::Collective::ALL_TO_ALL)
    return unsupported("all-to-all is not supported yet");
  if (collective.communicator() >=
      static_cast<uint64_t>(c.plan.communicators_size()))
    return error("uses communicator " +
                 std::to_string(collective.communicator()) +
                 ", which does not exist");
  if (collective.sources_size() == 0 ||
      collective.sources_size() != collective.destinations_size() ||
      collective.sources_size() > kMaxMembers)
    return error("has " + std::to_string(collective.sources_size()) +
                 " sources and " +
                 std::to_string(collective.destinations_size()) +
                 " destinations, expected as many, from 1 to " +
                 std::to_string(kMaxMembers));
  for (int i = 0; i < collective.sources_size(); ++i)
    GTP_RETURN_IF_ERROR(checkPair(collective, collective.sources(i),
                                  collective.destinations(i)));
  if (collective.has_scratch()) {
    const pb::Operand &scratch = collective.scratch();
    GTP_RETURN_IF_ERROR(checkOperand(scratch, Use::Write));
    if (scratch.dtype() != pb::U8 || !isDense(scratch) || scratch.accumulate())
      return error("its scratch is " + describe(scratch) +
                   ", expected dense bytes");
  }
  GTP_RETURN_IF_ERROR(checkParameter(collective.parameter_plus1()));
  rule = "transport";
  return checkTransport(c, collective);
}

/// What a reduction of `type` may be sent as and summed in.
bool reductionTypesFit(pb::DType type, pb::DType wire, pb::DType accumulation) {
  switch (type) {
  case pb::F32:
  case pb::BF16:
    return (wire == pb::F32 || wire == pb::BF16) &&
           (accumulation == pb::F32 || accumulation == pb::F64);
  case pb::F64:
    return wire == pb::F64 && accumulation == pb::F64;
  case pb::I32:
    return wire == pb::I32 &&
           (accumulation == pb::I32 || accumulation == pb::I64);
  case pb::I64:
    return wire == pb::I64 && accumulation == pb::I64;
  default:
    return false;
  }
}

Status RegionOperations::checkPair(const pb::Collective &collective,
                                   const pb::Operand &source,
                                   const pb::Operand &destination) {
  bool gather = collective.kind() == pb::Collective::ALL_GATHER;
  GTP_RETURN_IF_ERROR(checkOperand(source, Use::Read));
  GTP_RETURN_IF_ERROR(checkOperand(destination, Use::Write));
  if (!isDense(source) || !isDense(destination))
    return error("operands of a collective must be dense");
  if (!gather && !source.rank_strides().empty())
    return unsupported("a reduction's source with a stride over ranks is not "
                       "supported yet");
  if (source.accumulate() || (gather && destination.accumulate()))
    return error("only the destination of a reduction may accumulate");
  if (source.dtype() != destination.dtype())
    return error("source " + describe(source) + " and destination " +
                 describe(destination) + " must have one type");
  pb::DType type = source.dtype();
  if (gather ? collective.wire() != type
             : !reductionTypesFit(type, collective.wire(),
                                  collective.accumulation()))
    return error(std::string("sends ") + dtypeName(type) + " as " +
                 dtypeName(collective.wire()) + " accumulated in " +
                 dtypeName(collective.accumulation()) +
                 ", which is no combination that collectives have");
  uint64_t ranks = groupSize(
      c.plan.mesh(),
      c.plan.communicators(static_cast<int>(collective.communicator())));
  uint64_t from = *elementCount(source), to = *elementCount(destination);
  bool fits = true;
  std::string rule;
  switch (collective.kind()) {
  case pb::Collective::ALL_GATHER:
    fits = checkedMul(from, ranks) == to;
    rule = "as many times the source's as the group has ranks";
    break;
  case pb::Collective::REDUCE_SCATTER:
    fits = checkedMul(to, ranks) == from;
    rule = "the source's divided by the group's ranks";
    break;
  default:
    fits = from == to;
    rule = "the source's";
    break;
  }
  if (!fits)
    return error("source " + describe(source) + " and destination " +
                 describe(destination) + " in a group of " +
                 std::to_string(ranks) +
                 ": the destination's elements must be " + rule);
  if (source.rank_strides().empty())
    return Status::ok();
  return checkInPlace(
      c.plan, c.plan.communicators(static_cast<int>(collective.communicator())),
      source, destination);
}

Status RegionOperations::checkCopy(const pb::Copy &copy) {
  bool putsOwnPiece = !copy.destination().rank_strides().empty();
  GTP_RETURN_IF_ERROR(checkOperand(copy.source(), Use::Read));
  GTP_RETURN_IF_ERROR(checkOperand(
      copy.destination(), putsOwnPiece ? Use::PutOwnPiece : Use::Write));
  if (putsOwnPiece &&
      (!isDense(copy.destination()) || !isDense(copy.source()) ||
       !copy.source().rank_strides().empty()))
    return unsupported("copies to the rank's own piece of " +
                       c.bufferText(copy.destination().buffer()) +
                       " what is not dense or depends on the rank too, which "
                       "is not supported yet");
  if (copy.source().accumulate() || copy.destination().accumulate())
    return error("a copy cannot accumulate");
  if (copy.source().dtype() != copy.destination().dtype() ||
      elementCount(copy.source()) != elementCount(copy.destination()) ||
      rowElements(copy.source()) != rowElements(copy.destination()))
    return error("copies " + describe(copy.source()) + " to " +
                 describe(copy.destination()) +
                 ", which must have its type and rows");
  return Status::ok();
}

Status RegionOperations::checkFill(const pb::Fill &fill) {
  GTP_RETURN_IF_ERROR(checkOperand(fill.destination(), Use::Write));
  if (fill.destination().accumulate() || !isDense(fill.destination()))
    return error("the destination of a fill must be dense and cannot "
                 "accumulate");
  if (fill.byte_value() > 255)
    return error("fills with byte " + std::to_string(fill.byte_value()) +
                 ", expected 0 to 255");
  return Status::ok();
}

} // namespace

void check::checkOperations(Context &context) {
  for (int i = 0; i < context.program().regions_size(); ++i)
    RegionOperations(context, static_cast<uint32_t>(i)).check();
}
