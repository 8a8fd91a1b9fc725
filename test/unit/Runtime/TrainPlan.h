//===- TrainPlan.h - A training step of two ranks, by hand ----------------===//
//
// y = x w^T, loss = sum(y * y) / 2, so dw = y^T x, summed over ranks and
// microbatches; w [6, 5] is cut by rows over two ranks. Gathers are on stream 1
// and reductions on stream 2, as in a plan that the compiler makes. The
// gathered weight and its gradient share memory: one more thing that waits must
// order.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_TRAINPLAN_H
#define GTP_TEST_UNIT_RUNTIME_TRAINPLAN_H

#include "HostPlan.h"

namespace gtp::test {

class TrainPlan {
public:
  static constexpr uint64_t kRanks = 2, kBatches = 3;
  static constexpr uint64_t kRows = 4, kIn = 5, kOut = 6;
  static constexpr float kRate = 0.0625f;

  TrainPlan() : build({{"gtp", kRanks}}) {
    uint64_t shard = kOut / kRanks;
    weight = build.buffer(shard * kIn * 4, pb::Buffer::PERSISTENT);
    hyper = build.buffer(32, pb::Buffer::INPUT);
    x = build.buffer(kBatches * kRows * kIn * 4, pb::Buffer::INPUT);
    uint32_t scale = build.buffer(4);
    reduced = build.buffer(shard * kIn * 4);
    uint32_t full = build.buffer(kOut * kIn * 4);
    uint32_t dw = build.buffer(kOut * kIn * 4);
    uint32_t y = build.buffer(kRows * kOut * 4);
    build.plan.mutable_buffers(static_cast<int>(dw))
        ->set_offset(build.plan.buffers(static_cast<int>(full)).offset());
    uint32_t gather = build.communicator({0});
    uint32_t reduce = build.communicator({0});

    pb::Region *once = build.region(pb::Region::ONCE);
    build
        .attribute(build.kernel(once, 0, "full", {operand(scale, pb::F32, {})}),
                   "value")
        ->set_f(1);

    pb::Region *body = build.region(pb::Region::BODY, kBatches);
    pb::Operand input = operand(x, pb::F32, {kRows, kIn});
    input.set_iteration_stride(kRows * kIn * 4);
    pb::Operand result = operand(y, pb::F32, {kRows, kOut});
    build.collective(body, 1, pb::Collective::ALL_GATHER, gather,
                     operand(weight, pb::F32, {shard, kIn}),
                     operand(full, pb::F32, {kOut, kIn}));
    build.kernel(body, 0, "linear",
                 {input, operand(full, pb::F32, {kOut, kIn}), result});
    HostPlan::waitFor(body, 0);
    build.kernel(body, 0, "linear_wgrad",
                 {result, input, operand(dw, pb::F32, {kOut, kIn})});
    pb::Operand sum = operand(reduced, pb::F32, {shard, kIn});
    sum.set_accumulate(true);
    build.collective(body, 2, pb::Collective::REDUCE_SCATTER, reduce,
                     operand(dw, pb::F32, {kOut, kIn}), sum);
    HostPlan::waitFor(body, 2);

    pb::Region *update = build.region(pb::Region::UPDATE);
    pb::Kernel *sgd = build.kernel(update, 0, "sgd",
                                   {operand(weight, pb::F32, {shard, kIn}),
                                    operand(reduced, pb::F32, {shard, kIn}),
                                    operand(hyper, pb::F32, {8}),
                                    operand(scale, pb::F32, {})});
    build.attribute(sgd, "decay")->set_i(0);
  }

  const pb::Plan &plan() const { return build.plan; }
  int bodyOperations() const {
    return plan().programs(0).regions(1).operations_size();
  }

  static std::vector<float> initialWeights() { return values(kOut * kIn, 3); }

  void writeInputs(rt::Backend &backend) const {
    std::vector<float> weights = initialWeights();
    uint64_t shard = weights.size() / kRanks;
    for (uint64_t rank = 0; rank < kRanks; ++rank) {
      auto begin = weights.begin() + static_cast<ptrdiff_t>(rank * shard);
      write(backend, rank, weight,
            std::vector<float>(begin, begin + static_cast<ptrdiff_t>(shard)));
      write(backend, rank, hyper,
            std::vector<float>{kRate, 0, 0, 0, 0, 0, 0, 0});
      write(backend, rank, x, inputs(rank));
    }
  }

  std::vector<float> weights(rt::Backend &backend) const {
    return whole(backend, weight);
  }
  std::vector<float> gradient(rt::Backend &backend) const {
    return whole(backend, reduced);
  }

  /// The sum over ranks and microbatches, in double.
  static std::vector<float> expectedGradient(const std::vector<float> &w) {
    std::vector<double> sums(w.size());
    for (uint64_t rank = 0; rank < kRanks; ++rank) {
      std::vector<float> in = inputs(rank);
      for (uint64_t row = 0; row < kBatches * kRows; ++row)
        for (uint64_t n = 0; n < kOut; ++n) {
          double y = 0;
          for (uint64_t k = 0; k < kIn; ++k)
            y += static_cast<double>(in[row * kIn + k]) * w[n * kIn + k];
          for (uint64_t k = 0; k < kIn; ++k)
            sums[n * kIn + k] += y * in[row * kIn + k];
        }
    }
    return {sums.begin(), sums.end()};
  }

private:
  static std::vector<float> values(uint64_t count, uint64_t seed) {
    std::vector<float> result;
    for (uint64_t i = 0; i < count; ++i)
      result.push_back(
          static_cast<float>(static_cast<int>((i * 29 + seed * 41) % 67) - 33) /
          64);
    return result;
  }
  static std::vector<float> inputs(uint64_t rank) {
    return values(kBatches * kRows * kIn, 10 + rank);
  }
  std::vector<float> whole(rt::Backend &backend, uint32_t buffer) const {
    std::vector<float> result;
    for (uint64_t rank = 0; rank < kRanks; ++rank) {
      std::vector<float> shard =
          read<float>(backend, rank, buffer, kOut * kIn / kRanks);
      result.insert(result.end(), shard.begin(), shard.end());
    }
    return result;
  }

  HostPlan build;
  uint32_t weight, hyper, x, reduced;
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_TRAINPLAN_H
