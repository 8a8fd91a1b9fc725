//===- PlanText.cpp - A plan as readable text -----------------------------===//

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Plan/PlanFile.h"

#include <cinttypes>
#include <cstdio>

using namespace gtp::plan;

namespace {

class Printer {
public:
  explicit Printer(const pb::Plan &plan) : plan(plan) {}
  std::string take() && { return std::move(out); }

  void header();
  void memory();
  void parameters();
  void communicators();
  void programs();

private:
  void line(const std::string &text) { out += text + "\n"; }
  std::string string(uint64_t index) const {
    if (index < static_cast<uint64_t>(plan.strings_size()))
      return plan.strings(static_cast<int>(index));
    return "<string " + std::to_string(index) + "?>";
  }
  std::string buffer(uint64_t index) const {
    std::string text = "%" + std::to_string(index);
    if (index >= static_cast<uint64_t>(plan.buffers_size()))
      return text + "?";
    std::string name = string(plan.buffers(static_cast<int>(index)).name());
    return name.empty() ? text : text + ":" + name;
  }
  template <typename List>
  std::string axes(const List &list) const {
    std::string text;
    for (uint32_t axis : list) {
      text += text.empty() ? "" : ",";
      text += axis < static_cast<uint64_t>(plan.mesh().axes_size())
                  ? plan.mesh().axes(static_cast<int>(axis)).name()
                  : std::to_string(axis) + "?";
    }
    return text;
  }
  std::string layout(uint64_t index) const;
  std::string operand(const pb::Operand &operand) const;
  std::string kernel(const pb::Kernel &kernel) const;
  std::string collective(const pb::Collective &collective) const;
  void operation(int index, const pb::Operation &operation);

  const pb::Plan &plan;
  std::string out;
};

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

void Printer::header() {
  line("plan schema " + std::to_string(plan.schema_version()) + " by '" +
       plan.producer() + "' hash " + hex(plan.hash_high()) +
       hex(plan.hash_low()));
  line("source '" + plan.provenance().source() + "' family " +
       plan.provenance().family() + " target " + plan.provenance().target());
  for (const std::string &option : plan.provenance().options())
    line("option " + option);
  std::string mesh = "mesh";
  for (const pb::MeshAxis &axis : plan.mesh().axes())
    mesh += " " + axis.name() + "=" + std::to_string(axis.degree());
  line(mesh);
  const pb::Numerics &numerics = plan.numerics();
  line(std::string("numerics compute ") + dtypeName(numerics.compute()) +
       " gradient " + dtypeName(numerics.gradient()) + " wire " +
       dtypeName(numerics.wire()) + " master " + dtypeName(numerics.master()));
  const pb::Model &model = plan.model();
  line(
      "model vocabulary " + std::to_string(model.vocabulary()) + " sequence " +
      std::to_string(model.sequence()) + " micro_batch " +
      std::to_string(model.micro_batch()) + " global_batch " +
      std::to_string(model.global_batch()) + " microbatches " +
      std::to_string(model.microbatches()) + " parameters " +
      std::to_string(model.parameters()) + " optimizer " + model.optimizer() +
      " clip_norm " + number(model.clip_norm()) +
      (model.has_document_separator()
           ? " document_separator " + std::to_string(model.document_separator())
           : ""));
  const pb::Claims &claims = plan.claims();
  line("claims arena " + std::to_string(claims.arena_bytes()) + " persistent " +
       std::to_string(claims.persistent_bytes()) + " max_live " +
       std::to_string(claims.max_live_bytes()) + " gathered_peak " +
       std::to_string(claims.gathered_peak_bytes()) + " step_ns " +
       std::to_string(claims.step_ns()));
}

void Printer::memory() {
  for (int i = 0; i < plan.memory_size(); ++i)
    line("memory " + std::to_string(i) + " " +
         pb::MemoryRegion::Kind_Name(plan.memory(i).kind()) + " size " +
         std::to_string(plan.memory(i).size()) + " alignment " +
         std::to_string(plan.memory(i).alignment()));
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const pb::Buffer &b = plan.buffers(i);
    line("buffer " + buffer(static_cast<uint64_t>(i)) + " " +
         pb::Buffer::Kind_Name(b.kind()) + " memory " +
         std::to_string(b.memory()) + " at " + std::to_string(b.offset()) +
         " size " + std::to_string(b.size()));
  }
}

