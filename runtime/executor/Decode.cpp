//===- Decode.cpp - From a plan to what a backend walks -------------------===//

#include "Program.h"

#include "gtp/Plan/Iteration.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/Layout.h"

#include <algorithm>
#include <set>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

namespace {

class Decoder {
public:
  Decoder(const pb::Plan &plan, Target &target) : plan(plan), target(target) {}
  Status run();

  Code code;

private:
  Status readMesh();
  Status readMemory();
  Status readCommunicators();
  StatusOr<Region> readRegion(const pb::Region &region);
  StatusOr<Operation> readOperation(const pb::Operation &operation,
                                    const pb::Region &region);
  Status readEvents(const pb::Region &region, Region &decoded);
  StatusOr<Place> readPlace(const pb::Operand &operand, uint64_t repeat,
                            Access access);
  Status readKernel(const pb::Kernel &kernel, uint64_t repeat,
                    Operation &decoded);
  Status readCollective(const pb::Collective &collective, uint64_t repeat,
                        Operation &decoded);
  Status readCopy(const pb::Copy &copy, uint64_t repeat, Operation &decoded);
  Status readFill(const pb::Fill &fill, uint64_t repeat, Operation &decoded);
  Status addPlace(const pb::Operand &operand, uint64_t repeat, Access access,
                  Operation &decoded);

  const pb::Plan &plan;
  Target &target;
};

} // namespace

Status Decoder::readMesh() {
  GTP_RETURN_IF_ERROR(verifyMesh(plan.mesh()));
  code.ranks = rankCount(plan.mesh());
  // A mask of axes is 64 bits.
  if (plan.mesh().axes_size() > 63)
    return Status::error("the mesh has " +
                         std::to_string(plan.mesh().axes_size()) +
                         " axes; a backend takes 63");
  return Status::ok();
}

Status Decoder::readMemory() {
  if (plan.memory_size() != 1)
    return Status::error("the plan has " + std::to_string(plan.memory_size()) +
                         " memory regions; " + target.name() +
                         " needs one arena");
  code.arenaBytes = plan.memory(0).size();
  code.arenaAlignment = std::max<uint64_t>(plan.memory(0).alignment(), 256);
  if (code.arenaAlignment & (code.arenaAlignment - 1) ||
      code.arenaAlignment > uint64_t(1) << 30)
    return Status::error("the arena's alignment is " +
                         std::to_string(code.arenaAlignment) +
                         "; it must be a power of two up to 2^30");
  GTP_RETURN_IF_ERROR(target.checkMemory(code.ranks, code.arenaBytes));
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const pb::Buffer &buffer = plan.buffers(i);
    std::optional<uint64_t> end = checkedAdd(buffer.offset(), buffer.size());
    if (buffer.memory() != 0 || !end || *end > code.arenaBytes ||
        buffer.offset() % 256 != 0)
      return Status::error("buffer " + std::to_string(i) +
                           " is not inside the arena at a multiple of 256");
    code.buffers.push_back({buffer.offset(), buffer.size()});
  }
  return Status::ok();
}

Status Decoder::readCommunicators() {
  for (int i = 0; i < plan.communicators_size(); ++i) {
    std::set<uint32_t> axes;
    for (uint32_t axis : plan.communicators(i).axes())
      if (axis >= static_cast<uint32_t>(plan.mesh().axes_size()) ||
          !axes.insert(axis).second)
        return Status::error("communicator " + std::to_string(i) +
                             " names an axis that is not in the mesh, or one "
                             "twice");
    code.communicators.push_back(groupsOf(plan.mesh(), plan.communicators(i)));
  }
  return Status::ok();
}

