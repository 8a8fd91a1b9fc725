//===- HostPlan.h - Builds small plans that the host backend can run ------===//

#ifndef GTP_TEST_UNIT_RUNTIME_HOSTPLAN_H
#define GTP_TEST_UNIT_RUNTIME_HOSTPLAN_H

#include "gtp-rt/HostBackend.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/RoundUp.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace gtp::test {

namespace pb = plan::pb;
using Dims = std::vector<uint64_t>;

inline pb::Operand operand(uint32_t buffer, pb::DType type, const Dims &dims) {
  pb::Operand result;
  result.set_buffer(buffer);
  result.set_dtype(type);
  for (uint64_t dim : dims)
    result.add_dims(dim);
  return result;
}

/// One program, buffers one behind the other, three streams.
class HostPlan {
public:
  explicit HostPlan(
      const std::vector<std::pair<std::string, uint64_t>> &axes = {}) {
    string("");
    for (const auto &[name, degree] : axes) {
      pb::MeshAxis *axis = plan.mutable_mesh()->add_axes();
      axis->set_name(name);
      axis->set_degree(degree);
    }
    plan.mutable_numerics()->set_compute(pb::F32);
    plan.mutable_model()->set_document_separator(3);
    plan.add_memory()->set_alignment(256);
    for (pb::Stream::Kind kind :
         {pb::Stream::COMPUTE, pb::Stream::GATHER, pb::Stream::REDUCE})
      plan.add_streams()->set_kind(kind);
    plan.add_programs();
  }

  uint32_t string(const std::string &text) {
    plan.add_strings(text);
    return static_cast<uint32_t>(plan.strings_size() - 1);
  }

  uint32_t buffer(uint64_t bytes,
                  pb::Buffer::Kind kind = pb::Buffer::TRANSIENT) {
    pb::Buffer *result = plan.add_buffers();
    result->set_kind(kind);
    result->set_offset(plan.memory(0).size());
    result->set_size(bytes);
    plan.mutable_memory(0)->set_size(plan.memory(0).size() +
                                     roundUp(bytes, 256));
    return static_cast<uint32_t>(plan.buffers_size() - 1);
  }

  uint32_t communicator(std::initializer_list<uint32_t> axes) {
    pb::Communicator *result = plan.add_communicators();
    for (uint32_t axis : axes)
      result->add_axes(axis);
    return static_cast<uint32_t>(plan.communicators_size() - 1);
  }

  pb::Region *region(pb::Region::Kind kind, uint64_t repeat = 1) {
    pb::Region *result = plan.mutable_programs(0)->add_regions();
    result->set_kind(kind);
    result->set_repeat(repeat);
    return result;
  }

  pb::Operation *operation(pb::Region *region, uint32_t stream,
                           const std::string &source) {
    pb::Operation *result = region->add_operations();
    result->set_stream(stream);
    result->set_source(string(source));
    return result;
  }

  pb::Kernel *kernel(pb::Region *region, uint32_t stream,
                     const std::string &name,
                     const std::vector<pb::Operand> &operands) {
    pb::Kernel *result =
        operation(region, stream, name + ".op")->mutable_kernel();
    result->set_name(string(name));
    const plan::KernelSpec *spec = plan::lookupKernel(name);
    result->set_version(spec ? spec->version : 1);
    for (const pb::Operand &operand : operands)
      *result->add_operands() = operand;
    return result;
  }

  pb::Attribute *attribute(pb::Kernel *kernel, const std::string &name) {
    pb::Attribute *result = kernel->add_attributes();
    result->set_name(string(name));
    return result;
  }

  pb::Collective *collective(pb::Region *region, uint32_t stream,
                             pb::Collective::Kind kind, uint32_t communicator,
                             const pb::Operand &source,
                             const pb::Operand &destination) {
    pb::Collective *result =
        operation(region, stream, pb::Collective::Kind_Name(kind))
            ->mutable_collective();
    result->set_kind(kind);
    result->set_communicator(communicator);
    *result->add_sources() = source;
    *result->add_destinations() = destination;
    result->set_wire(source.dtype());
    result->set_accumulation(source.dtype());
    return result;
  }

  void copy(pb::Region *region, uint32_t stream, const pb::Operand &source,
            const pb::Operand &destination) {
    pb::Copy *result = operation(region, stream, "copy")->mutable_copy();
    *result->mutable_source() = source;
    *result->mutable_destination() = destination;
  }

  void fill(pb::Region *region, uint32_t stream, const pb::Operand &destination,
            uint32_t value) {
    pb::Fill *result = operation(region, stream, "fill")->mutable_fill();
    *result->mutable_destination() = destination;
    result->set_byte_value(value);
  }

  /// The last operation of `region` waits for operation `index` of it.
  static void waitFor(pb::Region *region, int index) {
    pb::Operation *recorder = region->mutable_operations(index);
    if (!recorder->event_plus1()) {
      region->set_events(region->events() + 1);
      recorder->set_event_plus1(region->events());
    }
    region->mutable_operations(region->operations_size() - 1)
        ->add_waits()
        ->set_event(recorder->event_plus1() - 1);
  }

  pb::Plan plan;
};

/// A backend that must exist.
inline std::unique_ptr<rt::Backend>
makeBackend(const pb::Plan &plan, const rt::BackendOptions &options = {},
            rt::HostHooks hooks = {}) {
  auto backend = rt::createHostBackend(plan, options, std::move(hooks));
  if (!backend.isOk()) {
    ADD_FAILURE() << backend.message();
    std::abort();
  }
  return std::move(*backend);
}

template <typename T>
void write(rt::Backend &backend, uint64_t rank, uint32_t buffer,
           const std::vector<T> &values) {
  Status status = backend.writeBuffer(rank, buffer, 0, values.data(),
                                      values.size() * sizeof(T));
  ASSERT_TRUE(status.isOk()) << status.message();
}

template <typename T>
std::vector<T> read(rt::Backend &backend, uint64_t rank, uint32_t buffer,
                    uint64_t count, uint64_t firstByte = 0) {
  std::vector<T> values(count);
  Status status = backend.readBuffer(rank, buffer, firstByte, values.data(),
                                     count * sizeof(T));
  EXPECT_TRUE(status.isOk()) << status.message();
  return values;
}

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_HOSTPLAN_H
