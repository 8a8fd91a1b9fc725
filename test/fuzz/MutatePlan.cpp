//===- MutatePlan.cpp -----------------------------------------------------===//

#include "MutatePlan.h"

#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/PlanFile.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace gtp;
using namespace gtp::fuzz;
using namespace gtp::plan;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

//===----------------------------------------------------------------------===//
// Any message
//===----------------------------------------------------------------------===//

static uint64_t extreme(Random &random) {
  static const uint64_t kValues[] = {0,
                                     1,
                                     2,
                                     7,
                                     255,
                                     256,
                                     UINT32_MAX,
                                     uint64_t(UINT32_MAX) + 1,
                                     uint64_t(1) << 44,
                                     uint64_t(1) << 61,
                                     uint64_t(INT64_MAX),
                                     uint64_t(1) << 63,
                                     UINT64_MAX};
  return random.below(2) ? random.pick(kValues) : random.below(40);
}

static void setScalar(Message &message, const FieldDescriptor &field,
                      Random &random) {
  const Reflection &r = *message.GetReflection();
  bool repeated = field.is_repeated();
  int size = repeated ? r.FieldSize(message, &field) : 0;
  if (repeated && size == 0)
    return;
  int index = static_cast<int>(random.below(static_cast<uint64_t>(size)));
  uint64_t value = extreme(random);
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_UINT32:
    repeated ? r.SetRepeatedUInt32(&message, &field, index,
                                   static_cast<uint32_t>(value))
             : r.SetUInt32(&message, &field, static_cast<uint32_t>(value));
    break;
  case FieldDescriptor::CPPTYPE_INT32:
    repeated ? r.SetRepeatedInt32(&message, &field, index,
                                  static_cast<int32_t>(value))
             : r.SetInt32(&message, &field, static_cast<int32_t>(value));
    break;
  case FieldDescriptor::CPPTYPE_UINT64:
    repeated ? r.SetRepeatedUInt64(&message, &field, index, value)
             : r.SetUInt64(&message, &field, value);
    break;
  case FieldDescriptor::CPPTYPE_INT64:
    repeated ? r.SetRepeatedInt64(&message, &field, index,
                                  static_cast<int64_t>(value))
             : r.SetInt64(&message, &field, static_cast<int64_t>(value));
    break;
  case FieldDescriptor::CPPTYPE_DOUBLE: {
    double real = value == 0 ? -1e308 : value == 1 ? std::nan("") : 1e308;
    repeated ? r.SetRepeatedDouble(&message, &field, index, real)
             : r.SetDouble(&message, &field, real);
    break;
  }
  case FieldDescriptor::CPPTYPE_BOOL:
    repeated ? r.SetRepeatedBool(&message, &field, index,
                                 !r.GetRepeatedBool(message, &field, index))
             : r.SetBool(&message, &field, !r.GetBool(message, &field));
    break;
  case FieldDescriptor::CPPTYPE_ENUM: {
    int number = static_cast<int>(random.below(9)) - 1;
    repeated ? r.SetRepeatedEnumValue(&message, &field, index, number)
             : r.SetEnumValue(&message, &field, number);
    break;
  }
  case FieldDescriptor::CPPTYPE_STRING:
    repeated ? r.SetRepeatedString(&message, &field, index, "")
             : r.SetString(&message, &field, "");
    break;
  default:
    break;
  }
}

