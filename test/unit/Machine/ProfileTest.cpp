//===- ProfileTest.cpp - Profiles are read strictly and price sanely ------===//

#include "gtp/Machine/Profile.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>

using namespace gtp::machine;

static Profile builtin(const std::string &name) {
  auto profile = Profile::load(name);
  EXPECT_TRUE(profile.isOk()) << profile.message();
  return profile.isOk() ? *profile : Profile();
}

/// The text of the H200 profile with one thing replaced.
static std::string edited(const std::string &from, const std::string &to) {
  std::string text(*Profile::builtinText("h200"));
  size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return text.replace(position, from.size(), to);
}

static std::string parseError(const std::string &text) {
  return Profile::parse(text).message();
}

TEST(Profile, BuiltinsLoad) {
  EXPECT_EQ(Profile::builtinNames(),
            (std::vector<std::string>{"cpu", "gb200", "h100", "h200"}));
  for (const std::string &name : Profile::builtinNames()) {
    Profile profile = builtin(name);
    EXPECT_EQ(profile.profileName, name);
    EXPECT_EQ(profile.text, *Profile::builtinText(name));
    EXPECT_GT(profile.memoryBytes, profile.overheadBytes(8));
  }
}

TEST(Profile, ErrorsSayWhereAndWhatWouldWork) {
  EXPECT_EQ(parseError(edited("\"bytes\": 149250113536", "\"bytes\": -1")),
            "memory.bytes: found -1, expected an integer from 1 to 2^50");
  EXPECT_EQ(parseError(edited("\"bytes\": 149250113536", "\"bytes\": 1.5")),
            "memory.bytes: found 1.5, expected an integer from 1 to 2^50");
  EXPECT_EQ(
      parseError(edited("\"bytes\": 149250113536", "\"bytes\": "
                                                   "18446744073709551615")),
      "memory.bytes: found 18446744073709551615, expected an integer "
      "from 1 to 2^50");
  EXPECT_EQ(parseError(edited("\"bytes\": 149250113536,", "")),
            "memory.bytes: is missing");
  EXPECT_EQ(parseError(edited("\"launch_ns\"", "\"lunch_ns\"")),
            "compute.launch_ns: is missing");
  EXPECT_EQ(parseError(edited("\"ranks_per_link_domain\"",
                              "\"colour\": 1, \"ranks_per_link_domain\"")),
            "network.colour: is an unknown key; known here: "
            "cross_domain_gb_per_s, cross_domain_latency_ns, links, "
            "ranks_per_link_domain, shared_link_permille, source");
  EXPECT_EQ(
      parseError(edited("\"multiprocessors\": 132", "\"multiprocessors\": 8")),
      "compute.cta_reserve: found 16, expected an integer from 0 to 8");
  EXPECT_EQ(parseError(edited("\"all_gather\"", "\"all_gathre\"")),
            "network.links[0].collective: found 'all_gathre', expected one of "
            "all_gather, reduce_scatter, all_reduce, all_to_all");
  EXPECT_EQ(parseError(edited("\"symmetric\"", "\"copy_engine\"")),
            "network.links[1]: same collective and transport as links[0]");
  EXPECT_EQ(parseError(edited("\"keys\"", "\"sequnce\"")),
            "scratch[1].terms[1].dims: found 'sequnce', expected some of "
            "batch, sequence, sequence_64, keys, keys_128, heads, kv_heads, "
            "head_dim");
  EXPECT_EQ(parseError(edited("\"gb_per_s\": 4250", "\"gb_per_s\": \"fast\"")),
            "memory.gb_per_s: found \"fast\", expected a number from 0.001 to "
            "1e+09");
  EXPECT_EQ(parseError(edited("\"vector_efficiency\": 0.88",
                              "\"vector_efficiency\": 2")),
            "compute.vector_efficiency: found 2, expected a number from 0.001 "
            "to 1");
  EXPECT_EQ(parseError(edited("\"cross_domain_gb_per_s\": 50",
                              "\"cross_domain_gb_per_s\": 0")),
            "network.cross_domain_gb_per_s: found 0, but link domains have 8 "
            "ranks (0 would mean that all ranks are in one)");
  EXPECT_EQ(parseError(edited("\"dtype\": \"f64\"", "\"dtype\": \"f64\", "
                                                    "\"kernel\": \"x\"")),
            "compute.rates: no rate for f64 without a kernel");
  EXPECT_EQ(
      parseError(edited("\"graph_bytes\"", "\"bytes\": 3, \"graph_bytes\"")),
      "has the key 'bytes' twice");
  EXPECT_EQ(parseError(edited("\"name\": \"h200\"", "\"name\": 200")),
            "name: found 200, expected text");
  EXPECT_EQ(parseError("[]"), "found a list, expected an object");
  EXPECT_EQ(parseError("{\"name\": \"x\", \"memory\": 3}"),
            "memory: found 3, expected an object");
  EXPECT_EQ(parseError(std::string(100000, '[')),
            "nests deeper than 16 levels");
  EXPECT_EQ(parseError(edited("", "") + std::string(1, '\0') + "and more")
                .rfind("is not JSON: a NUL at byte ", 0),
            0u);
  EXPECT_EQ(parseError("{\"name\": ").rfind("is not JSON: parse error", 0), 0u);
  EXPECT_EQ(parseError(edited("\"shared_link_permille\": ",
                              "\"shared_link_permille\": 1")),
            "network.shared_link_permille: found 1620, expected 1 to 1000");
  EXPECT_EQ(parseError(edited("\"slowdown_permille\": ",
                              "\"slowdown_permille\": 1000000")),
            "network.links[0]: contention and slowdown must be at most "
            "1000000 permille");
  EXPECT_EQ(parseError(edited("\"dims\": [", "\"dims\": 3, \"x\": [")),
            "scratch[1].terms[0].dims: found 3, expected a list of names");
  EXPECT_EQ(parseError(edited("\"dims\": [", "\"dims\": [3, ")),
            "scratch[1].terms[0].dims: found 3, expected a name");
  EXPECT_EQ(parseError(edited("\"tiles\": [", "\"tiles\": [{\"rows\": 0}, ")),
            "compute.tiles[0].rows: found 0, expected an integer from 1 to "
            "2^50");
  EXPECT_EQ(parseError(edited("\"links\": [", "\"links\": 3, \"x\": [")),
            "network.links: found 3, expected a list of objects");
  EXPECT_EQ(parseError(edited("\"kernel\": \"attention_grad\"",
                              "\"kernel\": \"attention\"")),
            "compute.rates[4]: same dtype and kernel as rates[3]");
  EXPECT_EQ(parseError(edited(
                "\"scratch\": [",
                "\"scratch\": [{\"source\": \"x\", \"kernel\": "
                "\"attention\", \"constant_bytes\": 0, \"terms\": []}, ")),
            "scratch[1]: same kernel as scratch[0]");
  EXPECT_EQ(parseError(std::string(2 << 20, ' ')),
            "has 2097152 bytes, expected at most 1048576");
}

