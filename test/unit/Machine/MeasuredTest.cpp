//===- MeasuredTest.cpp - Prices of calls like measured ones --------------===//

#include "gtp/Machine/Profile.h"

#include <gtest/gtest.h>

using namespace gtp::machine;

namespace {

/// One class of calls of a kernel, as gtp-run writes it.
std::string kernel(const std::string &name, const std::string &operands,
                   const std::string &times, int calls = 1) {
  return "{\"kernel\": \"" + name + "\", \"operands\": \"" + operands +
         "\", \"calls\": " + std::to_string(calls) + ", " + times + "}";
}

std::string alone(int64_t ns) {
  return "\"alone_ns\": " + std::to_string(ns) +
         ", \"beside_ns\": " + std::to_string(ns);
}

/// Also in a step without collectives and, on the mean, in one with them, of
/// which so much is beside reductions.
std::string sustained(int64_t ns, int64_t mean, int64_t beside) {
  return alone(1) + ", \"sustained_ns\": " + std::to_string(ns) +
         ", \"beside_mean_ns\": " + std::to_string(mean) +
         ", \"beside_gathers_ns\": 0, \"beside_reductions_ns\": " +
         std::to_string(beside);
}

Profile measured(const std::string &kernels,
                 const std::string &collectives = "",
                 const std::string &wholes = "") {
  auto profile = Profile::parse(
      "{\"name\": \"m\", \"base\": \"h200\", \"measured\": {\"source\": "
      "\"here\", \"step\": {\"step_ns\": 4, \"compute_ns\": 3, "
      "\"contention_ns\": -1, \"stall_ns\": 2" +
      wholes + "}, \"kernels\": [" + kernels + "], \"collectives\": [" +
      collectives + "]}}");
  EXPECT_TRUE(profile.isOk()) << profile.message();
  return profile.isOk() ? *profile : Profile();
}

KernelWork work(const char *kernel, const char *operands) {
  KernelWork result = {kernel, Resource::Memory, DType::BF16, 1000000, 1000};
  result.signature = operands;
  return result;
}

} // namespace

TEST(Measured, SizesBetweenAreStraight) {
  Profile profile =
      measured(kernel("swiglu", "bf16[1000]", alone(10000)) + ", " +
               kernel("swiglu", "bf16[3000]", alone(14000)) + ", " +
               kernel("swiglu", "f32[10]", alone(77)));
  auto ns = [&](const char *operands, const char *name = "swiglu") {
    return profile.kernelNs(work(name, operands));
  };
  EXPECT_EQ(ns("bf16[1000]"), 10000);
  EXPECT_EQ(ns("bf16[2000]"), 12000);
  EXPECT_EQ(ns("bf16[2, 1250]"), 13000);
  // Twice the largest takes twice as long; half of the least is half the way to
  // a launch.
  EXPECT_EQ(ns("bf16[6000]"), 28000);
  EXPECT_EQ(ns("bf16[500]"), 2000 + 4000);
  // What is farther, of another type, with more operands, of another kernel, or
  // not to be read costs what the base says.
  const int64_t base = profile.kernelNs(work("swiglu", ""));
  for (const char *other :
       {"bf16[6001]", "bf16[499]", "f64[2000]", "bf16[1000] bf16[1000]",
        "bf16[2000", "bf16[x]", "bf16[-2000]", "bf17[2000]",
        "bf16[2000]bf16[1]", "bf16[20 00", "[2000]", "bf16]2000["})
    EXPECT_EQ(ns(other), base) << other;
  EXPECT_EQ(ns("bf16[2000]", "gelu"), base);
}