void gtp::fuzz::mutateMessage(Message &message, Random &random) {
  const Reflection &r = *message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  r.ListFields(message, &fields);
  // Now and then a field that is not set, whose value is 0.
  if (fields.empty() || random.below(16) == 0) {
    const google::protobuf::Descriptor &type = *message.GetDescriptor();
    const FieldDescriptor &field = *type.field(static_cast<int>(
        random.below(static_cast<uint64_t>(type.field_count()))));
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      return setScalar(message, field, random);
    if (field.is_repeated())
      r.AddMessage(&message, &field);
    else
      r.MutableMessage(&message, &field);
    return;
  }
  const FieldDescriptor &field = *random.pick(fields);
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return setScalar(message, field, random);
  if (!field.is_repeated())
    return mutateMessage(*r.MutableMessage(&message, &field), random);
  int size = r.FieldSize(message, &field);
  int index = static_cast<int>(random.below(static_cast<uint64_t>(size)));
  switch (random.below(10)) {
  case 0:
    r.SwapElements(&message, &field, index, size - 1);
    r.RemoveLast(&message, &field);
    break;
  case 1:
    r.SwapElements(&message, &field, index,
                   static_cast<int>(random.below(static_cast<uint64_t>(size))));
    break;
  case 2: {
    Message *added = r.AddMessage(&message, &field);
    added->CopyFrom(r.GetRepeatedMessage(message, &field, index));
    break;
  }
  default:
    mutateMessage(*r.MutableRepeatedMessage(&message, &field, index), random);
    break;
  }
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// Buffers start at multiples of it.
constexpr uint64_t kAlign = 256;

static void setArena(pb::Plan &plan, uint64_t bytes) {
  plan.mutable_memory(0)->set_size(bytes);
  plan.mutable_claims()->set_arena_bytes(bytes);
}

template <typename List>
static auto *pickMutable(List *list, Random &random) {
  return list->Mutable(
      static_cast<int>(random.below(static_cast<uint64_t>(list->size()))));
}

/// Event of an operation, which gets one if it has none.
static uint32_t eventOf(pb::Region &region, pb::Operation &operation) {
  if (!operation.event_plus1()) {
    region.set_events(region.events() + 1);
    operation.set_event_plus1(region.events());
  }
  return operation.event_plus1() - 1;
}

static void addWait(pb::Plan &, pb::Region &region, Random &random) {
  uint64_t size = static_cast<uint64_t>(region.operations_size());
  int later = static_cast<int>(random.below(size));
  int earlier = static_cast<int>(random.below(static_cast<uint64_t>(later)));
  if (earlier >= later)
    return;
  uint32_t event = eventOf(region, *region.mutable_operations(earlier));
  region.mutable_operations(later)->add_waits()->set_event(event);
}

static void dropWait(pb::Plan &, pb::Region &region, Random &random) {
  pb::Operation *operation = pickMutable(region.mutable_operations(), random);
  int waits = operation->waits_size();
  if (waits == 0)
    return;
  int at = static_cast<int>(random.below(static_cast<uint64_t>(waits)));
  operation->mutable_waits()->DeleteSubrange(at, 1);
}

/// Takes an operation a few places earlier or later in the order.
static void moveOperation(pb::Plan &, pb::Region &region, Random &random) {
  int size = region.operations_size();
  int from = static_cast<int>(random.below(static_cast<uint64_t>(size)));
  int by = 1 + static_cast<int>(random.below(4));
  int step = random.below(2) ? 1 : -1;
  for (int at = from; by > 0; --by, at += step)
    if (at + step >= 0 && at + step < size)
      region.mutable_operations()->SwapElements(at, at + step);
}

static void moveStream(pb::Plan &plan, pb::Region &region, Random &random) {
  pickMutable(region.mutable_operations(), random)
      ->set_stream(static_cast<uint32_t>(
          random.below(static_cast<uint64_t>(plan.streams_size()))));
}

/// To any place of the arena, or behind its end.
static void moveBuffer(pb::Plan &plan, pb::Region &, Random &random) {
  pb::Buffer *buffer = pickMutable(plan.mutable_buffers(), random);
  uint64_t arena = plan.memory(0).size();
  if (random.below(2)) {
    buffer->set_offset(roundUp(arena, kAlign));
    setArena(plan, roundUp(arena, kAlign) + roundUp(buffer->size(), kAlign));
  } else {
    buffer->set_offset(random.below(arena / kAlign + 1) * kAlign);
  }
}

static void swapBuffers(pb::Plan &plan, pb::Region &, Random &random) {
  pb::Buffer *a = pickMutable(plan.mutable_buffers(), random);
  pb::Buffer *b = pickMutable(plan.mutable_buffers(), random);
  uint64_t offset = a->offset();
  a->set_offset(b->offset());
  b->set_offset(offset);
}

static void growBuffer(pb::Plan &plan, pb::Region &, Random &random) {
  pb::Buffer *buffer = pickMutable(plan.mutable_buffers(), random);
  uint64_t room = roundUp(buffer->size(), kAlign) - buffer->size();
  buffer->set_size(buffer->size() + random.below(room + 2));
}

static void growArena(pb::Plan &plan, pb::Region &, Random &random) {
  setArena(plan, plan.memory(0).size() + kAlign * (1 + random.below(8)));
}

/// All buffers higher by the same, as if the arena began earlier.
static void shiftAll(pb::Plan &plan, pb::Region &, Random &random) {
  uint64_t by = kAlign * (1 + random.below(8));
  for (pb::Buffer &buffer : *plan.mutable_buffers())
    buffer.set_offset(buffer.offset() + by);
  setArena(plan, plan.memory(0).size() + by);
}

void gtp::fuzz::mutateSchedule(pb::Plan &plan, Random &random) {
  using Mutation = void (*)(pb::Plan &, pb::Region &, Random &);
  static const Mutation kMutations[] = {
      addWait,       addWait,    dropWait,   moveOperation,
      moveOperation, moveStream, moveBuffer, moveBuffer,
      swapBuffers,   growBuffer, growArena,  shiftAll};
  for (size_t n = 1 + random.below(3); n--;) {
    pb::Program *program = pickMutable(plan.mutable_programs(), random);
    pb::Region *region = pickMutable(program->mutable_regions(), random);
    if (region->operations_size() > 0)
      random.pick(kMutations)(plan, *region, random);
  }
}

//===----------------------------------------------------------------------===//
// What a plan computes
//===----------------------------------------------------------------------===//

namespace {

/// Operations that touched a buffer between two writes; reads commute.
struct Era {
  std::string writer;
  std::vector<std::string> readers;
  bool operator==(const Era &other) const {
    return writer == other.writer && readers == other.readers;
  }
};

/// What happens to each buffer of a region, in order, and the order of each
/// communicator's collectives.
struct Flow {
  std::map<uint32_t, std::vector<Era>> buffers;
  std::map<uint32_t, std::vector<std::string>> communicators;
  bool operator==(const Flow &other) const {
    return buffers == other.buffers && communicators == other.communicators;
  }
};

} // namespace

/// The operation but for when and where it runs.
static std::string identify(const pb::Plan &plan,
                            const pb::Operation &operation) {
  pb::Operation stripped = operation;
  stripped.clear_stream();
  stripped.clear_waits();
  stripped.clear_event_plus1();
  stripped.clear_source();
  stripped.clear_duration();
  std::string name;
  if (operation.has_kernel())
    name = plan.strings(static_cast<int>(operation.kernel().name()));
  return name + stripped.SerializeAsString();
}

static Flow flowOf(const pb::Plan &plan, const pb::Region &region) {
  Flow flow;
  // Equal operations are told apart by which of them it is.
  std::map<std::string, int> seen;
  for (const pb::Operation &operation : region.operations()) {
    std::string id = identify(plan, operation);
    id += "#" + std::to_string(seen[id]++);
    std::map<uint32_t, bool> writes;
    auto touch = [&](const pb::Operand &operand, bool isWrite) {
      writes[operand.buffer()] |= isWrite;
    };
    if (operation.has_kernel()) {
      const pb::Kernel &kernel = operation.kernel();
      const KernelSpec *spec =
          lookupKernel(plan.strings(static_cast<int>(kernel.name())));
      size_t count = static_cast<size_t>(kernel.operands_size());
      for (size_t i = 0; i < count; ++i) {
        const OperandSpec *operand =
            spec ? operandSpec(*spec, i, count) : nullptr;
        touch(kernel.operands(static_cast<int>(i)),
              !operand || operand->access != Access::Read);
      }
    } else if (operation.has_collective()) {
      const pb::Collective &collective = operation.collective();
      for (const pb::Operand &source : collective.sources())
        touch(source, false);
      for (const pb::Operand &destination : collective.destinations())
        touch(destination, true);
      flow.communicators[collective.communicator()].push_back(id);
    } else if (operation.has_copy()) {
      touch(operation.copy().source(), false);
      touch(operation.copy().destination(), true);
    } else {
      touch(operation.fill().destination(), true);
    }
    for (auto [buffer, isWrite] : writes) {
      std::vector<Era> &eras = flow.buffers[buffer];
      if (isWrite || eras.empty())
        eras.push_back({isWrite ? id : "", {}});
      if (!isWrite)
        eras.back().readers.push_back(id);
    }
  }
  for (auto &[buffer, eras] : flow.buffers)
    for (Era &era : eras)
      std::sort(era.readers.begin(), era.readers.end());
  return flow;
}

/// The plan but for its operations, and what does not change what it computes.
static std::string frameOf(const pb::Plan &plan) {
  pb::Plan frame = plan;
  frame.clear_hash_low();
  frame.clear_hash_high();
  frame.clear_producer();
  frame.clear_provenance();
  frame.clear_claims();
  frame.clear_strings();
  for (pb::MemoryRegion &memory : *frame.mutable_memory())
    memory.clear_size();
  for (pb::Buffer &buffer : *frame.mutable_buffers()) {
    buffer.clear_offset();
    buffer.clear_size();
    buffer.clear_name();
  }
  for (pb::Program &program : *frame.mutable_programs())
    for (pb::Region &region : *program.mutable_regions()) {
      region.clear_operations();
      region.clear_events();
    }
  return serializePlan(frame);
}

bool gtp::fuzz::sameProgram(const pb::Plan &a, const pb::Plan &b) {
  if (frameOf(a) != frameOf(b))
    return false;
  // Strings name parameters, whose first values follow from the name.
  for (int i = 0; i < a.parameters_size(); ++i)
    for (int t = 0; t < a.parameters(i).tensors_size(); ++t)
      if (a.strings(static_cast<int>(a.parameters(i).tensors(t).name())) !=
          b.strings(static_cast<int>(b.parameters(i).tensors(t).name())))
        return false;
  for (int p = 0; p < a.programs_size(); ++p)
    for (int r = 0; r < a.programs(p).regions_size(); ++r)
      if (!(flowOf(a, a.programs(p).regions(r)) ==
            flowOf(b, b.programs(p).regions(r))))
        return false;
  return true;
}
