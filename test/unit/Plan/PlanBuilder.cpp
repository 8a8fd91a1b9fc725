//===- PlanBuilder.cpp - Small legal plans for tests ----------------------===//

#include "PlanBuilder.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/PlanFile.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

PlanBuilder::PlanBuilder() {
  plan.set_schema_version(kSchemaVersion);
  plan.set_producer("test");
  plan.add_strings("");
  plan.add_programs();
  pb::MemoryRegion *arena = plan.add_memory();
  arena->set_alignment(256);
}

uint32_t PlanBuilder::string(const std::string &text) {
  for (int i = 0; i < plan.strings_size(); ++i)
    if (plan.strings(i) == text)
      return static_cast<uint32_t>(i);
  plan.add_strings(text);
  return static_cast<uint32_t>(plan.strings_size() - 1);
}

uint32_t PlanBuilder::axis(const std::string &name, uint64_t degree) {
  pb::MeshAxis *axis = plan.mutable_mesh()->add_axes();
  axis->set_name(name);
  axis->set_degree(degree);
  return static_cast<uint32_t>(plan.mesh().axes_size() - 1);
}

uint32_t PlanBuilder::stream(pb::Stream::Kind kind) {
  plan.add_streams()->set_kind(kind);
  return static_cast<uint32_t>(plan.streams_size() - 1);
}

uint32_t PlanBuilder::communicator(std::vector<uint32_t> axes,
                                   pb::Communicator::Purpose purpose) {
  pb::Communicator *communicator = plan.add_communicators();
  communicator->mutable_axes()->Add(axes.begin(), axes.end());
  communicator->set_purpose(purpose);
  return static_cast<uint32_t>(plan.communicators_size() - 1);
}

uint32_t PlanBuilder::buffer(const std::string &name, pb::Buffer::Kind kind,
                             uint64_t size, int over) {
  pb::Buffer *buffer = plan.add_buffers();
  buffer->set_kind(kind);
  buffer->set_name(string(name));
  buffer->set_size(size);
  buffer->set_offset(over < 0 ? end : plan.buffers(over).offset());
  end = std::max(end, buffer->offset() + roundUp(size, 256));
  return static_cast<uint32_t>(plan.buffers_size() - 1);
}

pb::Operand PlanBuilder::operand(uint32_t buffer, pb::DType type,
                                 std::vector<uint64_t> dims,
                                 uint64_t offset) const {
  pb::Operand operand;
  operand.set_buffer(buffer);
  operand.set_dtype(type);
  operand.mutable_dims()->Add(dims.begin(), dims.end());
  operand.set_offset(offset);
  return operand;
}

void PlanBuilder::region(pb::Region::Kind kind, uint64_t repeat) {
  pb::Region *region = plan.mutable_programs(0)->add_regions();
  region->set_kind(kind);
  region->set_repeat(repeat);
}

pb::Region &PlanBuilder::lastRegion() {
  pb::Program *program = plan.mutable_programs(0);
  return *program->mutable_regions(program->regions_size() - 1);
}

pb::Operation &PlanBuilder::last() {
  pb::Region &region = lastRegion();
  return *region.mutable_operations(region.operations_size() - 1);
}

int PlanBuilder::add(uint32_t stream, const std::string &source) {
  pb::Operation *operation = lastRegion().add_operations();
  operation->set_stream(stream);
  operation->set_source(string(source));
  return lastRegion().operations_size() - 1;
}

int PlanBuilder::kernel(uint32_t stream, const std::string &name,
                        const std::vector<pb::Operand> &operands,
                        int parameter) {
  int index = add(stream, name);
  pb::Kernel *kernel = last().mutable_kernel();
  kernel->set_name(string(name));
  kernel->set_version(lookupKernel(name)->version);
  kernel->set_parameter_plus1(static_cast<uint32_t>(parameter + 1));
  for (const pb::Operand &operand : operands)
    *kernel->add_operands() = operand;
  return index;
}

void PlanBuilder::attribute(const std::string &name, int64_t value) {
  pb::Attribute *attribute = last().mutable_kernel()->add_attributes();
  attribute->set_name(string(name));
  attribute->set_i(value);
}

void PlanBuilder::attribute(const std::string &name, double value) {
  pb::Attribute *attribute = last().mutable_kernel()->add_attributes();
  attribute->set_name(string(name));
  attribute->set_f(value);
}

int PlanBuilder::collective(uint32_t stream, pb::Collective::Kind kind,
                            uint32_t communicator, const pb::Operand &source,
                            const pb::Operand &destination, int parameter) {
  int index = add(stream, pb::Collective::Kind_Name(kind));
  pb::Collective *collective = last().mutable_collective();
  collective->set_kind(kind);
  collective->set_communicator(communicator);
  *collective->add_sources() = source;
  *collective->add_destinations() = destination;
  collective->set_wire(source.dtype());
  collective->set_accumulation(source.dtype() == pb::BF16 ? pb::F32
                                                          : source.dtype());
  collective->set_transport(pb::Collective::HOST);
  collective->set_parameter_plus1(static_cast<uint32_t>(parameter + 1));
  return index;
}

int PlanBuilder::fill(uint32_t stream, const pb::Operand &destination) {
  int index = add(stream, "fill");
  *last().mutable_fill()->mutable_destination() = destination;
  return index;
}

void PlanBuilder::wait(int of) {
  pb::Operation *recorder = lastRegion().mutable_operations(of);
  if (!recorder->event_plus1()) {
    lastRegion().set_events(lastRegion().events() + 1);
    recorder->set_event_plus1(lastRegion().events());
  }
  last().add_waits()->set_event(recorder->event_plus1() - 1);
}

pb::Plan PlanBuilder::finish() {
  plan.mutable_memory(0)->set_size(end);
  pb::Claims *claims = plan.mutable_claims();
  uint64_t persistent = 0;
  for (const pb::Buffer &buffer : plan.buffers())
    if (buffer.kind() == pb::Buffer::PERSISTENT)
      persistent += roundUp(buffer.size(), 256);
  claims->set_persistent_bytes(persistent);
  claims->set_arena_bytes(end);
  restateClaims(plan);
  return plan;
}

void gtp::plan::test::restateClaims(pb::Plan &plan) {
  CheckReport report;
  (void)checkPlan(plan, &report);
  plan.mutable_claims()->set_arena_bytes(plan.memory(0).size());
  plan.mutable_claims()->set_max_live_bytes(report.liveBytes);
  plan.mutable_claims()->set_gathered_peak_bytes(report.gatheredBytes);
}

pb::Operation *gtp::plan::test::findOperation(pb::Plan &plan,
                                              const std::string &name) {
  auto [region, index] = findPlace(plan, name);
  return region ? region->mutable_operations(index) : nullptr;
}

std::pair<pb::Region *, int>
gtp::plan::test::findPlace(pb::Plan &plan, const std::string &name) {
  for (pb::Region &region : *plan.mutable_programs(0)->mutable_regions())
    for (int i = 0; i < region.operations_size(); ++i)
      if (plan.strings(static_cast<int>(region.operations(i).source())) == name)
        return {&region, i};
  return {nullptr, 0};
}