TEST(Profile, FilesLoad) {
  std::string path = testing::TempDir() + "/gtp-profile-test.json";
  std::ofstream(path) << *Profile::builtinText("h100");
  EXPECT_EQ(Profile::load(path)->profileName, "h100");
  std::ofstream(path) << "{}";
  EXPECT_EQ(Profile::load(path).message(),
            "target '" + path + "': name: is missing");
  std::remove(path.c_str());
  std::ofstream(path) << std::string(2 << 20, ' ');
  EXPECT_EQ(Profile::load(path).message(),
            "target '" + path +
                "' has more than 1048576 bytes, which is no profile");
  std::remove(path.c_str());
  EXPECT_EQ(Profile::load("h300").message(),
            "target 'h300' cannot be read as a file; expected cpu, gb200, "
            "h100, h200, or a profile in JSON");
  EXPECT_EQ(Profile::load(testing::TempDir()).message(),
            "target '" + testing::TempDir() +
                "' is empty or no file; expected cpu, gb200, h100, h200, or a "
                "profile in JSON");
}

/// Any damage is an error or a profile, never a crash.
TEST(Profile, DamagedTextIsHandled) {
  std::mt19937 random(1);
  std::string text(*Profile::builtinText("cpu"));
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = text;
    switch (random() % 3) {
    case 0:
      damaged.resize(random() % damaged.size());
      break;
    case 1:
      damaged[random() % damaged.size()] ^= 1 << random() % 8;
      break;
    case 2:
      damaged.insert(random() % damaged.size(), "99999999999999999999e999");
      break;
    }
    auto profile = Profile::parse(damaged);
    if (profile.isOk())
      profile->kernelNs({"attention", Resource::Matrix, DType::BF16, 1, 1});
    else
      EXPECT_FALSE(profile.message().empty());
  }
}