std::string Printer::layout(uint64_t index) const {
  if (index >= static_cast<uint64_t>(plan.layouts_size()))
    return "<layout " + std::to_string(index) + "?>";
  std::string text = "<";
  const pb::Layout &layout = plan.layouts(static_cast<int>(index));
  for (const pb::LayoutDim &dim : layout.dims()) {
    text += text.size() > 1 ? ", " : "";
    text += std::to_string(dim.logical());
    if (!dim.segments().empty()) {
      text += "(";
      for (int i = 0; i < dim.segments_size(); ++i)
        text += (i ? "|" : "") + string(dim.segments(i).name()) + "=" +
                std::to_string(dim.segments(i).size());
      text += ")";
    }
    if (!dim.compute_axes().empty())
      text += " cut " + axes(dim.compute_axes());
    if (!dim.storage_axes().empty())
      text += " stored " + axes(dim.storage_axes()) + "@" +
              std::to_string(dim.granule());
  }
  if (layout.partial() != pb::Layout::NONE)
    text += "; " + pb::Layout::Partial_Name(layout.partial()) + " over " +
            axes(layout.partial_axes());
  return text + ">";
}

void Printer::parameters() {
  for (int i = 0; i < plan.parameters_size(); ++i) {
    const pb::Parameter &p = plan.parameters(i);
    std::string text =
        "parameter " + std::to_string(i) + " " + string(p.name()) + " " +
        layout(p.layout()) + " " + pb::Parameter::Init_Name(p.init()) +
        (p.decay() ? " decay" : "") + (p.frozen() ? " frozen" : "") + " uses " +
        std::to_string(p.uses()) + " compute " + buffer(p.compute_buffer());
    if (p.master_buffer_plus1())
      text += " master " + buffer(p.master_buffer_plus1() - 1);
    for (uint32_t state : p.state_buffers())
      text += " state " + buffer(state);
    if (p.gradient_buffer_plus1())
      text += " gradient " + buffer(p.gradient_buffer_plus1() - 1);
    for (const pb::CheckpointTensor &tensor : p.tensors())
      text +=
          " tensor " + string(tensor.name()) + "=" +
          std::to_string(tensor.rows()) +
          (tensor.transposed() ? " transposed" : "") +
          (tensor.interleaved_groups()
               ? " interleaved " + std::to_string(tensor.interleaved_groups()) +
                     " by " + std::to_string(tensor.interleaved_parts())
               : "");
    for (uint32_t name : p.tied_names())
      text += " tied " + string(name);
    line(text);
  }
}

void Printer::communicators() {
  for (int i = 0; i < plan.communicators_size(); ++i) {
    const pb::Communicator &c = plan.communicators(i);
    line("communicator " + std::to_string(i) + " " +
         pb::Communicator::Purpose_Name(c.purpose()) + " over " +
         axes(c.axes()));
  }
  for (int i = 0; i < plan.streams_size(); ++i)
    line("stream " + std::to_string(i) + " " +
         pb::Stream::Kind_Name(plan.streams(i).kind()));
}

std::string Printer::operand(const pb::Operand &o) const {
  std::string text = buffer(o.buffer());
  if (o.offset())
    text += "+" + std::to_string(o.offset());
  if (o.iteration_stride())
    text += "+i*" + std::to_string(o.iteration_stride());
  for (const pb::AxisStride &stride : o.rank_strides())
    text += "+" + axes(std::initializer_list<uint32_t>{stride.axis()}) + "*" +
            std::to_string(stride.stride());
  return text + " " + describe(o) + (o.accumulate() ? " accumulate" : "");
}

