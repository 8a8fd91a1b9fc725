//===- MemoryTest.cpp - Live bytes are exact, packings are sound ----------===//

#include "TrainingStep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

using namespace gtp::planning;

static MemoryProblem randomProblem(std::mt19937 &random, unsigned numBuffers) {
  MemoryProblem problem;
  unsigned numRegions = 1 + random() % 3;
  for (unsigned r = 0; r < numRegions; ++r) {
    unsigned numStreams = 1 + random() % 3;
    MemoryRegion region{OrderGraph(numStreams), random() % 3 == 0};
    unsigned numOps = 1 + random() % 12;
    for (OpIndex op = 0; op < numOps; ++op) {
      std::vector<OpIndex> after;
      while (op && random() % 10 < 4)
        after.push_back(random() % op);
      region.order.addOp(random() % numStreams, after);
    }
    problem.regions.push_back(std::move(region));
  }
  for (unsigned i = 0; i < numBuffers; ++i) {
    MemoryBuffer buffer;
    buffer.size = random() % 5 ? 256 * (1 + random() % 9) - random() % 256 : 0;
    bool repeats = false;
    for (uint32_t r = 0; r < numRegions; ++r) {
      if (random() % numRegions)
        continue;
      MemoryAccess access{r, {}};
      for (OpIndex op = 0; op < problem.regions[r].order.size(); ++op)
        if (random() % 5 == 0)
          access.ops.push_back(op);
      if (access.ops.empty())
        continue;
      repeats |= problem.regions[r].repeated;
      buffer.accesses.push_back(std::move(access));
    }
    buffer.persistent = random() % 10 == 0;
    buffer.liveIn = random() % 10 == 0;
    buffer.liveOut = random() % 10 == 0;
    buffer.carried = repeats && random() % 4 == 0;
    if (buffer.accesses.empty() && !buffer.persistent && !buffer.liveIn)
      buffer.liveOut = true;
    problem.buffers.push_back(std::move(buffer));
  }
  return problem;
}

/// Straight from the definition, all accesses against all accesses.
static bool orderedByDefinition(const MemoryProblem &problem, uint32_t a,
                                uint32_t b) {
  const MemoryBuffer &x = problem.buffers[a], &y = problem.buffers[b];
  if (x.persistent || y.persistent || x.liveOut || y.liveIn ||
      x.accesses.empty() || y.accesses.empty())
    return false;
  auto crosses = [](const MemoryBuffer &buffer) {
    return buffer.carried || buffer.liveIn || buffer.liveOut ||
           buffer.accesses.size() > 1;
  };
  for (const MemoryAccess &i : x.accesses)
    for (const MemoryAccess &j : y.accesses) {
      if (i.region > j.region)
        return false;
      if (i.region < j.region)
        continue;
      const MemoryRegion &region = problem.regions[i.region];
      // The first of several iterations of one would come after the last of the
      // other.
      if (region.repeated && (crosses(x) || crosses(y)))
        return false;
      for (OpIndex from : i.ops)
        for (OpIndex to : j.ops)
          if (!region.order.happensBefore(from, to))
            return false;
    }
  return true;
}

static uint64_t maxLiveByBruteForce(const MemoryProblem &problem) {
  unsigned n = problem.buffers.size();
  std::vector<uint32_t> clash(n);
  for (unsigned a = 0; a < n; ++a)
    for (unsigned b = 0; b < n; ++b)
      if (a != b && !orderedByDefinition(problem, a, b) &&
          !orderedByDefinition(problem, b, a))
        clash[a] |= 1u << b;
  uint64_t best = 0;
  for (uint32_t set = 0; set < (1u << n); ++set) {
    uint64_t bytes = 0;
    bool clique = true;
    for (unsigned a = 0; a < n && clique; ++a)
      if (set >> a & 1) {
        clique = (set & ~clash[a]) == (1u << a);
        bytes += alignBytes(problem.buffers[a].size);
      }
    if (clique)
      best = std::max(best, bytes);
  }
  return best;
}

TEST(MemoryProblem, OrderIsAsDefined) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    MemoryProblem problem = randomProblem(random, 12);
    ASSERT_TRUE(problem.check().isOk()) << problem.check().message();
    for (uint32_t a = 0; a < 12; ++a)
      for (uint32_t b = 0; b < 12; ++b)
        ASSERT_EQ(problem.ordered(a, b), orderedByDefinition(problem, a, b))
            << a << " " << b << "\n"
            << problem.print();
  }
}