/// The measurements that the H200 profile was made from.
TEST(Profile, H200MatchesMeasurements) {
  Profile h200 = builtin("h200");
  Group two = h200.group(2, 1, 2);
  auto us = [&](CollectiveKind kind, Transport transport, int64_t mib) {
    return double(h200.collectiveNs(kind, mib << 20, two, transport)) / 1000;
  };
  EXPECT_NEAR(us(CollectiveKind::AllGather, Transport::CopyEngine, 512), 711,
              7);
  EXPECT_NEAR(us(CollectiveKind::AllGather, Transport::CopyEngine, 32), 68, 7);
  EXPECT_NEAR(us(CollectiveKind::AllGather, Transport::Symmetric, 128), 198, 4);
  EXPECT_NEAR(us(CollectiveKind::AllGather, Transport::Ring, 512), 1075, 11);
  // Of float32 440, of bf16 475.
  EXPECT_NEAR(us(CollectiveKind::ReduceScatter, Transport::Symmetric, 256), 458,
              18);
  EXPECT_NEAR(us(CollectiveKind::ReduceScatter, Transport::CopyEngine, 256),
              542, 5);
  EXPECT_NEAR(us(CollectiveKind::ReduceScatter, Transport::Pairwise, 256), 910,
              9);
  EXPECT_NEAR(us(CollectiveKind::ReduceScatter, Transport::Ring, 128), 331, 4);
  auto price = h200.collective(CollectiveKind::AllGather, 512 << 20, two);
  ASSERT_TRUE(price.isOk());
  EXPECT_EQ(price->transport, Transport::CopyEngine);
  EXPECT_NEAR(double(price->contentionNs), 53000, 1000);
  // Own shard of 256 MiB at about 4.2 TB/s.
  EXPECT_NEAR(double(price->ownCopyNs), 128000, 3000);
  // A reduction of 512 MiB beside products of [4096, 14336] and [14336, 4096]:
  // it costs them 0.25 ms, a wave of five in all of its time.
  auto reduction = h200.collective(CollectiveKind::ReduceScatter, 512 << 20,
                                   two, Transport::Symmetric);
  ASSERT_TRUE(reduction.isOk());
  EXPECT_TRUE(reduction->holdsMultiprocessors);
  double beside = double(reduction->durationNs) *
                  (1 + double(reduction->slowdownPermille) / 1000);
  double crowded = double(h200.crowdedPermille(
                       "linear", "bf16[4096, 14336] bf16[4096, 14336] "
                                 "bf16[4096, 4096]")) /
                   1000;
  EXPECT_NEAR(beside * (1 - 1 / (1 + crowded)), 253000, 45000);

  // One Llama-3-8B layer's matrix products forward, at 4096 tokens.
  constexpr int64_t kHidden = 4096;
  int64_t total = 0, flops = 0;
  for (int64_t rows : {6144, 4096, 28672, 14336}) {
    int64_t work = 2 * 4096 * rows * kHidden;
    flops += work;
    total += h200.kernelNs({"linear", Resource::Matrix, DType::BF16, work,
                            2 * (4096 * rows + rows * kHidden)});
  }
  EXPECT_NEAR(double(flops) / double(total) / 1000, 672, 15);

  KernelDims dims{1, 4096, 4096, 32, 8, 128};
  // 1 GiB for the quadratic part.
  EXPECT_NEAR(double(h200.scratchBytes("attention_grad", dims)),
              double(1 << 30), double(1 << 30) / 10);
  // What cuDNN asked for on the machine, deterministic and fast, is little
  // below what the profile allows.
  for (auto [tokens, deterministic, fast] :
       {std::array<int64_t, 3>{77, 2320256, 2533248},
        {513, 32063872, 16875904},
        {1000, 83621120, 32896256},
        {4097, 1192247680, 134775168},
        {8192, 4430233856, 269484288}}) {
    dims.sequence = dims.keys = tokens;
    for (auto [kernel, bytes] : {std::pair("attention_grad", deterministic),
                                 std::pair("attention_grad.fast", fast)}) {
      EXPECT_GE(h200.scratchBytes(kernel, dims), bytes) << tokens;
      EXPECT_LE(h200.scratchBytes(kernel, dims),
                bytes + (2 << 20) + bytes / 100)
          << tokens;
    }
  }
  EXPECT_EQ(h200.scratchBytes("linear", dims), 32 << 20);
  EXPECT_EQ(h200.scratchBytes("swiglu", dims), 0);
}

