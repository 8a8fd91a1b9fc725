//===- CudaAttentionTest.cpp - cuDNN's attention against the host's -------===//
//
// bf16 attention and its gradient on packed q, k and v, as plans have them; the
// host backend is the reference. Which kernels compute it is what the backend
// says of itself.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "HostPlan.h"
#include "gtp-rt/CudaBackend.h"
#include "gtp/Support/BFloat16.h"

#include <cmath>

using namespace gtp;
using namespace gtp::test;

namespace {

struct Case {
  uint64_t batch, length, heads, kvHeads, head;
  uint64_t window = 0;
  bool causal = true;
  double softcap = 0;

  uint64_t tokens() const { return batch * length; }
  uint64_t features() const { return heads * head; }
  uint64_t keyFeatures() const { return kvHeads * head; }
  uint64_t packed() const { return features() + 2 * keyFeatures(); }
  /// As the profiles bound cuDNN's, and what the host needs.
  uint64_t scratch() const {
    uint64_t rows = batch * heads * length;
    return (1 << 20) + rows * (2 * (length + 256) + 4 * head + 8) +
           8 * length * length;
  }
};

/// `attention` and `attention_grad` of one call.
struct AttentionPlan {
  HostPlan plan;
  uint32_t qkv, out, lse, dout, dqkv;

  AttentionPlan(const Case &c, bool fast, uint64_t gradientScratch) {
    auto persistent = [&](uint64_t bytes) {
      return plan.buffer(bytes, pb::Buffer::PERSISTENT);
    };
    qkv = persistent(c.tokens() * c.packed() * 2);
    out = persistent(c.tokens() * c.features() * 2);
    lse = persistent(c.batch * c.heads * c.length * 4);
    dout = persistent(c.tokens() * c.features() * 2);
    dqkv = persistent(c.tokens() * c.packed() * 2);
    uint32_t scratch = plan.buffer(c.scratch());
    auto whole = [&](uint32_t buffer) {
      return operand(buffer, pb::BF16, {c.batch, c.length, c.features()});
    };
    auto part = [&](uint32_t buffer, uint64_t first, uint64_t features) {
      pb::Operand result =
          operand(buffer, pb::BF16, {c.batch, c.length, features});
      result.set_offset(first * 2);
      result.set_pitch(c.packed());
      return result;
    };
    auto q = [&](uint32_t buffer) { return part(buffer, 0, c.features()); };
    auto k = [&](uint32_t buffer) {
      return part(buffer, c.features(), c.keyFeatures());
    };
    auto v = [&](uint32_t buffer) {
      return part(buffer, c.features() + c.keyFeatures(), c.keyFeatures());
    };
    pb::Operand norm = operand(lse, pb::F32, {c.batch, c.heads, c.length});
    pb::Region *region = plan.region(pb::Region::ONCE);
    pb::Kernel *forward =
        plan.kernel(region, 0, "attention",
                    {q(qkv), k(qkv), v(qkv), whole(out), norm,
                     operand(scratch, pb::U8, {c.scratch()})});
    pb::Kernel *backward = plan.kernel(
        region, 0, "attention_grad",
        {whole(dout), q(qkv), k(qkv), v(qkv), whole(out), norm, q(dqkv),
         k(dqkv), v(dqkv), operand(scratch, pb::U8, {gradientScratch})});
    for (pb::Kernel *kernel : {forward, backward}) {
      auto integer = [&](const char *name, uint64_t value) {
        plan.attribute(kernel, name)->set_i(static_cast<int64_t>(value));
      };
      integer("heads", c.heads);
      integer("kv_heads", c.kvHeads);
      integer("causal", c.causal);
      integer("window", c.window);
      plan.attribute(kernel, "scale")->set_f(1 / std::sqrt(double(c.head)));
      plan.attribute(kernel, "softcap")->set_f(c.softcap);
    }
    if (fast)
      plan.attribute(backward, "fast")->set_i(1);
  }

  /// Random values in [-range, range].
  static std::vector<BFloat16> random(uint64_t count, float range,
                                      uint64_t seed) {
    std::vector<BFloat16> values;
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    for (uint64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      values.emplace_back(range *
                          (static_cast<float>(state >> 40) / (1 << 23) - 1));
    }
    return values;
  }