StatusOr<Place> Decoder::readPlace(const pb::Operand &operand, uint64_t repeat,
                                   Access access) {
  auto wrong = [&](const std::string &what) {
    return Status::error("operand " + describe(operand) + " of buffer " +
                         std::to_string(operand.buffer()) + " " + what);
  };
  if (operand.buffer() >= code.buffers.size())
    return wrong("names a buffer that does not exist");
  std::optional<uint64_t> end = byteExtent(operand);
  if (!end || *end == 0)
    return wrong("has no valid type or size");
  if (rowPitch(operand) < rowElements(operand))
    return wrong("has a pitch below its last dimension");
  uint64_t elementBytes = dtypeSize(operand.dtype());
  bool aligned = operand.offset() % elementBytes == 0 &&
                 operand.iteration_stride() % elementBytes == 0;
  auto extend = [&](uint64_t stride, uint64_t times) {
    std::optional<uint64_t> bytes = checkedMul(stride, times);
    end = end && bytes ? checkedAdd(*end, *bytes) : std::nullopt;
  };
  extend(operand.offset(), 1);
  extend(operand.iteration_stride(), repeat - 1);

  Place place;
  for (const pb::AxisStride &stride : operand.rank_strides()) {
    if (stride.axis() >= static_cast<uint32_t>(plan.mesh().axes_size()))
      return wrong("has a stride along an axis that is not in the mesh");
    aligned &= stride.stride() % elementBytes == 0;
    extend(stride.stride(),
           plan.mesh().axes(static_cast<int>(stride.axis())).degree() - 1);
    place.rankStrides.emplace_back(stride.axis(), stride.stride());
  }
  const Code::Buffer &buffer = code.buffers[operand.buffer()];
  if (!end || *end > buffer.bytes)
    return wrong("ends behind its buffer's " + std::to_string(buffer.bytes) +
                 " bytes");
  if (!aligned)
    return wrong("is not aligned to its elements");
  place.buffer = operand.buffer();
  place.offset = buffer.offset + operand.offset();
  place.iterationStride = operand.iteration_stride();
  place.shape = shapeOf(operand);
  place.accumulate = operand.accumulate();
  place.reads = access != Access::Write;
  place.writes = access != Access::Read;
  return place;
}

Status Decoder::addPlace(const pb::Operand &operand, uint64_t repeat,
                         Access access, Operation &decoded) {
  GTP_ASSIGN_OR_RETURN(Place place, readPlace(operand, repeat, access));
  decoded.places.push_back(std::move(place));
  return Status::ok();
}

Status Decoder::readKernel(const pb::Kernel &kernel, uint64_t repeat,
                           Operation &decoded) {
  GTP_RETURN_IF_ERROR(verifyKernelCall(plan, kernel));
  std::string name(kernelName(plan, kernel));
  const KernelSpec &spec = *lookupKernel(name);
  auto count = static_cast<size_t>(kernel.operands_size());
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec &operandKind = *operandSpec(spec, i, count);
    GTP_RETURN_IF_ERROR(addPlace(kernel.operands(static_cast<int>(i)), repeat,
                                 operandKind.access, decoded));
    Place &place = decoded.places.back();
    place.scratch = operandKind.role == Role::Scratch;
    if (place.scratch && place.offset % alignof(double) != 0)
      return Status::error("kernel " + name +
                           ": its scratch is not aligned to 8 bytes");
  }
  auto body = target.kernel(CallSite(plan, kernel, spec));
  if (!body.isOk())
    return std::move(body).status().in("kernel " + name);
  decoded.body = std::move(*body);
  return Status::ok();
}

Status Decoder::readCollective(const pb::Collective &collective,
                               uint64_t repeat, Operation &decoded) {
  if (collective.communicator() >= code.communicators.size())
    return Status::error("the collective names a communicator that does not "
                         "exist");
  for (const pb::Operand &source : collective.sources())
    GTP_RETURN_IF_ERROR(addPlace(source, repeat, Access::Read, decoded));
  for (const pb::Operand &destination : collective.destinations())
    GTP_RETURN_IF_ERROR(addPlace(destination, repeat, Access::Write, decoded));
  if (collective.has_scratch()) {
    GTP_RETURN_IF_ERROR(
        addPlace(collective.scratch(), repeat, Access::Write, decoded));
    decoded.places.back().scratch = true;
  }
  decoded.communicator = collective.communicator();
  auto spec = gtp::rt::readCollective(
      collective, code.communicators[collective.communicator()].size);
  if (!spec.isOk())
    return std::move(spec).status().in("the collective cannot run");
  decoded.collective = std::move(*spec);
  return Status::ok();
}

