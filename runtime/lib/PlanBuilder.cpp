//===- PlanBuilder.cpp - A plan, built by a program -----------------------===//

#include "gtp-rt/PlanBuilder.h"
#include "gtp/Plan/KernelRegistry.h"

#include <cstring>

using namespace gtp;
using namespace gtp::rt::build;

std::string gtp::rt::build::named(const char *pattern, const char *label) {
  std::string text = pattern;
  size_t star = text.find('*');
  return star == std::string::npos ? text : text.replace(star, 1, label);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

View::View(Buffer buffer, pb::DType dtype,
           std::initializer_list<uint64_t> dims) {
  operand.set_buffer(buffer.index);
  operand.set_dtype(dtype);
  operand.mutable_dims()->Add(dims.begin(), dims.end());
}

View &View::offset(uint64_t bytes) {
  operand.set_offset(bytes);
  return *this;
}

View &View::pitch(uint64_t elements) {
  operand.set_pitch(elements);
  return *this;
}

View &View::perIteration(uint64_t bytes) {
  operand.set_iteration_stride(bytes);
  return *this;
}

View &View::perRank(uint32_t axis, uint64_t bytes) {
  pb::AxisStride *stride = operand.add_rank_strides();
  stride->set_axis(axis);
  stride->set_stride(bytes);
  return *this;
}

View &View::adds() {
  operand.set_accumulate(true);
  return *this;
}

using Sizes = std::initializer_list<uint64_t>;
View gtp::rt::build::f32(Buffer buffer, Sizes dims) {
  return View(buffer, pb::F32, dims);
}
View gtp::rt::build::bf16(Buffer buffer, Sizes dims) {
  return View(buffer, pb::BF16, dims);
}
View gtp::rt::build::f64(Buffer buffer, Sizes dims) {
  return View(buffer, pb::F64, dims);
}
View gtp::rt::build::i16(Buffer buffer, Sizes dims) {
  return View(buffer, pb::I16, dims);
}
View gtp::rt::build::i32(Buffer buffer, Sizes dims) {
  return View(buffer, pb::I32, dims);
}
View gtp::rt::build::i64(Buffer buffer, Sizes dims) {
  return View(buffer, pb::I64, dims);
}
View gtp::rt::build::u8(Buffer buffer, Sizes dims) {
  return View(buffer, pb::U8, dims);
}

//===----------------------------------------------------------------------===//
// Issue, Over, Dim, Tensor, Weights
//===----------------------------------------------------------------------===//

Issue &Issue::after(Event event, uint32_t distance) {
  pb::Wait *wait = operation.add_waits();
  wait->set_event(event.plus1 - 1);
  wait->set_distance(distance);
  return *this;
}

Issue &Issue::after(const Events &events) {
  for (Event event : events)
    after(event);
  return *this;
}

Issue &Issue::signals(Event event) {
  operation.set_event_plus1(event.plus1);
  return *this;
}

Issue &Issue::takes(uint32_t nanoseconds) {
  operation.set_duration(nanoseconds);
  return *this;
}

Issue &Issue::when(pb::Operation::When iterations) {
  operation.set_when(iterations);
  return *this;
}

Issue &Issue::of(Parameter first, Parameter second) {
  secondParameterPlus1 = second.index + 1;
  return of(first);
}

Issue &Issue::of(Parameter parameter) {
  parameterPlus1 = parameter.index + 1;
  return *this;
}

Issue &Issue::at(std::string text) {
  source = std::move(text);
  return *this;
}

Issue &Issue::algorithm(std::string key) {
  tuned = std::move(key);
  return *this;
}

Issue &Issue::smTarget(uint32_t count) {
  sms = count;
  return *this;
}

Over &Over::reduce(pb::Collective::Reduce value) {
  collective.set_reduce(value);
  return *this;
}

Over &Over::wire(pb::DType value) {
  collective.set_wire(value);
  return *this;
}

Over &Over::accumulation(pb::DType value) {
  collective.set_accumulation(value);
  return *this;
}

Over &Over::order(pb::Collective::Order value) {
  collective.set_order(value);
  return *this;
}

Over &Over::transport(pb::Collective::Transport value) {
  collective.set_transport(value);
  return *this;
}

Over &Over::ctas(uint32_t value) {
  collective.set_ctas(value);
  return *this;
}

Over &Over::chunkBytes(uint32_t value) {
  collective.set_chunk_bytes(value);
  return *this;
}

Over &Over::scratch(const View &value) {
  *collective.mutable_scratch() = value.message();
  return *this;
}

Dim &Dim::segment(const char *name, uint64_t size) {
  segmentNames.push_back(name);
  dim.add_segments()->set_size(size);
  return *this;
}

Dim &Dim::compute(std::initializer_list<uint32_t> axes) {
  dim.mutable_compute_axes()->Add(axes.begin(), axes.end());
  return *this;
}

Dim &Dim::storage(std::initializer_list<uint32_t> axes) {
  dim.mutable_storage_axes()->Add(axes.begin(), axes.end());
  return *this;
}

Dim &Dim::granule(uint64_t elements) {
  dim.set_granule(elements);
  return *this;
}

Tensor &Tensor::transposed() {
  tensor.set_transposed(true);
  return *this;
}

Tensor &Tensor::interleaved(uint64_t groups, uint64_t parts) {
  tensor.set_interleaved_groups(groups);
  tensor.set_interleaved_parts(parts);
  return *this;
}

Weights &Weights::master(Buffer buffer) {
  parameter.set_master_buffer_plus1(buffer.index + 1);
  return *this;
}

Weights &Weights::remainder(Buffer buffer) {
  parameter.set_remainder_buffer_plus1(buffer.index + 1);
  return *this;
}

Weights &Weights::states(std::initializer_list<Buffer> buffers) {
  for (Buffer buffer : buffers)
    parameter.add_state_buffers(buffer.index);
  return *this;
}

Weights &Weights::gradient(Buffer buffer) {
  parameter.set_gradient_buffer_plus1(buffer.index + 1);
  return *this;
}

Weights &Weights::init(pb::Parameter::Init value) {
  parameter.set_init(value);
  return *this;
}

Weights &Weights::uses(uint32_t count) {
  parameter.set_uses(count);
  return *this;
}

Weights &Weights::decay() {
  parameter.set_decay(true);
  return *this;
}

Weights &Weights::frozen() {
  parameter.set_frozen(true);
  return *this;
}

Weights &Weights::tied(std::string name) {
  tiedNames.push_back(std::move(name));
  return *this;
}

//===----------------------------------------------------------------------===//
// PlanBuilder. Interns in the order of PlanToProto.cpp: the order of strings is
// part of a plan's bytes.
//===----------------------------------------------------------------------===//

uint32_t PlanBuilder::intern(const std::string &text) {
  auto [it, isNew] = strings.try_emplace(text, message.strings_size());
  if (isNew)
    message.add_strings(text);
  return it->second;
}

uint32_t PlanBuilder::internLayout(Dims dims) {
  pb::Layout layout;
  std::string key;
  for (const Dim &dim : dims) {
    *layout.add_dims() = dim.dim;
    for (const std::string &name : dim.segmentNames)
      key += name + '\0';
  }
  key += layout.SerializeAsString();
  auto [it, isNew] = layouts.try_emplace(key, message.layouts_size());
  if (!isNew)
    return it->second;
  auto out = layout.mutable_dims()->begin();
  for (const Dim &dim : dims) {
    for (size_t i = 0; i < dim.segmentNames.size(); ++i)
      out->mutable_segments(int(i))->set_name(intern(dim.segmentNames[i]));
    ++out;
  }
  *message.add_layouts() = layout;
  return it->second;
}

uint32_t PlanBuilder::internList(const std::vector<double> &values) {
  std::string key(values.size() * sizeof(double), '\0');
  if (!values.empty())
    std::memcpy(key.data(), values.data(), key.size());
  auto [it, isNew] = lists.try_emplace(key, message.constants_size());
  if (isNew)
    message.add_constants()->mutable_values()->Add(values.begin(),
                                                   values.end());
  return it->second;
}

void PlanBuilder::axis(const char *name, uint64_t degree) {
  pb::MeshAxis *axis = message.mutable_mesh()->add_axes();
  axis->set_name(name);
  axis->set_degree(degree);
}

void PlanBuilder::buffer(pb::Buffer::Kind kind, const std::string &name,
                         uint64_t size, uint64_t offset) {
  pb::Buffer *out = message.add_buffers();
  out->set_kind(kind);
  out->set_offset(offset);
  out->set_size(size);
  out->set_name(intern(name));
}

void PlanBuilder::parameter(const std::string &name,
                            std::initializer_list<uint64_t> shape, Dims layout,
                            std::initializer_list<Tensor> tensors,
                            const Weights &weights) {
  pb::Parameter *out = message.add_parameters();
  *out = weights.parameter;
  out->set_name(intern(name));
  out->mutable_shape()->Add(shape.begin(), shape.end());
  out->set_layout(internLayout(layout));
  for (const Tensor &tensor : tensors) {
    pb::CheckpointTensor *added = out->add_tensors();
    *added = tensor.tensor;
    added->set_name(intern(tensor.name));
  }
  for (const std::string &tied : weights.tiedNames)
    out->add_tied_names(intern(tied));
}

void PlanBuilder::program(pb::Program::Kind kind) {
  message.add_programs()->set_kind(kind);
}

static pb::Program &lastProgram(pb::Plan &plan) {
  return *plan.mutable_programs()->rbegin();
}

void PlanBuilder::input(const char *name, Buffer buffer) {
  pb::Io *io = lastProgram(message).add_inputs();
  io->set_name(intern(name));
  io->set_buffer(buffer.index);
}

void PlanBuilder::output(const char *name, Buffer buffer) {
  pb::Io *io = lastProgram(message).add_outputs();
  io->set_name(intern(name));
  io->set_buffer(buffer.index);
}

void PlanBuilder::region(pb::Region::Kind kind, uint64_t repeat,
                         uint32_t events) {
  pb::Region *region = lastProgram(message).add_regions();
  region->set_kind(kind);
  region->set_repeat(repeat);
  region->set_events(events);
}

pb::Operation &PlanBuilder::add(const Issue &issue) {
  pb::Operation *operation =
      lastProgram(message).mutable_regions()->rbegin()->add_operations();
  *operation = issue.operation;
  operation->set_source(intern(issue.source));
  return *operation;
}

void PlanBuilder::kernel(const char *name, Views operands, Settings settings,
                         const Issue &issue) {
  pb::Kernel *out = add(issue).mutable_kernel();
  out->set_name(intern(name));
  const plan::KernelSpec *spec = plan::lookupKernel(name);
  out->set_version(spec ? spec->version : 0);
  for (const View &view : operands)
    *out->add_operands() = view.message();
  for (const Setting &setting : settings) {
    pb::Attribute *attribute = out->add_attributes();
    attribute->set_name(intern(setting.name));
    if (setting.kind == pb::Attribute::kF)
      attribute->set_f(setting.real);
    else if (setting.kind == pb::Attribute::kI)
      attribute->set_i(setting.integer);
    else
      attribute->set_constant(internList(*setting.list));
  }
  out->set_parameter_plus1(issue.parameterPlus1);
  out->set_second_parameter_plus1(issue.secondParameterPlus1);
  out->set_algorithm(intern(issue.tuned));
  out->set_sm_target(issue.sms);
}

void PlanBuilder::collective(pb::Collective::Kind kind, Views sources,
                             Views destinations, const Over &over,
                             const Issue &issue) {
  pb::Collective *out = add(issue).mutable_collective();
  *out = over.collective;
  out->set_kind(kind);
  for (const View &view : sources)
    *out->add_sources() = view.message();
  for (const View &view : destinations)
    *out->add_destinations() = view.message();
  out->set_parameter_plus1(issue.parameterPlus1);
}

void PlanBuilder::copy(const View &source, const View &destination,
                       const Issue &issue) {
  pb::Copy *out = add(issue).mutable_copy();
  *out->mutable_source() = source.message();
  *out->mutable_destination() = destination.message();
}

void PlanBuilder::fill(const View &destination, uint32_t byteValue,
                       const Issue &issue) {
  pb::Fill *out = add(issue).mutable_fill();
  *out->mutable_destination() = destination.message();
  out->set_byte_value(byteValue);
}