TEST(MemoryProblem, MaxLiveBytesIsExact) {
  std::mt19937 random(2);
  for (int round = 0; round < 1500; ++round) {
    MemoryProblem problem = randomProblem(random, 1 + random() % 13);
    ASSERT_EQ(problem.maxLiveBytes(), maxLiveByBruteForce(problem))
        << problem.print();
  }
}

TEST(MemoryProblem, SolutionsVerify) {
  std::mt19937 random(3);
  uint64_t arena = 0, live = 0;
  for (int round = 0; round < 300; ++round) {
    MemoryProblem problem = randomProblem(random, 5 + random() % 60);
    MemoryProblem::Solution solution = problem.solve();
    gtp::Status status = problem.verify(solution);
    ASSERT_TRUE(status.isOk()) << status.message() << "\n"
                               << problem.print(&solution);
    EXPECT_EQ(solution.maxLiveBytes, problem.maxLiveBytes());
    arena += solution.arenaBytes;
    live += solution.maxLiveBytes;
  }
  EXPECT_LE(arena, live + live / 100);
}

/// Moving a buffer onto another is rejected exactly when they are not ordered.
TEST(MemoryProblem, VerifyRejectsEveryClash) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    MemoryProblem problem = randomProblem(random, 12);
    MemoryProblem::Solution solution = problem.solve();
    for (uint32_t a = 0; a < 12; ++a) {
      for (uint32_t b = 0; b < 12; ++b) {
        if (a == b || !problem.buffers[a].size || !problem.buffers[b].size ||
            problem.buffers[a].persistent)
          continue;
        MemoryProblem::Solution wrong = solution;
        wrong.offsets[a] = wrong.offsets[b];
        wrong.arenaBytes += problem.buffers[a].size;
        bool legal = true;
        for (uint32_t c = 0; c < 12; ++c) {
          bool shares =
              c != a && problem.buffers[c].size &&
              wrong.offsets[c] < wrong.offsets[a] + problem.buffers[a].size &&
              wrong.offsets[a] < wrong.offsets[c] + problem.buffers[c].size;
          legal &= !shares || orderedByDefinition(problem, a, c) ||
                   orderedByDefinition(problem, c, a);
        }
        ASSERT_EQ(problem.verify(wrong).isOk(), legal);
      }
    }
  }
}

static const std::string kTwoStreams =
    "memory\n"
    "region 0 streams=2\n"
    "op 0 stream=0\n"
    "op 1 stream=1 after=0\n"
    "op 2 stream=0\n"
    "op 3 stream=0 after=1\n"
    "buffer 0 size=1000 persistent=1 name=weight\n"
    "buffer 1 size=500 at=0:0 name=early\n"
    "buffer 2 size=500 at=0:1 name=gathered\n"
    "buffer 3 size=500 at=0:2 name=middle\n"
    "buffer 4 size=500 at=0:3\n";

static std::string verifyText(const std::string &solution) {
  auto parsed = parseMemoryProblem(kTwoStreams + solution);
  if (!parsed.isOk())
    return parsed.message();
  EXPECT_TRUE(parsed->problem.check().isOk());
  return parsed->problem.verify(parsed->solution).message();
}

static std::string offsets(std::vector<int> values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text +=
        "offset " + std::to_string(i) + " " + std::to_string(values[i]) + "\n";
  return text;
}

TEST(MemoryProblem, WrongSolutionsAreNamed) {
  std::string good = "solution arena=2048 max_live=2048 set=0,2,3\n";
  EXPECT_EQ(verifyText(good + offsets({0, 1024, 1024, 1536, 1024})), "");
  EXPECT_EQ(verifyText(good + offsets({0, 1024, 1024, 1024, 1536})),
            "buffer 2 (gathered) and buffer 3 (middle) share offset 1024, and "
            "neither's accesses all happen before the other's");
  EXPECT_EQ(verifyText(good + offsets({0, 1024, 1024, 1500, 1024})),
            "buffer 3 (middle) is at offset 1500, not a multiple of 256");
  EXPECT_EQ(verifyText(good + offsets({0, 1024, 1024, 1792, 1024})),
            "buffer 3 (middle) at offset 1792 of size 500 leaves the arena of "
            "2048 bytes");
  EXPECT_EQ(verifyText(good + offsets({256, 1280, 1280, 1536, 1280})),
            "buffer 0 (weight) is persistent and at offset 256, expected 0: "
            "persistent buffers come first, in order");
  EXPECT_EQ(verifyText(good + offsets({0, 768, 1024, 1536, 1024})),
            "buffer 0 (weight) and buffer 1 (early) share offset 768, and "
            "neither's accesses all happen before the other's");
  EXPECT_EQ(verifyText(good + offsets({0, 1024})),
            "solution has 2 offsets, expected 5");
  std::string rest = offsets({0, 1024, 1024, 1536, 1024});
  EXPECT_EQ(verifyText("solution arena=2048 max_live=2048 set=0,1,3\n" + rest),
            "buffer 1 (early) and buffer 3 (middle) of the max live set are "
            "never live together");
  EXPECT_EQ(verifyText("solution arena=2048 max_live=2000 set=0,2,3\n" + rest),
            "the max live set has 2048 bytes, not the claimed 2000");
}