Status Decoder::readCopy(const pb::Copy &copy, uint64_t repeat,
                         Operation &decoded) {
  GTP_RETURN_IF_ERROR(addPlace(copy.source(), repeat, Access::Read, decoded));
  GTP_RETURN_IF_ERROR(
      addPlace(copy.destination(), repeat, Access::Write, decoded));
  Shape from = decoded.places[0].shape, to = decoded.places[1].shape;
  if (from.elementBytes != to.elementBytes || from.rows != to.rows ||
      from.columns != to.columns)
    return Status::error("the copy's source " + describe(copy.source()) +
                         " and destination " + describe(copy.destination()) +
                         " differ in shape");
  decoded.body = target.copy(from, to);
  decoded.putsOwnPiece = !decoded.places[1].rankStrides.empty();
  return Status::ok();
}

Status Decoder::readFill(const pb::Fill &fill, uint64_t repeat,
                         Operation &decoded) {
  GTP_RETURN_IF_ERROR(
      addPlace(fill.destination(), repeat, Access::Write, decoded));
  if (!isDense(fill.destination()) || fill.byte_value() > 255)
    return Status::error("the fill needs a dense destination and a byte");
  const Shape &shape = decoded.places[0].shape;
  decoded.body = target.fill(shape.elements() * shape.elementBytes,
                             static_cast<uint8_t>(fill.byte_value()));
  return Status::ok();
}

StatusOr<Operation> Decoder::readOperation(const pb::Operation &operation,
                                           const pb::Region &region) {
  Operation decoded;
  decoded.stream = operation.stream();
  decoded.source = operation.source();
  decoded.when = operation.when();
  decoded.eventPlus1 = operation.event_plus1();
  if (operation.stream() >= static_cast<uint32_t>(plan.streams_size()))
    return Status::error("its stream does not exist");
  switch (operation.body_case()) {
  case pb::Operation::kKernel:
    GTP_RETURN_IF_ERROR(
        readKernel(operation.kernel(), region.repeat(), decoded));
    break;
  case pb::Operation::kCollective:
    GTP_RETURN_IF_ERROR(
        readCollective(operation.collective(), region.repeat(), decoded));
    break;
  case pb::Operation::kCopy:
    GTP_RETURN_IF_ERROR(readCopy(operation.copy(), region.repeat(), decoded));
    break;
  case pb::Operation::kFill:
    GTP_RETURN_IF_ERROR(readFill(operation.fill(), region.repeat(), decoded));
    break;
  default:
    return Status::error("it does nothing");
  }
  return decoded;
}

/// Every iteration ends in a join of all streams, so only waits within an
/// iteration and between streams are left to do.
Status Decoder::readEvents(const pb::Region &region, Region &decoded) {
  // An operation has one event at most.
  if (region.events() > static_cast<uint32_t>(region.operations_size()))
    return Status::error("it has more events than operations");
  std::vector<int> recorder(region.events(), -1);
  for (int i = 0; i < region.operations_size(); ++i) {
    const pb::Operation &operation = region.operations(i);
    auto wrong = [&](const std::string &what) {
      return Status::error("operation " + std::to_string(i) + " " + what);
    };
    for (const pb::Wait &wait : operation.waits()) {
      if (wait.event() >= region.events())
        return wrong("waits for an event that does not exist");
      int from = recorder[wait.event()];
      if (wait.distance() > 0)
        continue;
      if (from < 0)
        return wrong("waits for event " + std::to_string(wait.event()) +
                     ", which no earlier operation records");
      pb::Operation::When when = region.operations(from).when();
      if (when != pb::Operation::ALWAYS && when != operation.when())
        return wrong("waits for event " + std::to_string(wait.event()) +
                     ", which not every iteration that runs it records");
      if (region.operations(from).stream() != operation.stream())
        decoded.operations[static_cast<size_t>(i)].waits.push_back(
            wait.event());
    }
    if (operation.event_plus1() == 0)
      continue;
    uint32_t event = operation.event_plus1() - 1;
    if (event >= region.events() || recorder[event] >= 0)
      return wrong("records an event that does not exist or that another "
                   "operation records");
    recorder[event] = i;
  }
  return Status::ok();
}

