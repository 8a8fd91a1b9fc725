//===- CallOnBoth.h - A kernel's call on the host and on CUDA -------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_CALLONBOTH_H
#define GTP_TEST_UNIT_RUNTIME_CALLONBOTH_H

#include "HostPlan.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gtp::test {

/// One call of a kernel whose operands are buffers 0, 1, ...
class Call {
public:
  explicit Call(std::string name) : name(std::move(name)) {}

  /// Tensors from here on are of that type.
  Call &type(pb::DType tensors) {
    narrow = tensors;
    return *this;
  }
  /// An operand with random values in [-1, 1]; the backends get the same.
  Call &random(const Dims &dims, uint64_t gap = 0) {
    return bind(dims, narrow, gap);
  }
  Call &ids(const Dims &dims, uint64_t below) {
    bind(dims, pb::I32, 0);
    limits.back() = below;
    return *this;
  }
  /// Where documents of each of `batch` sequences start, some of them behind
  /// many tiles.
  Call &starts(uint64_t batch, uint64_t length) {
    return ids({batch, length}, 0);
  }
  Call &number(double value, pb::DType type = pb::F32) {
    return numbers({}, value, type);
  }
  Call &numbers(const Dims &dims, double value, pb::DType type = pb::F32) {
    bind(dims, type, 0);
    values.back() = value;
    return *this;
  }
  /// The last operand has no negative values.
  Call &positive() {
    positives.insert(operands.size() - 1);
    return *this;
  }
  /// One float64.
  Call &wideResult() {
    bind({}, pb::F64, 0);
    results.push_back(static_cast<uint32_t>(bytes.size() - 1));
    return *this;
  }
  Call &constant(const std::string &attribute,
                 const std::vector<double> &list) {
    constants.emplace_back(attribute, list);
    return *this;
  }
  Call &result(const Dims &dims, uint64_t gap = 0) {
    bind(dims, narrow, gap);
    results.push_back(static_cast<uint32_t>(bytes.size() - 1));
    return *this;
  }
  Call &scratch(uint64_t size) { return bind({size}, pb::U8, 0); }
  Call &integer(const std::string &attribute, int64_t value) {
    integers.emplace_back(attribute, value);
    return *this;
  }
  Call &real(const std::string &attribute, double value) {
    reals.emplace_back(attribute, value);
    return *this;
  }
  /// Runs it on both and expects the same results: `tolerance` is of the
  /// largest difference, relative to the largest value of the result.
  void compare(double tolerance = 2e-5);

private:
  Call &bind(const Dims &dims, pb::DType type, uint64_t gap) {
    pb::Operand call = operand(0, type, dims);
    if (gap)
      call.set_pitch(dims.back() + gap);
    bytes.push_back(*plan::byteExtent(call));
    call.set_buffer(plan.buffer(bytes.back(), pb::Buffer::PERSISTENT));
    operands.push_back(call);
    limits.push_back(0);
    values.emplace_back();
    return *this;
  }
  void fill(rt::Backend &backend) const;
  std::vector<double> numbersOf(rt::Backend &backend, uint32_t operand) const;

  std::string name;
  pb::DType narrow = pb::F32;
  HostPlan plan;
  std::vector<pb::Operand> operands;
  std::vector<uint64_t> bytes, limits;
  std::vector<std::optional<double>> values;
  std::set<size_t> positives;
  std::vector<uint32_t> results;
  std::vector<std::pair<std::string, int64_t>> integers;
  std::vector<std::pair<std::string, double>> reals;
  std::vector<std::pair<std::string, std::vector<double>>> constants;
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_CALLONBOTH_H
