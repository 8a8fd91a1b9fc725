//===- TrainingStep.cpp - A step of the shape that real models have -------===//

#include "TrainingStep.h"

#include <algorithm>

namespace gtp::planning {

namespace {

constexpr uint32_t kForward = 10, kBackward = 20, kWeights = 4;
/// Where each of a layer's weights is used, and its relative size.
constexpr uint32_t kForwardUse[kWeights] = {1, 4, 6, 8};
constexpr uint32_t kSize[kWeights] = {3, 2, 14, 7};
constexpr int64_t kUnit = 8 << 20;

uint32_t forwardOp(uint32_t layer, uint32_t op) {
  return layer * kForward + op;
}
uint32_t backwardOp(uint32_t layers, uint32_t layer, uint32_t op) {
  return layers * kForward + (layers - 1 - layer) * kBackward + op;
}

} // namespace

ScheduleProblem trainingStep(uint32_t layers, int64_t gatherNs,
                             int64_t computeNs) {
  ScheduleProblem problem;
  problem.ops.resize(layers * (kForward + kBackward));
  for (ComputeOp &op : problem.ops)
    op.durationNs = computeNs / 10;
  problem.base = BaseProfile(problem.ops.size());
  problem.sharedLinkPermille = 600;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    std::string prefix = "layers." + std::to_string(layer) + ".";
    for (uint32_t w = 0; w < kWeights; ++w) {
      Gather gather;
      gather.bytes = kSize[w] * kUnit;
      gather.cost = {gatherNs * kSize[w] / 14, gatherNs * kSize[w] / 14 / 13,
                     30};
      uint32_t use = forwardOp(layer, kForwardUse[w]);
      problem.ops[use].durationNs = computeNs * kSize[w] / 4;
      gather.firstUse = gather.lastUse = use;
      gather.name = prefix + "w" + std::to_string(w);
      problem.gathers.push_back(gather);

      // Backward: dgrad at 2 * use, wgrad right after it.
      uint32_t dgrad = backwardOp(layers, layer, 18 - 2 * kForwardUse[w]);
      gather.firstUse = gather.lastUse = dgrad;
      problem.ops[dgrad].durationNs = problem.ops[use].durationNs;
      problem.ops[dgrad + 1].durationNs = problem.ops[use].durationNs;
      gather.name += ".dgrad";
      problem.gathers.push_back(gather);

      Reduction reduction;
      reduction.bytes = gather.bytes;
      reduction.cost = gather.cost;
      reduction.cost.contentionNs *= 3;
      reduction.producer = dgrad + 1;
      reduction.consumer = problem.ops.size();
      reduction.name = prefix + "w" + std::to_string(w) + ".wgrad";
      problem.reductions.push_back(reduction);
    }
    // Each forward operation's result is read by the next and kept for
    // backward.
    for (uint32_t op = 0; op < kForward; ++op)
      problem.base.addCompute(forwardOp(layer, op),
                              backwardOp(layers, layer, 18 - 2 * op + 1),
                              (4 + op % 3 * 5) * kUnit / 2);
    for (uint32_t op = 0; op + 1 < kBackward; ++op)
      problem.base.addCompute(backwardOp(layers, layer, op),
                              backwardOp(layers, layer, op + 1),
                              (4 + op % 4 * 3) * kUnit / 2);
  }
  return problem;
}