TEST(Profile, AttentionOnH200IsAsMeasured) {
  Profile h200 = builtin("h200");
  struct Row {
    const char *kernel;
    double flopsOfPair, ms[3]; // at 1024, 4096 and 8192 tokens
  };
  for (const Row &row :
       {Row{"attention", 4, {0.0312, 0.2528, 0.9659}},
        Row{"attention_grad", 10, {0.1091, 0.8955, 3.1926}},
        Row{"attention_grad.fast", 10, {0.1074, 0.7803, 2.8313}}})
    for (size_t i = 0; i < 3; ++i) {
      double tokens = i == 0 ? 1024 : 4096 * double(i);
      auto flops = int64_t(row.flopsOfPair * tokens * tokens * 32 * 128 / 2);
      double ms = double(h200.kernelNs(
                      {row.kernel, Resource::Matrix, DType::BF16, flops, 1})) /
                  1e6;
      EXPECT_NEAR(ms, row.ms[i], 0.06 * row.ms[i])
          << row.kernel << " " << tokens;
    }
}

TEST(Profile, VariantWithoutAnEntryIsTheKernel) {
  Profile h100 = builtin("h100");
  KernelDims dims{1, 4096, 4096, 32, 8, 128};
  EXPECT_EQ(h100.scratchBytes("attention_grad.fast", dims),
            h100.scratchBytes("attention_grad", dims));
  auto ns = [&](const char *kernel) {
    return h100.kernelNs(
        {kernel, Resource::Matrix, DType::BF16, 1000000000, 1});
  };
  EXPECT_EQ(ns("attention_grad.fast"), ns("attention_grad"));
  EXPECT_NE(ns("attention_grad.fast"), ns("linear"));
}

TEST(Profile, CpuScratchIsTheHostKernels) {
  Profile cpu = builtin("cpu");
  KernelDims dims{3, 100, 100, 7, 1, 4};
  EXPECT_EQ(cpu.scratchBytes("attention", dims), 100 * 100 * 4);
  EXPECT_EQ(cpu.scratchBytes("attention_grad", dims), 2 * 100 * 100 * 4);
  auto price =
      cpu.collective(CollectiveKind::AllGather, 1 << 20, cpu.group(8, 1, 64));
  ASSERT_TRUE(price.isOk());
  EXPECT_EQ(price->transport, Transport::Host);
  EXPECT_EQ(cpu.overheadBytes(4), 0);
}

TEST(Profile, GroupsKnowTheirDomains) {
  Profile h200 = builtin("h200");
  auto fewest = [&](int64_t degree, int64_t stride, int64_t ranks) {
    return h200.group(degree, stride, ranks).ranksPerDomain;
  };
  EXPECT_EQ(fewest(8, 1, 8), 8);
  EXPECT_EQ(fewest(8, 1, 64), 8);
  EXPECT_EQ(fewest(4, 2, 64), 4);
  EXPECT_EQ(fewest(8, 8, 64), 1);
  EXPECT_EQ(fewest(16, 1, 64), 8);
  EXPECT_EQ(fewest(16, 4, 64), 2);
  EXPECT_EQ(fewest(6, 1, 6), 6);
  EXPECT_EQ(fewest(6, 1, 24), 2); // ranks 6 to 11 lie in two domains
  EXPECT_EQ(fewest(1, 1, 64), 1);
  EXPECT_FALSE(h200.group(1, 1, 64).spansDomains());
  EXPECT_FALSE(builtin("gb200").group(64, 1, 72).spansDomains());
  EXPECT_FALSE(builtin("cpu").group(512, 1, 1024).spansDomains());
}

TEST(Profile, LeavingADomainCosts) {
  Profile h200 = builtin("h200");
  Group inside = h200.group(8, 1, 64), across = h200.group(8, 8, 64);
  EXPECT_EQ(
      h200.transports(CollectiveKind::ReduceScatter, inside),
      (std::vector<Transport>{Transport::Symmetric, Transport::Ring,
                              Transport::CopyEngine, Transport::Pairwise}));
  EXPECT_EQ(h200.transports(CollectiveKind::ReduceScatter, across),
            (std::vector<Transport>{Transport::Ring, Transport::Pairwise}));
  int64_t bytes = 512 << 20;
  for (CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
        CollectiveKind::AllReduce, CollectiveKind::AllToAll})
    EXPECT_GT(h200.collectiveNs(kind, bytes, across),
              4 * h200.collectiveNs(kind, bytes, inside));
  EXPECT_EQ(h200.collective(CollectiveKind::AllGather, bytes, across,
                            Transport::CopyEngine)
                .message(),
            "profile 'h200' has no price for all_gather by transport "
            "copy_engine across link domains");
  h200.file = "mine.json";
  EXPECT_EQ(h200.title(), "profile 'h200' of mine.json");
  EXPECT_EQ(
      h200.collectiveNs(CollectiveKind::AllGather, bytes, h200.group(1, 1, 8)),
      0);
}

