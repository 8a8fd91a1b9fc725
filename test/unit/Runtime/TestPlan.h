//===- TestPlan.h - A small plan, and memory that runs nothing ------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_TESTPLAN_H
#define GTP_TEST_UNIT_RUNTIME_TESTPLAN_H

#include "gtp-rt/Backend.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gtp::test {

using Axes = std::vector<std::pair<std::string, uint64_t>>;

/// Builds a plan that has all that the runtime reads but the executor: a mesh,
/// parameters with their buffers, inputs and outputs.
class TestPlan {
public:
  explicit TestPlan(const Axes &axes, plan::pb::DType compute = plan::pb::F32) {
    using namespace plan::pb;
    string("");
    uint64_t dataRanks = 1;
    for (const auto &[name, degree] : axes) {
      MeshAxis *axis = plan.mutable_mesh()->add_axes();
      axis->set_name(name);
      axis->set_degree(degree);
      dataRanks *= degree;
    }
    plan.mutable_numerics()->set_compute(compute);
    plan.mutable_numerics()->set_gradient(F32);
    plan.mutable_numerics()->set_master(F32);
    Model *model = plan.mutable_model();
    model->set_vocabulary(257);
    model->set_sequence(4);
    model->set_micro_batch(2);
    model->set_microbatches(3);
    model->set_global_batch(3 * 2 * dataRanks);
    model->set_initializer_range(0.02);
    Program *program = plan.add_programs();
    for (auto [name, bytes] : {std::pair("tokens", 96), std::pair("labels", 96),
                               std::pair("hyper", 32)})
      addIo(program->add_inputs(), name, uint64_t(bytes));
    for (const char *name : {"loss", "grad_norm"})
      addIo(program->add_outputs(), name, 4);
  }

  uint32_t string(const std::string &text) {
    plan.add_strings(text);
    return uint32_t(plan.strings_size() - 1);
  }

  uint32_t buffer(uint64_t bytes) {
    plan.add_buffers()->set_size(bytes);
    return uint32_t(plan.buffers_size() - 1);
  }

  /// A parameter whose rows the axis "gtp", if any, cuts at `granule`; one
  /// tensor for each of `tensors`, by name and rows.
  plan::pb::Parameter &
  parameter(const std::vector<std::pair<std::string, uint64_t>> &tensors,
            const std::vector<uint64_t> &inner, uint64_t granule) {
    using namespace plan::pb;
    Layout *layout = plan.add_layouts();
    LayoutDim *rows = layout->add_dims();
    Parameter *parameter = plan.add_parameters();
    parameter->set_name(string(tensors.front().first));
    uint64_t total = 0;
    for (const auto &[name, size] : tensors) {
      CheckpointTensor *tensor = parameter->add_tensors();
      tensor->set_name(string(name));
      tensor->set_rows(size);
      total += size;
    }
    rows->set_logical(total);
    rows->set_granule(granule);
    for (int i = 0; i < plan.mesh().axes_size(); ++i)
      if (plan.mesh().axes(i).name() == "gtp" && granule > 0)
        rows->add_storage_axes(uint32_t(i));
    parameter->add_shape(total);
    for (uint64_t size : inner) {
      layout->add_dims()->set_logical(size);
      parameter->add_shape(size);
    }
    parameter->set_layout(uint32_t(plan.layouts_size() - 1));
    uint64_t elements = 1;
    for (uint64_t size : plan::shardShape(plan.mesh(), *layout))
      elements *= size;
    parameter->set_compute_buffer(
        buffer(elements * plan::dtypeSize(plan.numerics().compute())));
    if (plan.numerics().compute() != F32)
      parameter->set_master_buffer_plus1(buffer(4 * elements) + 1);
    for (int i = 0; i < 2; ++i)
      parameter->add_state_buffers(buffer(4 * elements));
    parameter->set_gradient_buffer_plus1(buffer(4 * elements) + 1);
    return *parameter;
  }

  /// A second program, the evaluation, with the same inputs.
  void addEval() {
    using namespace plan::pb;
    Program *program = plan.add_programs();
    program->set_kind(Program::EVAL);
    for (int i = 0; i < 2; ++i)
      *program->add_inputs() = plan.programs(0).inputs(i);
    addIo(program->add_outputs(), "loss", 4);
    addIo(program->add_outputs(), "count", 8);
  }

  plan::pb::Plan plan;

private:
  void addIo(plan::pb::Io *io, const char *name, uint64_t bytes) {
    io->set_name(string(name));
    io->set_buffer(buffer(bytes));
  }
};

/// Buffers of all ranks; a step is what the test says.
class MemoryBackend : public rt::Backend {
public:
  explicit MemoryBackend(const plan::pb::Plan &plan)
      : ranks(plan::rankCount(plan.mesh())) {
    for (uint64_t rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < plan.buffers_size(); ++i)
        memory[{rank, uint32_t(i)}].assign(plan.buffers(i).size(), 0xff);
  }

  uint64_t firstRank() const override { return 0; }
  uint64_t localRanks() const override { return ranks; }
  Status writeBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                     const void *source, uint64_t size) override {
    auto &bytes = memory.at({rank, buffer});
    if (offset + size > bytes.size())
      return Status::error("write outside the buffer");
    std::memcpy(bytes.data() + offset, source, size);
    return Status::ok();
  }
  Status readBuffer(uint64_t rank, uint32_t buffer, uint64_t offset,
                    void *destination, uint64_t size) override {
    auto &bytes = memory.at({rank, buffer});
    if (offset + size > bytes.size())
      return Status::error("read outside the buffer");
    std::memcpy(destination, bytes.data() + offset, size);
    return Status::ok();
  }
  Status runStep(uint32_t program,
                 const std::function<Status()> &beforeUpdate) override {
    ++steps;
    programs.push_back(program);
    if (onStep)
      onStep();
    return beforeUpdate ? beforeUpdate() : Status::ok();
  }

  std::vector<float> floats(uint64_t rank, uint32_t buffer) {
    auto &bytes = memory.at({rank, buffer});
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), 4 * values.size());
    return values;
  }

  uint64_t ranks;
  uint64_t steps = 0;
  std::vector<uint32_t> programs; ///< of each step
  std::function<void()> onStep;
  std::map<std::pair<uint64_t, uint32_t>, std::vector<uint8_t>> memory;
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_TESTPLAN_H