StatusOr<Region> Decoder::readRegion(const pb::Region &region) {
  Region decoded;
  decoded.kind = region.kind();
  decoded.repeat = region.repeat();
  decoded.events = region.events();
  decoded.streams.resize(static_cast<size_t>(plan.streams_size()));
  if (region.repeat() == 0)
    return Status::error("it is repeated 0 times");
  for (int i = 0; i < region.operations_size(); ++i) {
    auto operation = readOperation(region.operations(i), region);
    if (!operation.isOk())
      return std::move(operation).status().in("operation " + std::to_string(i));
    operation->index = static_cast<uint32_t>(i);
    decoded.streams[operation->stream].push_back(operation->index);
    code.mostPlaces = std::max(code.mostPlaces, operation->places.size());
    decoded.operations.push_back(std::move(*operation));
  }
  GTP_RETURN_IF_ERROR(readEvents(region, decoded));
  return decoded;
}

Status Decoder::run() {
  GTP_RETURN_IF_ERROR(readMesh());
  GTP_RETURN_IF_ERROR(readMemory());
  GTP_RETURN_IF_ERROR(readCommunicators());
  std::set<uint32_t> streams;
  for (int p = 0; p < plan.programs_size(); ++p) {
    Program program;
    for (int r = 0; r < plan.programs(p).regions_size(); ++r) {
      auto region = readRegion(plan.programs(p).regions(r));
      if (!region.isOk())
        return std::move(region).status().in("program " + std::to_string(p) +
                                             ", region " + std::to_string(r));
      for (const Operation &operation : region->operations)
        streams.insert(operation.stream);
      program.regions.push_back(std::move(*region));
    }
    code.programs.push_back(std::move(program));
  }
  code.streams.assign(streams.begin(), streams.end());
  return Status::ok();
}

StatusOr<Code> gtp::rt::decode(const pb::Plan &plan, Target &target) {
  Decoder decoder(plan, target);
  GTP_RETURN_IF_ERROR(decoder.run());
  return std::move(decoder.code);
}

StatusOr<uint32_t> gtp::rt::updateRegion(const Code &code, uint32_t program) {
  const std::vector<Region> &regions = code.programs[program].regions;
  uint32_t update = 0;
  while (update < regions.size() && regions[update].kind != pb::Region::UPDATE)
    ++update;
  for (size_t r = update; r < regions.size(); ++r)
    if (regions[r].kind == pb::Region::BODY)
      return Status::error("program " + std::to_string(program) +
                           " updates weights before its last body, so there "
                           "is no point where its gradients are whole");
  return update;
}

bool Operation::runsIn(uint64_t iteration, uint64_t repeat) const {
  return plan::runsIn(when, iteration, repeat);
}

std::string gtp::rt::describePlace(const pb::Plan &plan, uint64_t program,
                                   uint64_t region, uint32_t operation) {
  std::string text = "program " + std::to_string(program) + ", region " +
                     std::to_string(region) + ", operation " +
                     std::to_string(operation);
  uint32_t source = plan.programs(static_cast<int>(program))
                        .regions(static_cast<int>(region))
                        .operations(static_cast<int>(operation))
                        .source();
  if (source < static_cast<uint32_t>(plan.strings_size()) &&
      !plan.strings(static_cast<int>(source)).empty())
    text += " (" + plan.strings(static_cast<int>(source)) + ")";
  return text;
}
