//===- PlanText.cpp - A plan as text that diffs well ----------------------===//
//
// A fact a line, and names in place of positions: a buffer is its name, an
// event the operation that records it. What an inserted operation or buffer
// changes elsewhere in the text is only what it changes in the plan.
//
//===----------------------------------------------------------------------===//

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Plan/PlanFile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

using namespace gtp::plan;

namespace {

/// Names that tell apart what has the same name: the second of them is
/// "name#2".
class Names {
public:
  void add(const std::string &name) {
    int count = ++counts[name];
    names.push_back(count == 1 ? name : name + "#" + std::to_string(count));
  }
  std::string operator[](uint64_t index) const {
    return index < names.size() ? names[index] : std::to_string(index) + "?";
  }

private:
  std::map<std::string, int> counts;
  std::vector<std::string> names;
};

class Printer {
public:
  explicit Printer(const pb::Plan &plan);
  std::string take() && { return std::move(out); }

  void header();
  void memory();
  void parameters();
  void communicator(uint64_t index);
  void communicators();
  void programs();

private:
  void line(const std::string &text) { out += text + "\n"; }
  void fact(int depth, const std::string &key, const std::string &value) {
    line(std::string(2 * static_cast<size_t>(depth), ' ') + key +
         (value.empty() ? "" : " " + value));
  }
  void fact(int depth, const std::string &key, uint64_t value) {
    fact(depth, key, std::to_string(value));
  }
  std::string string(uint64_t index) const {
    if (index < static_cast<uint64_t>(plan.strings_size()))
      return plan.strings(static_cast<int>(index));
    return "<string " + std::to_string(index) + "?>";
  }
  std::string buffer(uint64_t index) const { return "%" + buffers[index]; }
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
  std::string title(const pb::Operation &operation) const;
  void kernel(const pb::Kernel &kernel);
  void collective(const pb::Collective &collective);
  void region(const pb::Region &region);
  void operation(const pb::Operation &operation, const std::string &name,
                 const std::string &behind,
                 const std::vector<std::string> &events);

