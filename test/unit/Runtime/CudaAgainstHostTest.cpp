//===- CudaAgainstHostTest.cpp - Kernels at sizes that matter -------------===//
//
// KernelsTest compares with the registry's text on small shapes. Here shapes
// span many blocks and tiles, and do not divide by them; the host backend is
// the reference.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "HostPlan.h"
#include "gtp-rt/CudaBackend.h"
#include "gtp-rt/TuningCache.h"

#include "gtp/Support/BFloat16.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace gtp;
using namespace gtp::test;

namespace {

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
  /// Largest difference, relative to the largest value of the result.
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

class CudaAgainstHost : public testing::Test {
protected:
  void SetUp() override {
    if (std::string reason = whyNotHere(); !reason.empty())
      GTEST_SKIP() << reason;
  }
};

TEST_F(CudaAgainstHost, Linear) {
  for (auto [rows, k, n] : {std::array<uint64_t, 3>{257, 1000, 333},
                            {512, 256, 768},
                            {1, 515, 1031},
                            {40, 264, 50257}}) {
    SCOPED_TRACE(std::to_string(rows) + ", " + std::to_string(k) + ", " +
                 std::to_string(n));
    // Float32 operands and results, bf16 operands and either.
    for (auto [type, result] : {std::pair{pb::F32, pb::F32},
                                {pb::BF16, pb::F32},
                                {pb::BF16, pb::BF16}}) {
      // A float32 sum is off by what grows with the root of its terms; one that
      // differs in its last bits may round to the next bf16.
      auto tolerance = [&, result = result](uint64_t terms) {
        return std::max(2e-5, 1e-6 * std::sqrt(double(terms))) +
               (result == pb::F32 ? 0 : 1.0 / 256);
      };
      Call("linear")
          .type(type)
          .random({rows, k}, 3)
          .random({n, k})
          .type(result)
          .result({rows, n}, 5)
          .compare(tolerance(k));
      Call("linear_dgrad")
          .type(type)
          .random({rows, n}, 1)
          .random({n, k})
          .type(result)
          .result({rows, k})
          .compare(tolerance(n));
      Call("linear_wgrad")
          .type(type)
          .random({rows, n}, 8)
          .random({rows, k})
          .type(result)
          .result({n, k})
          .compare(tolerance(rows));
    }
  }
}

/// A linear of bf16 operands on CUDA with that cache; its result, or the error.
StatusOr<std::vector<float>>
tunedLinear(std::shared_ptr<rt::TuningCache> cache) {
  HostPlan plan;
  uint32_t x = plan.buffer(2 * 256 * 512, pb::Buffer::PERSISTENT);
  uint32_t w = plan.buffer(2 * 384 * 512, pb::Buffer::PERSISTENT);
  uint32_t y = plan.buffer(4 * 256 * 384);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "linear",
              {operand(x, pb::BF16, {256, 512}),
               operand(w, pb::BF16, {384, 512}),
               operand(y, pb::F32, {256, 384})});
  rt::BackendOptions options;
  options.tuningCache = std::move(cache);
  GTP_ASSIGN_OR_RETURN(std::unique_ptr<rt::Backend> backend,
                       rt::createCudaBackend(plan.plan, options, {}));
  std::vector<BFloat16> values(384 * 512);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = BFloat16(float(i % 97) / 97 - 0.5f);
  write(*backend, 0, w, values);
  values.resize(256 * 512);
  write(*backend, 0, x, values);
  GTP_RETURN_IF_ERROR(backend->runStep(0, nullptr));
  return read<float>(*backend, 0, y, 256 * 384);
}

TEST_F(CudaAgainstHost, TunedProducts) {
  auto cache = std::make_shared<rt::TuningCache>();
  auto measured = tunedLinear(cache);
  ASSERT_TRUE(measured.isOk()) << measured.message();
  EXPECT_EQ(cache->size(), 1u);
  const std::string text = cache->text();
  // What is known is not measured again, and gives the same bits.
  auto known = tunedLinear(cache);
  ASSERT_TRUE(known.isOk()) << known.message();
  EXPECT_EQ(cache->text(), text);
  EXPECT_EQ(*known, *measured);
  auto untuned = tunedLinear(nullptr);
  ASSERT_TRUE(untuned.isOk()) << untuned.message();
  for (size_t i = 0; i < untuned->size(); ++i)
    ASSERT_NEAR((*untuned)[i], (*measured)[i], 1e-3) << i;

  // An algorithm that the library does not have.
  std::string bad = text;
  size_t at = bad.find("\"id\":");
  ASSERT_NE(at, std::string::npos) << bad;
  bad.insert(at + 5, "12345");
  auto wrong = rt::TuningCache::parse(bad);
  ASSERT_TRUE(wrong.isOk()) << wrong.message();
  EXPECT_NE(tunedLinear(std::make_shared<rt::TuningCache>(std::move(*wrong)))
                .message()
                .find("the tuning cache's algorithm for the product "
                      "bf16:256x512:512:256 bf16:384x512:512:256:T "
                      "f32:256x384:384:256 is none that cuBLASLt takes: "),
            std::string::npos);
}

