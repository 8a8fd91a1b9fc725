//===- CallOnBoth.cpp - A kernel's call on the host and on CUDA -----------===//

#include "CallOnBoth.h"
#include "BackendUnderTest.h"

#include "gtp/Support/BFloat16.h"

#include <algorithm>
#include <cmath>

using namespace gtp;
using namespace gtp::test;

void Call::fill(rt::Backend &backend) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    auto buffer = static_cast<uint32_t>(i);
    uint64_t state = i * 0x9E3779B97F4A7C15u + 1;
    auto next = [&] { // 24 bits
      state = state * 6364136223846793005u + 1442695040888963407u;
      return state >> 40;
    };
    auto number = [&] {
      if (values[i])
        return float(*values[i]);
      float random = float(int64_t(next()) - (1 << 23)) / (1 << 23);
      return positives.count(i) ? std::fabs(random) : random;
    };
    if (operands[i].dtype() == pb::F32) {
      std::vector<float> data(bytes[i] / 4);
      std::generate(data.begin(), data.end(), number);
      write(backend, 0, buffer, data);
    } else if (operands[i].dtype() == pb::BF16) {
      std::vector<BFloat16> data(bytes[i] / 2);
      std::generate(data.begin(), data.end(),
                    [&] { return BFloat16(number()); });
      write(backend, 0, buffer, data);
    } else if (operands[i].dtype() == pb::I32) {
      std::vector<int32_t> data(bytes[i] / 4);
      uint64_t length = operands[i].dims(operands[i].dims_size() - 1);
      for (size_t at = 0; at < data.size(); ++at)
        if (limits[i])
          data[at] = static_cast<int32_t>(next() % limits[i]);
        else if (at % length != 0)
          data[at] = next() % 40 == 0 ? static_cast<int32_t>(at % length)
                                      : data[at - 1];
      write(backend, 0, buffer, data);
    } else if (operands[i].dtype() == pb::I64) {
      write(backend, 0, buffer,
            std::vector<int64_t>{static_cast<int64_t>(*values[i])});
    } else {
      write(backend, 0, buffer, std::vector<uint8_t>(bytes[i]));
    }
  }
}

std::vector<double> Call::numbersOf(rt::Backend &backend,
                                    uint32_t operand) const {
  if (operands[operand].dtype() == pb::F64)
    return read<double>(backend, 0, operand, bytes[operand] / 8);
  if (operands[operand].dtype() == pb::F32) {
    auto data = read<float>(backend, 0, operand, bytes[operand] / 4);
    return {data.begin(), data.end()};
  }
  auto data = read<BFloat16>(backend, 0, operand, bytes[operand] / 2);
  return {data.begin(), data.end()};
}

void Call::compare(double tolerance) {
  SCOPED_TRACE(name + " of " + plan::describe(operands.front()) + ", result " +
               plan::describe(operands[results.front()]));
  pb::Kernel *kernel =
      plan.kernel(plan.region(pb::Region::ONCE), 0, name, operands);
  for (const auto &[attribute, value] : integers)
    plan.attribute(kernel, attribute)->set_i(value);
  for (const auto &[attribute, value] : reals)
    plan.attribute(kernel, attribute)->set_f(value);
  for (const auto &[attribute, list] : constants) {
    pb::FloatList *values = plan.plan.add_constants();
    values->mutable_values()->Add(list.begin(), list.end());
    plan.attribute(kernel, attribute)
        ->set_constant(static_cast<uint32_t>(plan.plan.constants_size() - 1));
  }
  auto host = makeBackend(plan.plan);
  auto cuda = backendUnderTest(plan.plan);
  for (rt::Backend *backend : {host.get(), cuda.get()}) {
    fill(*backend);
    Status status = backend->runStep(0, nullptr);
    ASSERT_TRUE(status.isOk()) << status.message();
  }
  for (uint32_t result : results) {
    std::vector<double> want = numbersOf(*host, result);
    std::vector<double> got = numbersOf(*cuda, result);
    double largest = 0, difference = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(std::isfinite(want[i]) && std::isfinite(got[i]))
          << "operand " << result << " element " << i << ": " << got[i]
          << " instead of " << want[i];
      largest = std::max(largest, std::fabs(want[i]));
      // A bfloat16 may be the neighbour of what the host rounds to.
      double unit = operands[result].dtype() == pb::BF16
                        ? narrowUnits() * std::fabs(want[i]) / 128
                        : 0;
      difference = std::max(difference, std::fabs(got[i] - want[i]) - unit);
    }
    EXPECT_LE(difference, tolerance * largest) << "operand " << result;
    EXPECT_GT(largest, 0) << "operand " << result;
  }
}