std::string Printer::kernel(const pb::Kernel &k) const {
  std::string text = "kernel " + string(k.name()) + "(";
  const KernelSpec *spec = lookupKernel(kernelName(plan, k));
  size_t count = static_cast<size_t>(k.operands_size());
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec *known = spec ? operandSpec(*spec, i, count) : nullptr;
    text += i ? ", " : "";
    if (known)
      text += std::string(known->name) + " = ";
    text += operand(k.operands(static_cast<int>(i)));
  }
  text += ")";
  for (const pb::Attribute &a : k.attributes()) {
    text += " " + string(a.name()) + "=";
    if (a.has_f())
      text += number(a.f());
    else if (a.has_i())
      text += std::to_string(a.i());
    else
      text += "constant " + std::to_string(a.constant());
  }
  if (k.parameter_plus1())
    text += " parameter " + std::to_string(k.parameter_plus1() - 1);
  return text;
}

std::string Printer::collective(const pb::Collective &c) const {
  std::string text = pb::Collective::Kind_Name(c.kind()) + " on " +
                     std::to_string(c.communicator());
  for (int i = 0; i < c.sources_size() || i < c.destinations_size(); ++i) {
    text += i ? ", " : " ";
    text += i < c.sources_size() ? operand(c.sources(i)) : "?";
    text += " -> ";
    text += i < c.destinations_size() ? operand(c.destinations(i)) : "?";
  }
  text += std::string(" wire ") + dtypeName(c.wire());
  if (c.kind() != pb::Collective::ALL_GATHER)
    text += " " + pb::Collective::Reduce_Name(c.reduce()) + " in " +
            dtypeName(c.accumulation()) + " " +
            pb::Collective::Order_Name(c.order());
  text += " by " + pb::Collective::Transport_Name(c.transport());
  if (c.parameter_plus1())
    text += " parameter " + std::to_string(c.parameter_plus1() - 1);
  return text;
}

void Printer::operation(int index, const pb::Operation &op) {
  std::string text = "    " + std::to_string(index) + " [" +
                     std::to_string(op.stream()) + "] ";
  switch (op.body_case()) {
  case pb::Operation::kKernel:
    text += kernel(op.kernel());
    break;
  case pb::Operation::kCollective:
    text += collective(op.collective());
    break;
  case pb::Operation::kCopy:
    text += "copy " + operand(op.copy().source()) + " -> " +
            operand(op.copy().destination());
    break;
  case pb::Operation::kFill:
    text += "fill " + operand(op.fill().destination()) + " with " +
            std::to_string(op.fill().byte_value());
    break;
  case pb::Operation::BODY_NOT_SET:
    text += "nothing?";
    break;
  }
  if (op.when() != pb::Operation::ALWAYS)
    text += " when " + pb::Operation::When_Name(op.when());
  for (const pb::Wait &wait : op.waits()) {
    text += " wait e" + std::to_string(wait.event());
    if (wait.distance())
      text += "-" + std::to_string(wait.distance());
  }
  if (op.event_plus1())
    text += " record e" + std::to_string(op.event_plus1() - 1);
  if (op.source())
    text += " @ " + string(op.source());
  line(text);
}

void Printer::programs() {
  for (const pb::Program &program : plan.programs()) {
    line("program " + pb::Program::Kind_Name(program.kind()));
    for (const pb::Io &io : program.inputs())
      line("  input " + string(io.name()) + " = " + buffer(io.buffer()));
    for (const pb::Io &io : program.outputs())
      line("  output " + string(io.name()) + " = " + buffer(io.buffer()));
    for (const pb::Region &region : program.regions()) {
      line("  region " + pb::Region::Kind_Name(region.kind()) + " x " +
           std::to_string(region.repeat()));
      for (int i = 0; i < region.operations_size(); ++i)
        operation(i, region.operations(i));
    }
  }
}

} // namespace

std::string gtp::plan::planToText(const pb::Plan &plan) {
  Printer printer(plan);
  printer.header();
  printer.memory();
  printer.communicators();
  printer.parameters();
  printer.programs();
  return std::move(printer).take();
}