/// More work never takes less time, on any device.
TEST(Profile, PricesAreMonotone) {
  for (const std::string &name : Profile::builtinNames()) {
    Profile profile = builtin(name);
    Group group = profile.group(8, 1, 8);
    for (DType dtype : {DType::F64, DType::F32, DType::BF16})
      for (Resource resource :
           {Resource::Matrix, Resource::Vector, Resource::Memory}) {
        int64_t previous = 0;
        for (int64_t work = 1; work < (int64_t(1) << 50); work *= 4) {
          int64_t ns =
              profile.kernelNs({"linear", resource, dtype, work, work / 100});
          EXPECT_GE(ns, previous);
          EXPECT_GE(ns, profile.launchNs);
          previous = ns;
        }
      }
    for (CollectiveKind kind :
         {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
          CollectiveKind::AllReduce, CollectiveKind::AllToAll}) {
      int64_t previous = 0;
      for (int64_t bytes = 8; bytes < (int64_t(1) << 40); bytes *= 4) {
        int64_t ns = profile.collectiveNs(kind, bytes, group);
        EXPECT_GE(ns, previous);
        previous = ns;
      }
    }
  }
}

/// A profile as gtp-run writes it.
static std::string measuredOn(const std::string &base,
                              const std::string &kernels) {
  return "{\"name\": \"m\", \"base\": \"" + base +
         "\", \"measured\": {\"source\": \"here\", \"step\": {\"step_ns\": 4, "
         "\"compute_ns\": 3, \"contention_ns\": -1, \"stall_ns\": 2}, "
         "\"kernels\": [" +
         kernels +
         "], \"collectives\": [{\"collective\": \"all_gather\", "
         "\"transport\": \"copy_engine\", \"ranks\": 2, \"bytes\": 4096, "
         "\"calls\": 1, \"alone_ns\": 7700, \"beside_ns\": 9900}]}}";
}

TEST(Profile, MeasuredTimesArePreferredOfTheSameCalls) {
  const std::string entry =
      "{\"kernel\": \"linear\", \"operands\": \"bf16[2, 3]\", \"calls\": 4, "
      "\"alone_ns\": 123, \"beside_ns\": 150}";
  auto profile = Profile::parse(measuredOn("h200", entry));
  ASSERT_TRUE(profile.isOk()) << profile.message();
  Profile base = builtin("h200");
  EXPECT_EQ(profile->profileName, "m");
  EXPECT_EQ(profile->memoryBytes, base.memoryBytes);
  KernelWork work = {"linear", Resource::Matrix, DType::BF16, 1000000, 1000};
  work.signature = "bf16[2, 3]";
  EXPECT_EQ(profile->kernelNs(work), 123);
  EXPECT_NE(base.kernelNs(work), 123);
  work.signature = "bf16[2, 400]";
  EXPECT_EQ(profile->kernelNs(work), base.kernelNs(work));
  work.kernel = "linear_dgrad";
  work.signature = "bf16[2, 3]";
  EXPECT_EQ(profile->kernelNs(work), base.kernelNs(work));
  Group two = {2, 2};
  auto price = [&](const Profile &from, int64_t bytes) {
    return from.collectiveNs(CollectiveKind::AllGather, bytes, two,
                             Transport::CopyEngine);
  };
  EXPECT_EQ(price(*profile, 4096), 7700);
  EXPECT_EQ(price(*profile, 16384), price(base, 16384));

  EXPECT_EQ(parseError(measuredOn("h300", entry)),
            "base: found 'h300', expected one of cpu, gb200, h100, h200");
  EXPECT_EQ(parseError(measuredOn("h200", entry + ", " + entry)),
            "measured.kernels: 'linear' of operands 'bf16[2, 3]' is there "
            "twice");
  std::string twice = measuredOn("h200", entry);
  const size_t first = twice.find("{\"collective\"");
  const std::string gather =
      twice.substr(first, twice.find('}', first) + 1 - first);
  twice.insert(first, gather + ", ");
  EXPECT_EQ(parseError(twice),
            "measured.collectives[1]: same collective, transport, ranks and "
            "bytes as collectives[0]");
  // What no schedule could take is wrong here, with its place.
  std::string slow = entry;
  slow.replace(slow.find("123"), 3, "1000000000001");
  EXPECT_EQ(parseError(measuredOn("h200", slow)),
            "measured.kernels[0].alone_ns: found 1000000000001, expected an "
            "integer from 0 to 1000000000000");
}