TEST(Measured, ProductsGoByFlopsAndAttentionByPairs) {
  // 2 * 1000 * 100 * 10 flops, and twice and four times that.
  Profile profile = measured(
      kernel("linear", "bf16[1000, 10] bf16[100, 10] bf16[1000, 100]",
             alone(100000)) +
      ", " +
      kernel("linear", "bf16[2000, 10] bf16[200, 10] bf16[2000, 200]",
             alone(300000)) +
      ", " +
      kernel("attention_grad", "bf16[1, 64, 8] bf16[1, 64, 4]", alone(50000)));
  EXPECT_EQ(profile.kernelNs(
                work("linear", "bf16[1000, 10] bf16[200, 10] bf16[1000, 200]")),
            100000 + 200000 / 3 + 1);
  // A bias is another kind of call.
  const char *biased = "bf16[1000, 10] bf16[200, 10] bf16[200] bf16[1000, 200]";
  KernelWork plain = work("linear", "");
  EXPECT_EQ(profile.kernelNs(work("linear", biased)), profile.kernelNs(plain));
  KernelWork attention =
      work("attention_grad", "bf16[1, 64, 16] bf16[1, 64, 4]");
  EXPECT_EQ(profile.kernelNs(attention), 100000);
  // A variant that was not measured is as much faster as the base says.
  attention.resource = Resource::Matrix;
  attention.flops = int64_t(1) << 40;
  KernelWork fast = attention;
  fast.kernel = "attention_grad.fast";
  auto base = Profile::load("h200");
  ASSERT_TRUE(base.isOk());
  EXPECT_NEAR(double(profile.kernelNs(fast)),
              100000.0 * double(base->kernelNs(fast)) /
                  double(base->kernelNs(attention)),
              1);
  EXPECT_LT(profile.kernelNs(fast), 100000);
}

TEST(Measured, CollectivesGoByBytes) {
  auto gather = [](int64_t bytes, int64_t ns) {
    return "{\"collective\": \"all_gather\", \"transport\": \"copy_engine\", "
           "\"ranks\": 2, \"bytes\": " +
           std::to_string(bytes) + ", \"calls\": 1, " + alone(ns) + "}";
  };
  Profile profile = measured("", gather(int64_t(1) << 20, 100000) + ", " +
                                     gather(int64_t(3) << 20, 200000));
  auto ns = [&](int64_t bytes, int64_t ranks = 2) {
    return profile.collectiveNs(CollectiveKind::AllGather, bytes,
                                {ranks, ranks}, Transport::CopyEngine);
  };
  const int64_t bytes = int64_t(2) << 20;
  EXPECT_EQ(ns(bytes), 150000);
  auto base = Profile::load("h200");
  EXPECT_EQ(ns(bytes, 4), base->collectiveNs(CollectiveKind::AllGather, bytes,
                                             {4, 4}, Transport::CopyEngine));
}

/// Kernels of a step without collectives take less with events around them.
TEST(Measured, SustainedTimesAddUpToTheStep) {
  const std::string kernels =
      kernel("swiglu", "bf16[1000]", sustained(10000, 10000, 0), 6) + ", " +
      kernel("add", "bf16[1000]", sustained(20000, 20000, 0), 2);
  auto sum = [](const Profile &profile) {
    return 6 * profile.kernelNs(work("swiglu", "bf16[1000]")) +
           2 * profile.kernelNs(work("add", "bf16[1000]"));
  };
  EXPECT_EQ(sum(measured(kernels)), 100000);
  auto with = [&](int64_t ns) {
    return measured(kernels, "",
                    ", \"without_collectives_ns\": " + std::to_string(ns));
  };
  // A launch lies behind each of eight; the rest is of clocks.
  EXPECT_EQ(with(108000).kernelNs(work("add", "bf16[1000]")), 21000);
  EXPECT_EQ(with(136000).kernelNs(work("add", "bf16[1000]")), 2000 + 24000);
  EXPECT_EQ(sum(with(136000)), 136000);
  EXPECT_EQ(with(90000).kernelNs(work("add", "bf16[1000]")), 18000);
}

