//===- KernelHarness.cpp - Runs one kernel of the registry ----------------===//

#include "KernelHarness.h"
#include "BackendUnderTest.h"

#include "gtp/Support/BFloat16.h"

#include "gtp/Plan/KernelCall.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

using namespace gtp;
using namespace gtp::test;

Tensor::Tensor(Dims shape, double value) : dims(std::move(shape)) {
  values.assign(std::accumulate(dims.begin(), dims.end(), uint64_t(1),
                                std::multiplies<uint64_t>()),
                value);
}

Tensor gtp::test::randomTensor(Dims dims, uint64_t seed) {
  Tensor tensor(std::move(dims));
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (double &value : tensor.values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<double>(static_cast<int32_t>(state >> 40) - (1 << 23)) /
            (1 << 23);
  }
  return tensor;
}

KernelCase &KernelCase::in(const Tensor &values, pb::DType type) {
  bounds.push_back({values, values, type, true, false});
  return *this;
}

KernelCase &KernelCase::out(const Tensor &expected, pb::DType type) {
  bounds.push_back({Tensor(expected.dims), expected, type, false, true});
  return *this;
}

KernelCase &KernelCase::inOut(const Tensor &before, const Tensor &expected,
                              pb::DType type) {
  bounds.push_back({before, expected, type, true, true});
  return *this;
}

KernelCase &KernelCase::scratch(uint64_t bytes) {
  bounds.push_back({Tensor({bytes}), Tensor({bytes}), pb::U8, false, false});
  return *this;
}

KernelCase &KernelCase::real(const std::string &attribute, double value) {
  reals.emplace_back(attribute, value);
  return *this;
}

KernelCase &KernelCase::integer(const std::string &attribute, int64_t value) {
  integers.emplace_back(attribute, value);
  return *this;
}

KernelCase &KernelCase::constant(const std::string &attribute,
                                 const std::vector<double> &values) {
  constants.emplace_back(attribute, values);
  return *this;
}

KernelCase &KernelCase::tolerance(double value) {
  limit = value;
  return *this;
}

const plan::OperandSpec &KernelCase::spec(size_t index) const {
  const plan::KernelSpec *kernel = plan::lookupKernel(name);
  const plan::OperandSpec *result =
      kernel ? plan::operandSpec(*kernel, index, bounds.size()) : nullptr;
  if (!result) {
    ADD_FAILURE() << name << " has no operand " << index;
    std::abort();
  }
  return *result;
}

namespace {

void store(std::byte *to, pb::DType type, double value) {
  auto put = [&](auto converted) {
    std::memcpy(to, &converted, sizeof(converted));
  };
  switch (type) {
  case pb::F32:
    return put(static_cast<float>(value));
  case pb::BF16:
    return put(BFloat16(value));
  case pb::I16:
    return put(static_cast<int16_t>(value));
  case pb::F64:
    return put(value);
  case pb::I32:
    return put(static_cast<int32_t>(value));
  case pb::I64:
    return put(static_cast<int64_t>(value));
  default:
    return put(static_cast<uint8_t>(value));
  }
}

template <typename T>
double loadAs(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return static_cast<double>(value);
}

double load(const std::byte *from, pb::DType type) {
  switch (type) {
  case pb::F32:
    return loadAs<float>(from);
  case pb::BF16:
    return loadAs<BFloat16>(from);
  case pb::I16:
    return loadAs<int16_t>(from);
  case pb::F64:
    return loadAs<double>(from);
  case pb::I32:
    return loadAs<int32_t>(from);
  case pb::I64:
    return loadAs<int64_t>(from);
  default:
    return loadAs<uint8_t>(from);
  }
}

} // namespace

struct KernelCase::Built {
  HostPlan plan;
  /// By operand; buffers start with the row gap's bytes too.
  std::vector<uint64_t> pitches, bytes;

  Tensor unpack(size_t operand, const Tensor &shape, pb::DType type,
                const std::vector<std::byte> &data) const {
    Tensor tensor(shape.dims);
    uint64_t size = plan::dtypeSize(type);
    for (uint64_t row = 0; row < tensor.rows(); ++row)
      for (uint64_t i = 0; i < tensor.columns(); ++i)
        tensor.at(row, i) =
            load(data.data() + (row * pitches[operand] + i) * size, type);
    return tensor;
  }
};