  const pb::Plan &plan;
  Names buffers, parameterNames, communicatorNames, streams;
  std::string out;
};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

Printer::Printer(const pb::Plan &plan) : plan(plan) {
  for (const pb::Buffer &b : plan.buffers())
    buffers.add(string(b.name()));
  for (const pb::Parameter &p : plan.parameters())
    parameterNames.add(string(p.name()));
  for (const pb::Communicator &c : plan.communicators())
    communicatorNames.add(pb::Communicator::Purpose_Name(c.purpose()) +
                          " over " + axes(c.axes()));
  for (const pb::Stream &s : plan.streams())
    streams.add(pb::Stream::Kind_Name(s.kind()));
}

void Printer::header() {
  fact(0, "plan by", "'" + plan.producer() + "'");
  fact(1, "schema", plan.schema_version());
  fact(1, "hash", sealedHash(plan).text());
  const pb::Provenance &provenance = plan.provenance();
  fact(0, "source",
       "'" + provenance.source() + "' family " + provenance.family() +
           " target " + provenance.target());
  for (const std::string &option : provenance.options())
    fact(1, "option", option);
  std::string mesh;
  for (const pb::MeshAxis &axis : plan.mesh().axes())
    mesh += (mesh.empty() ? "" : " ") + axis.name() + "=" +
            std::to_string(axis.degree());
  fact(0, "mesh", mesh);
  const pb::Numerics &numerics = plan.numerics();
  line("numerics");
  fact(1, "compute", dtypeName(numerics.compute()));
  fact(1, "gradient", dtypeName(numerics.gradient()));
  fact(1, "wire", dtypeName(numerics.wire()));
  fact(1, "master", dtypeName(numerics.master()));
  if (numerics.attention_backward() == "fast")
    fact(1, "attention_backward", numerics.attention_backward());
  const pb::Model &model = plan.model();
  line("model");
  fact(1, "vocabulary", model.vocabulary());
  fact(1, "sequence", model.sequence());
  fact(1, "micro_batch", model.micro_batch());
  fact(1, "global_batch", model.global_batch());
  fact(1, "microbatches", model.microbatches());
  fact(1, "parameters", model.parameters());
  fact(1, "optimizer", model.optimizer());
  fact(1, "clip_norm", number(model.clip_norm()));
  fact(1, "loss", model.loss());
  if (model.has_document_separator())
    fact(1, "document_separator", std::to_string(model.document_separator()));
  const pb::Claims &claims = plan.claims();
  line("claims");
  fact(1, "arena_bytes", claims.arena_bytes());
  fact(1, "persistent_bytes", claims.persistent_bytes());
  fact(1, "max_live_bytes", claims.max_live_bytes());
  fact(1, "gathered_peak_bytes", claims.gathered_peak_bytes());
  fact(1, "budget_bytes", claims.budget_bytes());
  fact(1, "overhead_bytes", claims.overhead_bytes());
  fact(1, "step_ns", claims.step_ns());
  if (claims.collective_ctas())
    fact(1, "collective_ctas", claims.collective_ctas());
}

void Printer::memory() {
  for (int i = 0; i < plan.memory_size(); ++i) {
    fact(0, "memory",
         std::to_string(i) + " " +
             pb::MemoryRegion::Kind_Name(plan.memory(i).kind()));
    fact(1, "size", plan.memory(i).size());
    fact(1, "alignment", plan.memory(i).alignment());
  }
  // In the plan they come by first use, which changes with the schedule.
  std::vector<int> order(static_cast<size_t>(plan.buffers_size()));
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](int i) {
    return std::pair(plan.buffers(i).kind() != pb::Buffer::PERSISTENT,
                     buffers[static_cast<uint64_t>(i)]);
  };
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return key(a) < key(b); });
  for (int i : order) {
    const pb::Buffer &b = plan.buffers(i);
    fact(0, "buffer",
         buffer(static_cast<uint64_t>(i)) + " " +
             pb::Buffer::Kind_Name(b.kind()));
    fact(1, "size", b.size());
    fact(1, "at",
         std::to_string(b.offset()) + " of memory " +
             std::to_string(b.memory()));
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
    fact(0, "parameter", parameterNames[static_cast<uint64_t>(i)]);
    fact(1, "layout", layout(p.layout()));
    fact(1, "init", pb::Parameter::Init_Name(p.init()));
    if (p.decay())
      line("  decay");
    if (p.frozen())
      line("  frozen");
    fact(1, "uses", p.uses());
    fact(1, "compute", buffer(p.compute_buffer()));
    if (p.master_buffer_plus1())
      fact(1, "master", buffer(p.master_buffer_plus1() - 1));
    if (p.remainder_buffer_plus1())
      fact(1, "remainder", buffer(p.remainder_buffer_plus1() - 1));
    for (uint32_t state : p.state_buffers())
      fact(1, "state", buffer(state));
    if (p.gradient_buffer_plus1())
      fact(1, "gradient", buffer(p.gradient_buffer_plus1() - 1));
    for (const pb::CheckpointTensor &tensor : p.tensors())
      fact(1, "tensor",
           string(tensor.name()) + " rows " + std::to_string(tensor.rows()) +
               (tensor.transposed() ? " transposed" : "") +
               (tensor.interleaved_groups()
                    ? " interleaved " +
                          std::to_string(tensor.interleaved_groups()) + " by " +
                          std::to_string(tensor.interleaved_parts())
                    : ""));
    for (uint32_t name : p.tied_names())
      fact(1, "tied", string(name));
  }
}

void Printer::communicator(uint64_t index) {
  const pb::Communicator &c = plan.communicators(static_cast<int>(index));
  fact(0, "communicator", communicatorNames[index]);
  if (c.cta_policy() != pb::Communicator::DEFAULT)
    fact(1, "cta_policy", pb::Communicator::CtaPolicy_Name(c.cta_policy()));
  if (c.min_ctas() || c.max_ctas())
    fact(1, "ctas",
         std::to_string(c.min_ctas()) + " to " + std::to_string(c.max_ctas()));
  if (c.needs_window())
    line("  window");
  if (c.spans_nodes())
    line("  spans nodes");
}

void Printer::communicators() {
  for (int i = 0; i < plan.communicators_size(); ++i)
    communicator(static_cast<uint64_t>(i));
  for (int i = 0; i < plan.streams_size(); ++i)
    fact(0, "stream", streams[static_cast<uint64_t>(i)]);
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
  text += " " + describe(o);
  if (o.pitch())
    text += " pitch " + std::to_string(o.pitch());
  return text + (o.accumulate() ? " accumulate" : "");
}

void Printer::kernel(const pb::Kernel &k) {
  const KernelSpec *spec = lookupKernel(kernelName(plan, k));
  size_t count = static_cast<size_t>(k.operands_size());
  for (size_t i = 0; i < count; ++i) {
    const OperandSpec *known = spec ? operandSpec(*spec, i, count) : nullptr;
    fact(4, known ? std::string(known->name) : "operand",
         operand(k.operands(static_cast<int>(i))));
  }
  for (const pb::Attribute &a : k.attributes()) {
    if (a.has_f())
      fact(4, string(a.name()), number(a.f()));
    else if (a.has_i())
      fact(4, string(a.name()), std::to_string(a.i()));
    else
      fact(4, string(a.name()), "constant " + std::to_string(a.constant()));
  }
  if (k.parameter_plus1())
    fact(4, "parameter", parameterNames[k.parameter_plus1() - 1]);
  if (k.second_parameter_plus1())
    fact(4, "second parameter", parameterNames[k.second_parameter_plus1() - 1]);
}