TEST(MemoryProblem, CheckNamesWhatIsWrong) {
  auto check = [](const std::string &buffer) {
    auto parsed = parseMemoryProblem("memory\nregion 0 streams=1\nop 0 "
                                     "stream=0\nop 1 stream=0\n" +
                                     buffer);
    return parsed.isOk() ? parsed->problem.check().message() : parsed.message();
  };
  EXPECT_EQ(check("buffer 0 size=1 at=0:0,1\n"), "");
  EXPECT_EQ(check("buffer 0 size=1 name=x\n"),
            "buffer 0 (x) is accessed by no operation; drop it, or mark it as "
            "live into or out of the step");
  EXPECT_EQ(check("buffer 0 size=1 at=0:2\n"),
            "buffer 0 is accessed by operation 2 of region 0, which has 2");
  EXPECT_EQ(check("buffer 0 size=1 at=1:0\n"),
            "buffer 0 is accessed in region 1 of 1");
  EXPECT_EQ(check("buffer 0 size=1 at=0:1,0\n"),
            "buffer 0: operations are not ascending");
  EXPECT_EQ(check("buffer 0 size=1 at=0:1 carried=1\n"),
            "buffer 0 is carried from iteration to iteration, but no repeated "
            "region accesses it");
  EXPECT_EQ(check("buffer 0 size=9000000000000000000 at=0:1\n"),
            "buffer 0: sizes sum up to more than 2^60 bytes");
  EXPECT_EQ(check("buffer 0 size=1 at=0:x\n"),
            "line 5: 'x' in 'at=' is not an operation or region");
}

TEST(MemoryProblem, TextRoundTrips) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    MemoryProblem problem = randomProblem(random, 10);
    MemoryProblem::Solution solution = problem.solve();
    std::string text = problem.print(&solution);
    auto parsed = parseMemoryProblem(text);
    ASSERT_TRUE(parsed.isOk()) << parsed.message();
    EXPECT_EQ(parsed->problem.print(&parsed->solution), text);
    EXPECT_EQ(parsed->problem.solve().offsets, solution.offsets);
  }
}

TEST(MemoryProblem, EightyLayers) {
  constexpr uint32_t kLayers = 80;
  ScheduleProblem schedule = trainingStep(kLayers, 400'000, 100'000);
  auto solved = schedule.solve();
  ASSERT_TRUE(solved.isOk()) << solved.message();
  MemoryProblem problem = trainingMemory(schedule, *solved, kLayers);
  ASSERT_TRUE(problem.check().isOk()) << problem.check().message();
  auto start = std::chrono::steady_clock::now();
  MemoryProblem::Solution solution = problem.solve();
  auto solvedAt = std::chrono::steady_clock::now();
  gtp::Status status = problem.verify(solution);
  auto verifiedAt = std::chrono::steady_clock::now();
  ASSERT_TRUE(status.isOk()) << status.message();
  auto ms = [](auto duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration)
        .count();
  };
  std::printf("%zu buffers, %u operations: solved in %lld ms, verified in %lld "
              "ms; arena %.4f of the bound\n",
              problem.buffers.size(), problem.regions[0].order.size(),
              static_cast<long long>(ms(solvedAt - start)),
              static_cast<long long>(ms(verifiedAt - solvedAt)),
              double(solution.arenaBytes) / double(solution.maxLiveBytes));
  EXPECT_LE(solution.arenaBytes - solution.maxLiveBytes,
            solution.maxLiveBytes / 50);

  // The schedule's curve is what the buffers need at most, shards apart.
  uint64_t shards = 0;
  for (const Reduction &reduction : schedule.reductions)
    shards += alignBytes(reduction.bytes / 8);
  EXPECT_LE(solution.maxLiveBytes - problem.persistentBytes(),
            solved->peakBytes + shards);
}