  void run(rt::Backend &backend, const Case &c) const {
    // Scores that differ, so that a key too many or too few is seen.
    write(backend, 0, qkv, random(c.tokens() * c.packed(), 2, 1));
    write(backend, 0, dout, random(c.tokens() * c.features(), 1, 2));
    Status status = backend.runStep(0, nullptr);
    ASSERT_TRUE(status.isOk()) << status.message();
  }
};

template <typename T>
void expectClose(const std::vector<T> &got, const std::vector<T> &want,
                 double tolerance, const char *what) {
  double largest = 0, difference = 0;
  size_t where = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::fabs(double(want[i])));
    double d = std::fabs(double(got[i]) - double(want[i]));
    // Of a NaN too.
    if (!(d <= difference)) {
      difference = d;
      where = i;
    }
  }
  EXPECT_LE(difference, tolerance * largest) << what << ", element " << where;
  EXPECT_GT(largest, 0) << what;
}

std::unique_ptr<rt::Backend> makeCuda(const pb::Plan &plan) {
  auto backend = rt::createCudaBackend(plan, {}, {});
  if (!backend.isOk()) {
    ADD_FAILURE() << backend.message();
    std::abort();
  }
  return std::move(*backend);
}

/// Runs the case on both; `expected` is what the summary must have of it.
void compare(const Case &c, bool fast, const std::string &expected) {
  SCOPED_TRACE("length " + std::to_string(c.length) + ", head " +
               std::to_string(c.head) + (fast ? ", fast" : ""));
  AttentionPlan plan(c, fast, c.scratch());
  auto host = makeBackend(plan.plan.plan);
  auto cuda = makeCuda(plan.plan.plan);
  EXPECT_NE(cuda->attention().find(expected), std::string::npos)
      << cuda->attention();
  plan.run(*host, c);
  plan.run(*cuda, c);
  // cuDNN rounds probabilities to bf16 before it uses them.
  auto same = [&](uint32_t buffer, uint64_t count, const char *what) {
    expectClose(read<BFloat16>(*cuda, 0, buffer, count),
                read<BFloat16>(*host, 0, buffer, count), 0.02, what);
  };
  same(plan.out, c.tokens() * c.features(), "out");
  same(plan.dqkv, c.tokens() * c.packed(), "gradient");
  uint64_t rows = c.batch * c.heads * c.length;
  expectClose(read<float>(*cuda, 0, plan.lse, rows),
              read<float>(*host, 0, plan.lse, rows), 1e-3, "lse");
  if (fast)
    return;
  // The third and fourth are replays.
  auto bytes = [&] {
    return read<uint16_t>(*cuda, 0, plan.dqkv, c.tokens() * c.packed());
  };
  std::vector<uint16_t> first = bytes();
  for (unsigned again = 0; again < 3; ++again) {
    plan.run(*cuda, c);
    EXPECT_EQ(bytes(), first) << "run " << again + 2;
  }
}

class CudaAttention : public TestOnBackend {};

TEST_F(CudaAttention, ByCudnn) {
  for (const Case &c :
       {Case{1, 1024, 32, 8, 128}, Case{2, 77, 4, 2, 64},
        Case{1, 129, 4, 4, 128}, Case{2, 300, 8, 2, 128, 50},
        Case{1, 640, 4, 1, 64, 128}, Case{1, 200, 3, 3, 64, 0, false},
        Case{1, 64, 2, 1, 72}}) {
    compare(c, false, "gradient cuDNN 9.");
    compare(c, true, ", fast");
  }
}

TEST_F(CudaAttention, ByOwnKernels) {
  for (const Case &c :
       {Case{2, 77, 7, 7, 10}, Case{1, 96, 4, 2, 64, 0, true, 5}})
    compare(c, false,
            c.softcap > 0 ? "gradient own kernel, deterministic (soft-capped"
                          : "gradient own kernel, deterministic (heads of 10");
}

TEST_F(CudaAttention, TooLittleScratch) {
  Case c{1, 256, 4, 2, 64};
  AttentionPlan plan(c, false, 1000);
  std::string message =
      rt::createCudaBackend(plan.plan.plan, {}, {}).status().message();
  EXPECT_NE(message.find("bytes of scratch for it and the plan has 1000: "
                         "compile for a target"),
            std::string::npos)
      << message;
}

} // namespace