void Printer::collective(const pb::Collective &c) {
  fact(4, "communicator", communicatorNames[c.communicator()]);
  for (const pb::Operand &source : c.sources())
    fact(4, "from", operand(source));
  for (const pb::Operand &destination : c.destinations())
    fact(4, "to", operand(destination));
  fact(4, "wire", dtypeName(c.wire()));
  if (c.kind() != pb::Collective::ALL_GATHER)
    fact(4, pb::Collective::Reduce_Name(c.reduce()),
         std::string("in ") + dtypeName(c.accumulation()) + " " +
             pb::Collective::Order_Name(c.order()));
  fact(4, "by",
       pb::Collective::Transport_Name(c.transport()) +
           (c.ctas() ? " on " + std::to_string(c.ctas()) + " CTAs" : ""));
  if (c.has_scratch())
    fact(4, "scratch", operand(c.scratch()));
  if (c.parameter_plus1())
    fact(4, "parameter", parameterNames[c.parameter_plus1() - 1]);
}

/// What an operation is called: its kind and where it comes from.
std::string Printer::title(const pb::Operation &op) const {
  std::string text = "nothing?";
  if (op.has_kernel())
    text = string(op.kernel().name());
  else if (op.has_collective())
    text = pb::Collective::Kind_Name(op.collective().kind());
  else if (op.has_copy())
    text = "copy";
  else if (op.has_fill())
    text = "fill";
  return op.source() ? text + " @" + string(op.source()) : text;
}

void Printer::operation(const pb::Operation &op, const std::string &name,
                        const std::string &behind,
                        const std::vector<std::string> &events) {
  line("      " + name);
  if (!behind.empty())
    fact(4, "issued behind", behind);
  for (const pb::Wait &wait : op.waits())
    fact(4, "after",
         (wait.event() < events.size() && !events[wait.event()].empty()
              ? events[wait.event()]
              : "event " + std::to_string(wait.event()) + "?") +
             (wait.distance()
                  ? ", " + std::to_string(wait.distance()) + " iterations back"
                  : ""));
  if (op.has_kernel())
    kernel(op.kernel());
  if (op.has_collective())
    collective(op.collective());
  if (op.has_copy()) {
    fact(4, "from", operand(op.copy().source()));
    fact(4, "to", operand(op.copy().destination()));
  }
  if (op.has_fill()) {
    fact(4, "to", operand(op.fill().destination()));
    fact(4, "byte", op.fill().byte_value());
  }
  if (op.when() != pb::Operation::ALWAYS)
    fact(4, "when", pb::Operation::When_Name(op.when()));
  if (op.event_plus1())
    line("        signals");
  fact(4, "takes", std::to_string(op.duration()) + " ns");
}

void Printer::region(const pb::Region &region) {
  fact(1, "region",
       pb::Region::Kind_Name(region.kind()) + " x " +
           std::to_string(region.repeat()));
  Names names;
  for (const pb::Operation &op : region.operations())
    names.add(title(op));
  // An event is what records it. A plan may claim more events than it has
  // operations; those have no name.
  std::vector<std::string> events(
      static_cast<size_t>(region.operations_size()));
  for (int i = 0; i < region.operations_size(); ++i) {
    uint32_t event = region.operations(i).event_plus1();
    if (event && event <= events.size())
      events[event - 1] = names[static_cast<uint64_t>(i)];
  }
  // A stream at a time: where one of its operations is issued among those of
  // others is a line of its own. Streams that the plan lacks come last.
  uint32_t streamCount = static_cast<uint32_t>(plan.streams_size());
  for (uint32_t stream = 0; stream <= streamCount; ++stream) {
    bool titled = false;
    for (int i = 0; i < region.operations_size(); ++i) {
      const pb::Operation &op = region.operations(i);
      if (std::min(op.stream(), streamCount) != stream)
        continue;
      if (!titled)
        fact(2, "stream", streams[stream]);
      titled = true;
      bool follows = i > 0 && region.operations(i - 1).stream() != op.stream();
      operation(op, names[static_cast<uint64_t>(i)],
                follows ? names[static_cast<uint64_t>(i - 1)] : "", events);
    }
  }
}

void Printer::programs() {
  for (const pb::Program &program : plan.programs()) {
    fact(0, "program", pb::Program::Kind_Name(program.kind()));
    for (const pb::Io &io : program.inputs())
      fact(1, "input", string(io.name()) + " = " + buffer(io.buffer()));
    for (const pb::Io &io : program.outputs())
      fact(1, "output", string(io.name()) + " = " + buffer(io.buffer()));
    for (const pb::Region &r : program.regions())
      region(r);
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