MemoryProblem trainingMemory(const ScheduleProblem &problem,
                             const Schedule &schedule, uint32_t layers) {
  MemoryProblem memory;
  memory.regions.push_back({OrderGraph(3), true});
  memory.regions.push_back({OrderGraph(3), false});
  OrderGraph &order = memory.regions[0].order;

  // Issue order: before each compute operation what it waits for, after it what
  // it triggers.
  std::vector<OpIndex> compute(problem.ops.size());
  std::vector<OpIndex> gathers(problem.gathers.size());
  std::vector<OpIndex> reductions(problem.reductions.size());
  std::vector<uint32_t> gatherOrder = problem.gatherOrder();
  size_t nextGather = 0;
  auto issueGathers = [&](int64_t done) {
    for (; nextGather < gatherOrder.size() &&
           schedule.triggers[gatherOrder[nextGather]] <= done;
         ++nextGather) {
      std::vector<OpIndex> after;
      if (done >= 0)
        after.push_back(compute[done]);
      gathers[gatherOrder[nextGather]] = order.addOp(1, after);
    }
  };
  issueGathers(-1);
  for (uint32_t i = 0; i < problem.ops.size(); ++i) {
    std::vector<OpIndex> after;
    for (size_t g = 0; g < problem.gathers.size(); ++g)
      if (problem.gathers[g].firstUse == i)
        after.push_back(gathers[g]);
    for (size_t r = 0; r < problem.reductions.size(); ++r)
      if (schedule.releases[r] == i)
        after.push_back(reductions[r]);
    compute[i] = order.addOp(0, after);
    for (size_t r = 0; r < problem.reductions.size(); ++r)
      if (problem.reductions[r].producer == i)
        reductions[r] = order.addOp(2, {compute[i]});
    issueGathers(i);
  }

  auto buffer = [&](uint64_t size, std::vector<OpIndex> ops) {
    MemoryBuffer result;
    std::sort(ops.begin(), ops.end());
    ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
    result.size = size;
    result.accesses.push_back({0, std::move(ops)});
    memory.buffers.push_back(std::move(result));
  };
  for (size_t g = 0; g < problem.gathers.size(); ++g)
    buffer(problem.gathers[g].bytes,
           {gathers[g], compute[problem.gathers[g].firstUse]});
  for (size_t r = 0; r < problem.reductions.size(); ++r) {
    buffer(problem.reductions[r].bytes,
           {compute[problem.reductions[r].producer], reductions[r]});
    // Shard of the gradient, accumulated and read by the update.
    OpIndex update = memory.regions[1].order.addOp(0);
    MemoryBuffer shard;
    shard.size = problem.reductions[r].bytes / 8;
    shard.accesses = {{0, {reductions[r]}}, {1, {update}}};
    memory.buffers.push_back(shard);
    for (int state = 0; state < 3; ++state) {
      MemoryBuffer persistent;
      persistent.size = shard.size;
      persistent.accesses = {{1, {update}}};
      persistent.persistent = true;
      memory.buffers.push_back(persistent);
    }
  }
  for (uint32_t layer = 0; layer < layers; ++layer) {
    for (uint32_t op = 0; op < kForward; ++op)
      buffer((4 + op % 3 * 5) * kUnit / 2,
             {compute[forwardOp(layer, op)],
              compute[backwardOp(layers, layer, 18 - 2 * op + 1)]});
    for (uint32_t op = 0; op + 1 < kBackward; ++op)
      buffer((4 + op % 4 * 3) * kUnit / 2,
             {compute[backwardOp(layers, layer, op)],
              compute[backwardOp(layers, layer, op + 1)]});
  }
  return memory;
}

ScheduleProblem randomProblem(std::mt19937 &random, uint32_t numOps,
                              unsigned numGathers, unsigned numReductions) {
  ScheduleProblem problem;
  for (uint32_t i = 0; i < numOps; ++i)
    problem.ops.push_back({int64_t(random() % 50), "", int64_t(i % 3) * 300});
  auto cost = [&] {
    int64_t ns = random() % 60;
    return TransferCost{ns, int64_t(random() % 3) * ns / 10,
                        int64_t(random() % 3) * 100};
  };
  for (unsigned i = 0; i < numGathers; ++i) {
    Gather gather;
    gather.bytes = random() % 10;
    gather.cost = cost();
    gather.firstUse = random() % numOps;
    gather.lastUse = gather.firstUse + random() % (numOps - gather.firstUse);
    problem.gathers.push_back(gather);
  }
  for (unsigned i = 0; i < numReductions; ++i) {
    Reduction reduction;
    reduction.bytes = random() % 10;
    reduction.cost = cost();
    reduction.cost.holdsMultiprocessors = i % 2 == 0;
    reduction.producer = random() % numOps;
    reduction.consumer =
        reduction.producer + 1 + random() % (numOps - reduction.producer);
    problem.reductions.push_back(reduction);
  }
  problem.base = BaseProfile(numOps);
  for (int64_t &point : problem.base.points)
    point = random() % 10;
  problem.sharedLinkPermille = random() % 2 ? 1000 : 600;
  return problem;
}

} // namespace gtp::planning