struct AttentionCase {
  uint64_t batch, length, heads, kvHeads, head;
  bool causal;
  int64_t window;
  double softcap;
  bool packed = false;
};

TEST_F(CudaAgainstHost, Attention) {
  for (AttentionCase c : {AttentionCase{2, 300, 8, 2, 64, true, 0, 0},
                          AttentionCase{1, 129, 4, 4, 128, true, 50, 0},
                          AttentionCase{1, 97, 2, 1, 256, true, 0, 5},
                          AttentionCase{2, 300, 4, 2, 64, true, 0, 0, true},
                          AttentionCase{2, 131, 2, 2, 80, true, 20, 5, true},
                          AttentionCase{1, 200, 3, 3, 80, false, 0, 0}}) {
    Dims q{c.batch, c.length, c.heads * c.head};
    Dims k{c.batch, c.length, c.kvHeads * c.head};
    Dims lse{c.batch, c.heads, c.length};
    auto attributes = [&](Call &call) {
      if (c.packed)
        call.starts(c.batch, c.length);
      call.integer("heads", int64_t(c.heads))
          .integer("kv_heads", int64_t(c.kvHeads))
          .real("scale", 1 / std::sqrt(double(c.head)))
          .integer("causal", c.causal)
          .integer("window", c.window)
          .real("softcap", c.softcap)
          .compare();
    };
    Call forward("attention");
    forward.random(q, 16).random(k).random(k).result(q).result(lse).scratch(
        c.length * c.length * 4);
    attributes(forward);
    // lse is given, not made: what it is does not matter, only that it is one.
    Call backward("attention_grad");
    backward.random(q).random(q, 16).random(k).random(k).random(q);
    backward.random(lse).result(q).result(k, 2).result(k).scratch(c.length *
                                                                  c.length * 8);
    attributes(backward);
  }
}

/// Both types of tensors, of which a plan may have either.
const pb::DType kTypes[] = {pb::F32, pb::BF16};