KernelCase::Built KernelCase::build(HostPlan plan, uint64_t gap,
                                    uint64_t repeat, bool inParts) const {
  Built built{std::move(plan), {}, {}};
  std::vector<pb::Operand> operands;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const Bound &bound = bounds[i];
    uint64_t pitch = bound.before.columns() + (spec(i).strided ? gap : 0);
    uint64_t bytes = bound.before.rows() * pitch * plan::dtypeSize(bound.type);
    built.pitches.push_back(pitch);
    built.bytes.push_back(bytes);
    uint32_t buffer = built.plan.buffer(
        bytes, bound.read ? pb::Buffer::PERSISTENT : pb::Buffer::TRANSIENT);
    pb::Operand call = operand(buffer, bound.type, bound.before.dims);
    if (pitch != bound.before.columns())
      call.set_pitch(pitch);
    call.set_accumulate(repeat > 1 && spec(i).accumulable);
    operands.push_back(call);
  }
  pb::Region *region = built.plan.region(pb::Region::BODY, repeat);
  if (!inParts) {
    addCall(built.plan, region, name, operands);
    return built;
  }
  const plan::KernelSpec &kernel = *plan::lookupKernel(name);
  pb::Kernel all;
  all.mutable_operands()->Add(operands.begin(), operands.end());
  for (const plan::KernelPart &part : kernel.parts) {
    pb::Kernel call = plan::partCall(kernel, all, part);
    addCall(built.plan, region, std::string(part.kernel),
            {call.operands().begin(), call.operands().end()});
  }
  return built;
}

void KernelCase::addCall(HostPlan &plan, pb::Region *region,
                         const std::string &called,
                         const std::vector<pb::Operand> &operands) const {
  const plan::KernelSpec &spec = *plan::lookupKernel(called);
  auto takes = [&](const std::string &attribute) {
    return std::any_of(spec.attributes.begin(), spec.attributes.end(),
                       [&](const plan::AttributeSpec &known) {
                         return known.name == attribute;
                       });
  };
  pb::Kernel *kernel = plan.kernel(region, 0, called, operands);
  for (const auto &[attribute, value] : reals)
    if (takes(attribute))
      plan.attribute(kernel, attribute)->set_f(value);
  for (const auto &[attribute, value] : integers)
    if (takes(attribute))
      plan.attribute(kernel, attribute)->set_i(value);
  for (const auto &[attribute, values] : constants) {
    if (!takes(attribute))
      continue;
    pb::FloatList *list = plan.plan.add_constants();
    for (double value : values)
      list->add_values(value);
    plan.attribute(kernel, attribute)
        ->set_constant(static_cast<uint32_t>(plan.plan.constants_size() - 1));
  }
}

static std::vector<std::byte> pack(const Tensor &tensor, pb::DType type,
                                   uint64_t pitch) {
  uint64_t size = plan::dtypeSize(type);
  // Gaps hold what poison holds.
  std::vector<std::byte> data(tensor.rows() * pitch * size, std::byte(0xFF));
  for (uint64_t row = 0; row < tensor.rows(); ++row)
    for (uint64_t i = 0; i < tensor.columns(); ++i)
      store(data.data() + (row * pitch + i) * size, type, tensor.at(row, i));
  return data;
}

std::vector<std::vector<std::byte>>
KernelCase::execute(const Built &built) const {
  auto backend = backendUnderTest(built.plan.plan);
  for (size_t i = 0; i < bounds.size(); ++i)
    if (bounds[i].read)
      write(*backend, 0, static_cast<uint32_t>(i),
            pack(bounds[i].before, bounds[i].type, built.pitches[i]));
  Status status = backend->runStep(0, nullptr);
  EXPECT_TRUE(status.isOk()) << status.message();
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; status.isOk() && i < bounds.size(); ++i)
    all.push_back(
        read<std::byte>(*backend, 0, static_cast<uint32_t>(i), built.bytes[i]));
  return all;
}

void KernelCase::run(uint64_t gap, uint64_t repeat) const {
  SCOPED_TRACE(name + ", gap " + std::to_string(gap) + ", " +
               std::to_string(repeat) + " times");
  Built built = build(HostPlan(), gap, repeat);
  std::vector<std::vector<std::byte>> after = execute(built);
  for (size_t b = 0; b < after.size(); ++b) {
    const Bound &bound = bounds[b];
    if (spec(b).role == plan::Role::Scratch)
      continue;
    const std::vector<std::byte> &data = after[b];
    Tensor got = built.unpack(b, bound.before, bound.type, data);
    double times = spec(b).accumulable ? static_cast<double>(repeat) : 1;
    for (size_t i = 0; i < got.values.size(); ++i) {
      double want = times * bound.expected.values[i];
      if (got.values[i] == want ||
          (std::isnan(want) && std::isnan(got.values[i])))
        continue;
      ASSERT_LE(std::fabs(got.values[i] - want), limit * (1 + std::fabs(want)))
          << "operand " << spec(b).name << " element " << i << ": "
          << got.values[i] << " instead of " << want;
    }
    // Nothing between the rows is written.
    uint64_t size = plan::dtypeSize(bound.type);
    for (uint64_t row = 0; row < got.rows(); ++row)
      for (uint64_t byte = got.columns() * size; byte < built.pitches[b] * size;
           ++byte)
        ASSERT_EQ(data[row * built.pitches[b] * size + byte], std::byte(0xFF))
            << "operand " << spec(b).name << " row " << row;
  }
}