TEST(Measured, ProductsNeedMoreWavesBesideACollective) {
  auto h200 = Profile::load("h200");
  ASSERT_TRUE(h200.isOk());
  // A gradient of [tokens, features], both by `inner`.
  auto crowded = [&](const Profile &profile, int64_t tokens, int64_t features,
                     const char *name = "linear_dgrad") {
    auto matrix = [](int64_t rows, int64_t columns) {
      return "bf16[" + std::to_string(rows) + ", " + std::to_string(columns) +
             "]";
    };
    return profile.crowdedPermille(name, matrix(tokens, 64) + " " +
                                             matrix(64, features) + " " +
                                             matrix(tokens, features));
  };
  // 132 multiprocessors, 116 beside a collective. 128 tiles of 128 x 256.
  EXPECT_EQ(crowded(*h200, 1024, 4096), 1000);
  // 112 of them, which fit.
  EXPECT_EQ(crowded(*h200, 1024, 3584), 0);
  // 96 of them would leave 36 idle: 128 of 128 x 192.
  EXPECT_EQ(crowded(*h200, 1024, 3072), 1000);
  // 512 tiles, four waves and five.
  EXPECT_EQ(crowded(*h200, 4096, 4096), 250);
  EXPECT_NEAR(double(crowded(*h200, 1 << 20, 1 << 15)), 138, 1);
  EXPECT_EQ(crowded(*h200, 1024, 4096, "swiglu"), 0);
  EXPECT_EQ(h200->crowdedPermille("linear", "bf16[2, 2] bf16[2, 2]"), 0);
  EXPECT_EQ(h200->crowdedPermille("linear", "bf16[2, 2] bf16[2, 2] bf16[]"), 0);
  auto cpu = Profile::load("cpu");
  EXPECT_EQ(crowded(*cpu, 1024, 4096), 0);
  // As many as a schedule takes, and none where none are left.
  Profile odd = *h200;
  odd.multiprocessors = 1 << 20;
  odd.ctaReserve = odd.multiprocessors - 1;
  EXPECT_EQ(crowded(odd, 1 << 20, 1 << 20), 1000000);
  odd.ctaReserve = odd.multiprocessors;
  EXPECT_EQ(crowded(odd, 1 << 20, 1 << 20), 0);
}

/// What the measured step lost, over what links and waves say that it does.
TEST(Measured, ContentionIsAsMuchAsTheMeasuredStepLost) {
  const std::string product =
      "bf16[1024, 64] bf16[64, 4096] bf16[1024, 4096]"; // one wave, or two
  const std::string reduction =
      "{\"collective\": \"reduce_scatter\", \"transport\": \"symmetric\", "
      "\"ranks\": 2, \"bytes\": 4096, \"calls\": 1, \"alone_ns\": 1000, "
      "\"beside_ns\": 2000}";
  auto h200 = Profile::load("h200");
  const int64_t contention =
      h200->contentionNs(CollectiveKind::ReduceScatter, int64_t(1) << 30,
                         {2, 2}, Transport::Symmetric);
  ASSERT_GT(contention, 0);
  struct Case {
    int64_t mean; ///< of 10000 ns
    const char *wholes;
    double scale;
  };
  // All of `mean` is beside reductions and runs at half its speed.
  for (const Case &found :
       {Case{20000, "", 1}, Case{15000, "", 5000 / 7500.0}, Case{9000, "", 0},
        Case{20000,
             ", \"untimed_ns\": 12500, \"without_collectives_ns\": 10000",
             0.25},
        Case{20000,
             ", \"untimed_ns\": 99000, \"without_collectives_ns\": 10000", 1},
        Case{20000, ", \"untimed_ns\": 9000, \"without_collectives_ns\": 10000",
             0}}) {
    Profile profile = measured(
        kernel("linear", product, sustained(10000, found.mean, found.mean)),
        reduction, found.wholes);
    EXPECT_NEAR(double(profile.crowdedPermille("linear", product)),
                1000 * found.scale, 1)
        << found.mean << found.wholes;
    EXPECT_NEAR(double(profile.contentionNs(CollectiveKind::ReduceScatter,
                                            int64_t(1) << 30, {2, 2},
                                            Transport::Symmetric)),
                double(contention) * found.scale, 1)
        << found.mean << found.wholes;
  }
}