TEST_F(CudaAgainstHost, Norms) {
  // Whole rows in registers, of a warp and of a block, in packs and not; rows
  // that are too long for that; and gaps that break the alignment.
  for (pb::DType type : kTypes)
    for (auto [rows, groups, features, gap] :
         {std::array<uint64_t, 4>{1000, 1, 4096, 0},
          {333, 1, 777, 0},
          {600, 8, 128, 64},
          {70, 3, 80, 3},
          {40, 1, 20000, 0}}) {
      Dims x{rows, groups * features};
      for (const char *name : {"rms_norm", "layer_norm"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random({features})
            .result(x, gap)
            .real("eps", 1e-5)
            .compare();
      for (const char *name : {"rms_norm_grad", "layer_norm_grad"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random(x)
            .random({features})
            .result(x)
            .type(pb::F32)
            .result({features})
            .real("eps", 1e-5)
            .compare();
      for (const char *name : {"add_rms_norm", "add_layer_norm"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random(x)
            .random({features})
            .result(x)
            .result(x, gap)
            .real("eps", 1e-5)
            .compare();
      // A neighbour of what is added to the residual is no neighbour of the
      // sum.
      for (const char *name : {"rms_norm_grad_add", "layer_norm_grad_add"})
        Call(name)
            .type(type)
            .random(x, gap)
            .random(x)
            .random({features})
            .random(x, gap)
            .result(x)
            .type(pb::F32)
            .result({features})
            .real("eps", 1e-5)
            .compare(type == pb::BF16 ? 0.01 : 2e-5);
    }
}

TEST_F(CudaAgainstHost, Elementwise) {
  for (pb::DType type : kTypes)
    for (auto [rows, columns, gap] : {std::array<uint64_t, 3>{1000, 1536, 512},
                                      {333, 777, 0},
                                      {64, 1001, 7},
                                      {1, 3, 0}}) {
      Dims x{rows, columns};
      Call("swiglu")
          .type(type)
          .random(x, gap)
          .random(x, gap)
          .result(x)
          .compare();
      Call("swiglu_grad")
          .type(type)
          .random(x)
          .random(x, gap)
          .random(x, gap)
          .result(x, gap)
          .result(x, gap)
          .compare();
      Call("gelu")
          .type(type)
          .random(x, gap)
          .result(x)
          .integer("approximate", 1)
          .compare();
      Call("bias_gelu")
          .type(type)
          .random(x, gap)
          .random({columns})
          .result(x)
          .result(x, gap)
          .integer("approximate", 1)
          .compare();
      Call("add").type(type).random(x, gap).random(x).result(x).compare(0);
      Call("add").type(type).random(x).random(x).random(x).result(x).compare(0);
      Call("mul").type(type).random(x).random(x, gap).result(x).compare(0);
      Call("cast").type(type).random(x, gap).type(pb::BF16).result(x).compare(
          0);
      Call("cast").type(type).random(x).type(pb::F32).result(x, gap).compare(0);
    }
}

/// As the norm of all gradients of a large model has.
TEST_F(CudaAgainstHost, ManyAddends) {
  Call call("add");
  call.type(pb::BF16);
  for (int i = 0; i < 300; ++i)
    call.random({2, 5}, i % 3);
  call.result({2, 5}).compare(0);
}

TEST_F(CudaAgainstHost, Rope) {
  for (pb::DType type : kTypes)
    for (auto [heads, head, turned, gap] :
         {std::array<uint64_t, 4>{8, 128, 64, 1024},
          {3, 64, 8, 0},
          {5, 20, 6, 0},
          {2, 128, 64, 3}}) {
      Call call("rope");
      std::vector<double> frequencies;
      for (uint64_t i = 0; i < turned; ++i)
        frequencies.push_back(std::pow(0.9, double(i)));
      call.type(type)
          .random({2, 150, heads * head}, gap)
          .result({2, 150, heads * head})
          .integer("head_dim", int64_t(head))
          .integer("inverse", 1)
          .constant("frequencies", frequencies)
          .compare();
    }
}

TEST_F(CudaAgainstHost, Embeddings) {
  for (pb::DType type : kTypes)
    for (uint64_t columns : {259, 1024}) {
      Call("embedding")
          .ids({4, 1000}, 701)
          .type(type)
          .random({701, columns})
          .result({4, 1000, columns})
          .compare(0);
      // Sums run in the same order, so that they are the same.
      for (pb::DType gradient : kTypes)
        Call("embedding_grad")
            .type(type)
            .random({4, 1000, columns})
            .ids({4, 1000}, 701)
            .type(gradient)
            .result({701, columns})
            .compare(0);
      Call("bias_grad")
          .type(type)
          .random({5003, columns})
          .type(pb::F32)
          .result({columns})
          .compare(1e-6);
    }
  Call("positions_grad").random({7, 130, 65}).result({200, 65}).compare(1e-6);
  Call("positions_grad")
      .random({7, 130, 65})
      .result({200, 65})
      .starts(7, 130)
      .compare(1e-6);
  for (pb::DType type : kTypes) {
    Call("add_positions")
        .type(type)
        .random({7, 130, 65})
        .random({200, 65})
        .result({7, 130, 65})
        .compare(0);
    Call("add_positions")
        .type(type)
        .random({7, 130, 64})
        .random({200, 64})
        .result({7, 130, 64})
        .starts(7, 130)
        .compare(0);
  }
}

TEST_F(CudaAgainstHost, Loss) {
  for (pb::DType type : kTypes)
    for (uint64_t classes : {50257, 32000}) {
      Call("cross_entropy")
          .type(type)
          .random({500, classes})
          .ids({500}, classes)
          .number(500, pb::I64)
          .type(pb::F32)
          .result({})
          .compare(1e-6);
      Call("cross_entropy_grad")
          .type(type)
          .random({500, classes})
          .ids({500}, classes)
          .number(500, pb::I64)
          .number(1)
          .result({500, classes})
          .compare(1e-5);
      Call("cross_entropy_in_place")
          .type(type)
          .result({500, classes})
          .ids({500}, classes)
          .number(500, pb::I64)
          .number(1)
          .type(pb::F32)
          .result({})
          .compare(1e-5);
    }
}

TEST_F(CudaAgainstHost, Updates) {
  for (pb::DType gradient : kTypes)
    for (uint64_t count : {100000, 4099}) {
      Call call("adamw");
      call.result({count}).result({count}).result({count}).positive();
      call.type(gradient);
      call.random({count}).numbers({8}, 0.5).number(0.25);
      call.type(pb::BF16).result({count}).integer("decay", 1).compare(1e-6);
      Call("sum_squares")
          .type(gradient)
          .random({count})
          .wideResult()
          .compare(1e-12);
    }
}

/// What the registry allows and CUDA does not do.
TEST_F(CudaAgainstHost, RefusesByName) {
  auto refusal = [](const pb::Plan &plan) {
    return rt::createCudaBackend(plan, {}, {}).status().message();
  };
  HostPlan mixed;
  mixed.kernel(mixed.region(pb::Region::ONCE), 0, "linear",
               {operand(mixed.buffer(64), pb::F32, {4, 4}),
                operand(mixed.buffer(64), pb::F32, {4, 4}),
                operand(mixed.buffer(32), pb::BF16, {4, 4})});
  EXPECT_NE(refusal(mixed.plan)
                .find("is bf16; cuBLASLt has no product of f32 "
                      "operands that rounds to it; compile with "
                      "--grad-dtype=f32"),
            std::string::npos)
      << refusal(mixed.plan);
  HostPlan wide;
  wide.kernel(wide.region(pb::Region::ONCE), 0, "linear",
              {operand(wide.buffer(128), pb::F64, {4, 4}),
               operand(wide.buffer(128), pb::F64, {4, 4}),
               operand(wide.buffer(128), pb::F64, {4, 4})});
  EXPECT_NE(
      refusal(wide.plan).find("is neither f32 nor bf16, which the cuda backend "
                              "multiplies in"),
      std::string::npos)
      << refusal(wide.plan);
  HostPlan product;
  auto x = [&] { return operand(product.buffer(128), pb::F64, {16}); };
  product.kernel(product.region(pb::Region::ONCE), 0, "mul", {x(), x(), x()});
  EXPECT_NE(refusal(product.plan)
                .find("operand 'a' f64[16] is neither f32 nor bf16, which the "
                      "cuda backend computes in"),
            std::string::npos)
      << refusal(product.plan);
}

/// Three streams, a dependency between each two, in a body of three iterations:
/// what a replayed graph gives must be what issued operations give.
TEST_F(CudaAgainstHost, ReplayEqualsEager) {
  HostPlan plan;
  uint32_t x = plan.buffer(4 * 1000, pb::Buffer::PERSISTENT);
  uint32_t a = plan.buffer(4 * 1000), b = plan.buffer(4 * 1000);
  auto of = [](uint32_t buffer) { return operand(buffer, pb::F32, {10, 100}); };
  pb::Region *region = plan.region(pb::Region::BODY, 3);
  pb::Kernel *first = plan.kernel(region, 0, "scale", {of(x), of(a)});
  plan.attribute(first, "factor")->set_f(0.75);
  plan.kernel(region, 1, "mul", {of(a), of(a), of(b)});
  HostPlan::waitFor(region, 0);
  plan.kernel(region, 2, "add", {of(a), of(b), of(x)});
  HostPlan::waitFor(region, 1);
  HostPlan::waitFor(region, 0);

  std::vector<float> start(1000);
  for (size_t i = 0; i < start.size(); ++i)
    start[i] = float(i) / 1000;
  auto host = makeBackend(plan.plan);
  auto cuda = backendUnderTest(plan.plan);
  for (rt::Backend *backend : {host.get(), cuda.get()})
    write(*backend, 0, x, start);
  // The third and later steps of CUDA are replays.
  for (unsigned step = 1; step <= 5; ++step) {
    for (rt::Backend *backend : {host.get(), cuda.get()}) {
      Status status = backend->runStep(0, nullptr);
      ASSERT_TRUE(status.isOk()) << status.message();
    }
    EXPECT_EQ(read<float>(*cuda, 0, x, 1000), read<float>(*host, 0, x, 1000))
        << "step " << step;
  }
}

} // namespace
