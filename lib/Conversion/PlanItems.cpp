//===- PlanItems.cpp - A plan as calls of the runtime's builder -----------===//

#include "PlanItems.h"
#include "CppText.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/LowerCase.h"

#include <cctype>
#include <set>

using namespace gtp;
using namespace gtp::plan;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Item::key() const {
  std::string key = callee;
  for (const SlotText &argument : arguments) {
    key += '\0';
    for (size_t i = 0; i < argument.pieces.size(); ++i) {
      key += argument.pieces[i];
      if (i < argument.slots.size())
        key += '\1' + std::to_string(argument.slots[i].kind);
    }
  }
  return key;
}

/// Fails if a field is set that is not of `known`: nothing would write it.
static Status expectOnly(const Message &message,
                         const std::set<std::string> &known) {
  for (const FieldDescriptor *field : setFields(message))
    if (!known.count(field->name()))
      return Status::error("--emit=cpp writes no field '" + field->name() +
                           "' of " + message.GetDescriptor()->name() +
                           ", which the plan sets");
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Tables and operations
//===----------------------------------------------------------------------===//

namespace {

class Reader {
public:
  Reader(const pb::Plan &plan) : plan(plan) {}
  StatusOr<PlanItems> read(const std::vector<int> &buffers);

private:
  std::string text(uint32_t index) const { return plan.strings(int(index)); }
  Slot name(uint32_t index) const { return {Slot::Name, text(index), {}}; }
  Slot buffer(uint32_t index) const {
    return {Slot::Buffer, text(plan.buffers(int(index)).name()), {index}};
  }
  /// What records event `event` of the region that is read.
  std::string recorder(uint32_t event) const {
    return event < recorders.size() ? recorders[event] : "event";
  }

  Status readHeader();
  Status addBuffer(const pb::Buffer &buffer, std::vector<Item> &items);
  Status addParameter(const pb::Parameter &parameter);
  Status addLayout(const pb::Layout &layout, SlotText &text);
  Status addView(const pb::Operand &operand, SlotText &text);
  StatusOr<SlotText>
  views(const google::protobuf::RepeatedPtrField<pb::Operand> &operands);
  StatusOr<SlotText> issue(const pb::Operation &operation);
  StatusOr<Item> operation(const pb::Operation &operation);
  StatusOr<Item> kernel(const pb::Operation &operation);
  StatusOr<Item> collective(const pb::Operation &operation);
  StatusOr<RegionItems> region(const pb::Region &region);

  const pb::Plan &plan;
  PlanItems items;
  std::vector<std::string> recorders;
};

} // namespace

Status Reader::readHeader() {
  pb::Plan header = plan;
  for (auto clear : {&pb::Plan::clear_schema_version, &pb::Plan::clear_hash_low,
                     &pb::Plan::clear_hash_high, &pb::Plan::clear_strings,
                     &pb::Plan::clear_constants, &pb::Plan::clear_layouts,
                     &pb::Plan::clear_buffers, &pb::Plan::clear_parameters,
                     &pb::Plan::clear_communicators, &pb::Plan::clear_streams,
                     &pb::Plan::clear_programs})
    (header.*clear)();
  addSetters(header, "plan.message.", items.header);

  std::set<std::string> taken;
  auto unique = [&](std::string name) {
    name = identifier(name);
    std::string result = name;
    for (int i = 2; !taken.insert(result).second; ++i)
      result = name + "_" + std::to_string(i);
    return result;
  };
  pb::Plan part;
  *part.mutable_streams() = plan.streams();
  addSetters(part, "plan.message.", items.streams);
  for (const pb::Stream &stream : plan.streams())
    items.streamNames.push_back(
        unique(lowerCase(pb::Stream::Kind_Name(stream.kind())) + "_stream"));
  part.Clear();
  *part.mutable_communicators() = plan.communicators();
  addSetters(part, "plan.message.", items.communicators);
  for (const pb::Communicator &communicator : plan.communicators()) {
    std::string name =
        lowerCase(pb::Communicator::Purpose_Name(communicator.purpose()));
    for (uint32_t axis : communicator.axes())
      name += "_" + plan.mesh().axes(int(axis)).name();
    items.communicatorNames.push_back(unique(name));
  }
  for (const pb::FloatList &list : plan.constants()) {
    std::string text;
    for (double value : list.values())
      text += (text.empty() ? "" : ", ") + realText(value);
    items.lists.push_back(text);
  }
  return Status::ok();
}

Status Reader::addBuffer(const pb::Buffer &buffer, std::vector<Item> &out) {
  GTP_RETURN_IF_ERROR(expectOnly(buffer, {"kind", "offset", "size", "name"}));
  Item item{"plan.buffer", {}};
  item.arguments.resize(4);
  item.arguments[0] += "pb::Buffer::" + pb::Buffer::Kind_Name(buffer.kind());
  item.arguments[1] += name(buffer.name());
  item.arguments[2] += std::to_string(buffer.size());
  item.arguments[3] +=
      Slot{Slot::Number, text(buffer.name()), {buffer.offset()}};
  out.push_back(std::move(item));
  return Status::ok();
}

Status Reader::addLayout(const pb::Layout &layout, SlotText &out) {
  GTP_RETURN_IF_ERROR(expectOnly(layout, {"dims"}));
  out += "{";
  for (int i = 0; i < layout.dims_size(); ++i) {
    const pb::LayoutDim &dim = layout.dims(i);
    GTP_RETURN_IF_ERROR(expectOnly(dim, {"logical", "segments", "compute_axes",
                                         "storage_axes", "granule"}));
    std::string one =
        (i ? ", Dim(" : "Dim(") + std::to_string(dim.logical()) + ")";
    for (const pb::Segment &segment : dim.segments())
      one += ".segment(" + quoted(text(segment.name())) + ", " +
             std::to_string(segment.size()) + ")";
    if (dim.compute_axes_size())
      one += ".compute(" + listText(dim.compute_axes()) + ")";
    if (dim.storage_axes_size())
      one += ".storage(" + listText(dim.storage_axes()) + ")";
    if (dim.granule())
      one += ".granule(" + std::to_string(dim.granule()) + ")";
    out += one;
  }
  out += "}";
  return Status::ok();
}

Status Reader::addParameter(const pb::Parameter &parameter) {
  GTP_RETURN_IF_ERROR(expectOnly(
      parameter,
      {"name", "shape", "layout", "tensors", "init", "decay", "frozen", "uses",
       "compute_buffer", "master_buffer_plus1", "state_buffers",
       "gradient_buffer_plus1", "tied_names", "remainder_buffer_plus1"}));
  Item item{"plan.parameter", {}};
  item.arguments.resize(5);
  item.arguments[0] += name(parameter.name());
  item.arguments[1] += listText(parameter.shape());
  GTP_RETURN_IF_ERROR(
      addLayout(plan.layouts(int(parameter.layout())), item.arguments[2]));
  SlotText &tensors = item.arguments[3];
  tensors += "{";
  for (int i = 0; i < parameter.tensors_size(); ++i) {
    const pb::CheckpointTensor &tensor = parameter.tensors(i);
    GTP_RETURN_IF_ERROR(
        expectOnly(tensor, {"name", "rows", "transposed", "interleaved_groups",
                            "interleaved_parts"}));
    tensors += i ? ", Tensor(" : "Tensor(";
    tensors += name(tensor.name());
    tensors += ", " + std::to_string(tensor.rows()) + ")";
    if (tensor.transposed())
      tensors += ".transposed()";
    if (tensor.interleaved_groups() || tensor.interleaved_parts())
      tensors += ".interleaved(" + std::to_string(tensor.interleaved_groups()) +
                 ", " + std::to_string(tensor.interleaved_parts()) + ")";
  }
  tensors += "}";
  SlotText &weights = item.arguments[4];
  auto addPlus1 = [&](const char *function, uint32_t plus1) {
    if (!plus1)
      return;
    weights += std::string(".") + function + "(";
    weights += buffer(plus1 - 1);
    weights += ")";
  };
  weights += "weights(";
  weights += buffer(parameter.compute_buffer());
  weights += ")";
  addPlus1("master", parameter.master_buffer_plus1());
  addPlus1("remainder", parameter.remainder_buffer_plus1());
  for (int i = 0; i < parameter.state_buffers_size(); ++i) {
    weights += i ? ", " : ".states({";
    weights += buffer(parameter.state_buffers(i));
  }
  if (parameter.state_buffers_size())
    weights += "})";
  addPlus1("gradient", parameter.gradient_buffer_plus1());
  weights +=
      ".init(pb::Parameter::" + pb::Parameter::Init_Name(parameter.init()) +
      ").uses(" + std::to_string(parameter.uses()) + ")";
  if (parameter.decay())
    weights += ".decay()";
  if (parameter.frozen())
    weights += ".frozen()";
  for (uint32_t tied : parameter.tied_names()) {
    weights += ".tied(";
    weights += name(tied);
    weights += ")";
  }
  items.parameters.push_back(std::move(item));
  return Status::ok();
}

Status Reader::addView(const pb::Operand &operand, SlotText &out) {
  GTP_RETURN_IF_ERROR(
      expectOnly(operand, {"buffer", "offset", "dtype", "dims", "pitch",
                           "iteration_stride", "rank_strides", "accumulate"}));
  out += plan::dtypeName(operand.dtype());
  out += "(";
  out += buffer(operand.buffer());
  out += ", " + listText(operand.dims()) + ")";
  auto add = [&](const char *function, uint64_t value) {
    if (value)
      out += std::string(".") + function + "(" + std::to_string(value) + ")";
  };
  add("offset", operand.offset());
  add("pitch", operand.pitch());
  add("perIteration", operand.iteration_stride());
  for (const pb::AxisStride &stride : operand.rank_strides())
    out += ".perRank(" + std::to_string(stride.axis()) + ", " +
           std::to_string(stride.stride()) + ")";
  if (operand.accumulate())
    out += ".adds()";
  return Status::ok();
}

StatusOr<SlotText>
Reader::views(const google::protobuf::RepeatedPtrField<pb::Operand> &operands) {
  SlotText out;
  out += "{";
  for (int i = 0; i < operands.size(); ++i) {
    if (i)
      out += ", ";
    GTP_RETURN_IF_ERROR(addView(operands.Get(i), out));
  }
  out += "}";
  return out;
}

StatusOr<SlotText> Reader::issue(const pb::Operation &operation) {
  GTP_RETURN_IF_ERROR(expectOnly(
      operation, {"stream", "waits", "event_plus1", "source", "duration",
                  "kernel", "collective", "copy", "fill", "when"}));
  SlotText out;
  out += "on(" + items.streamNames.at(operation.stream()) + ")";
  uint32_t parameterPlus1 = operation.has_kernel()
                                ? operation.kernel().parameter_plus1()
                                : operation.collective().parameter_plus1();
  if (parameterPlus1) {
    auto parameter = [&](uint32_t index) {
      return Slot{
          Slot::Parameter, text(plan.parameters(int(index)).name()), {index}};
    };
    out += ".of(";
    out += parameter(parameterPlus1 - 1);
    if (uint32_t second = operation.kernel().second_parameter_plus1()) {
      out += ", ";
      out += parameter(second - 1);
    }
    out += ")";
  }
  bool acrossIterations = false;
  Slot after{Slot::After, "", {}};
  for (const pb::Wait &wait : operation.waits()) {
    acrossIterations |= wait.distance() != 0;
    after.values.push_back(wait.event());
    after.text = recorder(wait.event());
  }
  for (const pb::Wait &wait : operation.waits()) {
    if (!acrossIterations)
      continue;
    out += ".after(";
    out += Slot{Slot::Event, recorder(wait.event()), {wait.event()}};
    out += ", " + std::to_string(wait.distance()) + ")";
  }
  if (!acrossIterations)
    out += after;
  Slot signals{Slot::Signals, text(operation.source()), {}};
  if (operation.event_plus1())
    signals.values.push_back(operation.event_plus1() - 1);
  out += signals;
  if (operation.when())
    out +=
        ".when(pb::Operation::" + pb::Operation::When_Name(operation.when()) +
        ")";
  if (operation.has_kernel()) {
    if (operation.kernel().algorithm())
      out += ".algorithm(" + quoted(text(operation.kernel().algorithm())) + ")";
    if (operation.kernel().sm_target())
      out +=
          ".smTarget(" + std::to_string(operation.kernel().sm_target()) + ")";
  }
  if (operation.duration()) {
    out += ".takes(";
    out += Slot{Slot::Number, "ns", {operation.duration()}};
    out += ")";
  }
  if (operation.source()) {
    out += ".at(";
    out += name(operation.source());
    out += ")";
  }
  return out;
}

StatusOr<Item> Reader::kernel(const pb::Operation &operation) {
  const pb::Kernel &kernel = operation.kernel();
  GTP_RETURN_IF_ERROR(expectOnly(
      kernel, {"name", "version", "operands", "attributes", "parameter_plus1",
               "second_parameter_plus1", "algorithm", "sm_target"}));
  std::string settings = "{";
  for (const pb::Attribute &attribute : kernel.attributes()) {
    settings += settings.size() > 1 ? ", {" : "{";
    settings += quoted(text(attribute.name())) + ", ";
    if (attribute.value_case() == pb::Attribute::kF)
      settings += realText(attribute.f());
    else if (attribute.value_case() == pb::Attribute::kI)
      settings += integerText(attribute.i());
    else
      settings += "list" + std::to_string(attribute.constant());
    settings += "}";
  }
  Item item{"plan.kernel", {}};
  item.arguments.resize(4);
  item.arguments[0] += quoted(text(kernel.name()));
  GTP_ASSIGN_OR_RETURN(item.arguments[1], views(kernel.operands()));
  item.arguments[2] += settings + "}";
  GTP_ASSIGN_OR_RETURN(item.arguments[3], issue(operation));
  return item;
}

StatusOr<Item> Reader::collective(const pb::Operation &operation) {
  const pb::Collective &collective = operation.collective();
  // Functions of `Over` are named as the fields.
  SlotText over;
  over += "over(" + items.communicatorNames.at(collective.communicator()) + ")";
  static const std::set<std::string> elsewhere = {
      "kind",         "communicator",    "sources",
      "destinations", "parameter_plus1", "scratch"};
  for (const FieldDescriptor *field : setFields(collective)) {
    if (elsewhere.count(field->name()))
      continue;
    over += "." + field->camelcase_name() + "(";
    if (field->message_type() == pb::Operand::descriptor())
      GTP_RETURN_IF_ERROR(addView(
          static_cast<const pb::Operand &>(
              collective.GetReflection()->GetMessage(collective, field)),
          over));
    else
      over += scalarText(collective, *field);
    over += ")";
  }
  Item item{"plan.collective", {}};
  item.arguments.resize(5);
  item.arguments[0] +=
      "pb::Collective::" + pb::Collective::Kind_Name(collective.kind());
  GTP_ASSIGN_OR_RETURN(item.arguments[1], views(collective.sources()));
  GTP_ASSIGN_OR_RETURN(item.arguments[2], views(collective.destinations()));
  if (collective.has_scratch()) {
    over += ".scratch(";
    GTP_RETURN_IF_ERROR(addView(collective.scratch(), over));
    over += ")";
  }
  item.arguments[3] = std::move(over);
  GTP_ASSIGN_OR_RETURN(item.arguments[4], issue(operation));
  return item;
}

StatusOr<Item> Reader::operation(const pb::Operation &operation) {
  if (operation.has_kernel())
    return kernel(operation);
  if (operation.has_collective())
    return collective(operation);
  Item item;
  item.arguments.resize(2);
  if (operation.has_copy()) {
    item.callee = "plan.copy";
    GTP_RETURN_IF_ERROR(
        expectOnly(operation.copy(), {"source", "destination"}));
    GTP_RETURN_IF_ERROR(addView(operation.copy().source(), item.arguments[0]));
    GTP_RETURN_IF_ERROR(
        addView(operation.copy().destination(), item.arguments[1]));
  } else {
    item.callee = "plan.fill";
    GTP_RETURN_IF_ERROR(
        expectOnly(operation.fill(), {"destination", "byte_value"}));
    GTP_RETURN_IF_ERROR(
        addView(operation.fill().destination(), item.arguments[0]));
    item.arguments[1] += std::to_string(operation.fill().byte_value());
  }
  GTP_ASSIGN_OR_RETURN(SlotText issued, issue(operation));
  item.arguments.push_back(std::move(issued));
  return item;
}

StatusOr<RegionItems> Reader::region(const pb::Region &region) {
  GTP_RETURN_IF_ERROR(
      expectOnly(region, {"kind", "repeat", "operations", "events"}));
  RegionItems out;
  out.kind = pb::Region::Kind_Name(region.kind());
  out.begin = call("plan.region",
                   {"pb::Region::" + out.kind, std::to_string(region.repeat()),
                    std::to_string(region.events())});
  recorders.assign(region.events(), "event");
  for (const pb::Operation &each : region.operations())
    if (each.event_plus1() && each.event_plus1() <= recorders.size())
      recorders[each.event_plus1() - 1] = text(each.source());
  for (const pb::Operation &each : region.operations()) {
    GTP_ASSIGN_OR_RETURN(Item item, operation(each));
    out.operations.push_back(std::move(item));
  }
  return out;
}

StatusOr<PlanItems> Reader::read(const std::vector<int> &buffers) {
  GTP_RETURN_IF_ERROR(readHeader());
  int next = 0;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const pb::Program &program = plan.programs(p);
    GTP_RETURN_IF_ERROR(
        expectOnly(program, {"kind", "regions", "inputs", "outputs"}));
    ProgramItems &out = items.programs.emplace_back();
    out.kind = pb::Program::Kind_Name(program.kind());
    for (int i = 0; i < buffers.at(p); ++i)
      GTP_RETURN_IF_ERROR(addBuffer(plan.buffers(next++), out.buffers));
    for (bool isInput : {true, false})
      for (const pb::Io &io : isInput ? program.inputs() : program.outputs()) {
        Item item{isInput ? "plan.input" : "plan.output", {}};
        item.arguments.resize(2);
        item.arguments[0] += quoted(text(io.name()));
        item.arguments[1] += buffer(io.buffer());
        out.ios.push_back(std::move(item));
      }
    for (const pb::Region &each : program.regions()) {
      GTP_ASSIGN_OR_RETURN(RegionItems read, region(each));
      out.regions.push_back(std::move(read));
    }
  }
  for (const pb::Parameter &parameter : plan.parameters())
    GTP_RETURN_IF_ERROR(addParameter(parameter));
  return std::move(items);
}

StatusOr<PlanItems> gtp::itemsOf(const pb::Plan &plan,
                                 const std::vector<int> &buffers) {
  return Reader(plan).read(buffers);
}