void KernelCase::runBfloat16(uint64_t gap, uint64_t repeat,
                             bool keepGradients) const {
  SCOPED_TRACE(name + " on bf16, gap " + std::to_string(gap) + ", " +
               std::to_string(repeat) + " times");
  // What the registry fixes as float32; masters and states have cases of their
  // own.
  static const std::set<std::string_view> wideOnly = {
      "hyper", "scale", "norm", "lse", "loss", "dloss"};
  KernelCase wide = *this, narrow = *this;
  for (size_t i = 0; i < bounds.size(); ++i) {
    plan::Role role = spec(i).role;
    if (bounds[i].type != pb::F32 || wideOnly.count(spec(i).name) ||
        role == plan::Role::Master || role == plan::Role::State)
      continue;
    for (double &value : wide.bounds[i].before.values)
      value = BFloat16(value);
    narrow.bounds[i].before = wide.bounds[i].before;
    if (!keepGradients || bounds[i].read || role != plan::Role::Gradient)
      narrow.bounds[i].type = pb::BF16;
  }
  // Parts round what passes between them.
  const bool partsRound = plan::lookupKernel(name)->runsAsParts();
  const KernelCase &reference = partsRound ? narrow : wide;
  Built wideBuilt = reference.build(HostPlan(), gap, repeat, partsRound);
  Built narrowBuilt = narrow.build(HostPlan(), gap, repeat);
  auto wideAfter = reference.execute(wideBuilt);
  auto narrowAfter = narrow.execute(narrowBuilt);
  ASSERT_EQ(wideAfter.size(), narrowAfter.size());
  for (size_t b = 0; b < wideAfter.size(); ++b) {
    if (spec(b).role == plan::Role::Scratch)
      continue;
    pb::DType type = narrow.bounds[b].type;
    Tensor want = wideBuilt.unpack(b, bounds[b].before,
                                   reference.bounds[b].type, wideAfter[b]);
    Tensor got = narrowBuilt.unpack(b, bounds[b].before, type, narrowAfter[b]);
    for (size_t i = 0; i < got.values.size(); ++i) {
      double value = want.values[i];
      // What an update publishes has a rounding of its own.
      double rounded = type != pb::BF16 ? value
                       : spec(b).role == plan::Role::Compute
                           ? double(SplitFloat(float(value)).high)
                           : double(BFloat16(value));
      // Each of the additions of a result that accumulates rounds.
      double slack = type == pb::BF16 && spec(b).accumulable && repeat > 1
                         ? std::fabs(value) / 256
                         : 0;
      // And what sums of another order differ by, which is no more than what
      // this case allows, may reach over a tie.
      if (narrowUnits() > 0 && limit > 0)
        slack +=
            limit * (1 + std::fabs(value)) +
            (type == pb::BF16 ? narrowUnits() * std::fabs(value) / 128 : 0);
      if (got.values[i] == rounded ||
          (std::isnan(value) && std::isnan(got.values[i])))
        continue;
      ASSERT_LE(std::fabs(got.values[i] - rounded), slack)
          << "operand " << spec(b).name << " element " << i << ": "
          << got.values[i] << " instead of " << value << ", rounded "
          << rounded;
    }
  }
}

void KernelCase::check() const {
  bool accumulates = false, isFloat = false, updates = false;
  for (size_t i = 0; i < bounds.size(); ++i) {
    accumulates |= spec(i).accumulable;
    updates |= spec(i).access == plan::Access::ReadWrite &&
               spec(i).role != plan::Role::Scratch;
    isFloat |= bounds[i].type == pb::F32;
  }
  // What writes over what it read has another input the next time.
  accumulates &= !updates;
  run(0, 1);
  run(3, 1);
  if (accumulates) {
    run(0, 3);
    run(5, 2);
  }
  for (bool keepGradients : {false, true}) {
    if (!isFloat)
      continue;
    runBfloat16(3, 1, keepGradients);
    if (accumulates)
      runBfloat16(0, 2, keepGradients);
  }
}

std::vector<Tensor> KernelCase::results() const {
  Built built = build(HostPlan(), 0, 1);
  std::vector<std::vector<std::byte>> after = execute(built);
  std::vector<Tensor> all;
  for (size_t i = 0; i < after.size(); ++i)
    all.push_back(built.unpack(i, bounds[i].before, bounds[i].type, after[i]));
  all.resize(bounds.size());
  return all;
}

std::vector<Tensor> KernelCase::runOn(
    const std::vector<std::pair<std::string, uint64_t>> &axes) const {
  Built built = build(HostPlan(axes), 0, 1);
  uint64_t ranks = 1;
  for (const auto &[name, degree] : axes)
    ranks *= degree;
  std::vector<Tensor> results;
  size_t last = bounds.size() - 1;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    auto backend = backendUnderTest(built.plan.plan, rank);
    for (size_t i = 0; i < bounds.size(); ++i)
      if (bounds[i].read)
        write(*backend, rank, static_cast<uint32_t>(i),
              pack(bounds[i].before, bounds[i].type, built.pitches[i]));
    Status status = backend->runStep(0, nullptr);
    EXPECT_TRUE(status.isOk()) << status.message();
    results.push_back(built.unpack(last, bounds[last].before, bounds[last].type,
                                   read<std::byte>(*backend, rank,
                                                   static_cast<uint32_t>(last),
                                                   built.bytes[last])));
  }
  return results;
}
