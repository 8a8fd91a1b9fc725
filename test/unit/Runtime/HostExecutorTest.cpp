//===- HostExecutorTest.cpp - Plans, run by the host backend --------------===//

#include "HostPlan.h"
#include "RaceAnnotations.h"
#include "TrainPlan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <tuple>

using namespace gtp;
using namespace gtp::test;

namespace {

Status ok() { return Status::ok(); }

/// Floats [first, first + count) of a buffer.
pb::Operand part(uint32_t buffer, uint64_t first, uint64_t count) {
  pb::Operand result = operand(buffer, pb::F32, {count});
  result.set_offset(first * 4);
  return result;
}

//===-- the training step -------------------------------------------------===//

TEST(HostExecutor, TrainsOnTwoRanks) {
  TrainPlan train;
  auto backend = makeBackend(train.plan());
  EXPECT_EQ(backend->localRanks(), 2u);
  train.writeInputs(*backend);
  std::vector<float> expected = train.initialWeights();
  for (int step = 0; step < 3; ++step) {
    std::vector<float> gradient;
    Status status = backend->runStep(0, [&] {
      gradient = train.gradient(*backend);
      return ok();
    });
    ASSERT_TRUE(status.isOk()) << status.message();
    std::vector<float> wanted = train.expectedGradient(expected);
    ASSERT_EQ(gradient.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(gradient[i], wanted[i], 1e-4) << i;
    for (size_t i = 0; i < wanted.size(); ++i)
      expected[i] -= TrainPlan::kRate * wanted[i];
    std::vector<float> weights = train.weights(*backend);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(weights[i], expected[i], 1e-4) << i;
  }
}

TEST(HostExecutor, JitterChangesNoBit) {
  TrainPlan train;
  std::vector<float> first;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    rt::BackendOptions options;
    if (seed)
      options.hostJitter = seed;
    auto backend = makeBackend(train.plan(), options);
    train.writeInputs(*backend);
    for (int step = 0; step < 3; ++step)
      ASSERT_TRUE(backend->runStep(0, nullptr).isOk());
    std::vector<float> weights = train.weights(*backend);
    if (!seed)
      first = weights;
    EXPECT_EQ(weights, first) << "seed " << seed;
  }
}

TEST(HostExecutor, TimedStepsAreTheSameSteps) {
  TrainPlan train;
  auto backend = makeBackend(train.plan()), plain = makeBackend(train.plan());
  train.writeInputs(*backend);
  train.writeInputs(*plain);
  uint64_t operations = 0;
  for (const pb::Region &region : train.plan().programs(0).regions())
    operations += uint64_t(region.operations_size()) * region.repeat();
  using rt::Timing;
  for (Timing timing : {Timing::OneByOne, Timing::AsPlanned, Timing::OneByOne,
                        Timing::None, Timing::OneByOne}) {
    backend->setTiming(timing);
    ASSERT_TRUE(backend->runStep(0, nullptr).isOk());
    ASSERT_TRUE(plain->runStep(0, nullptr).isOk());
    EXPECT_EQ(train.weights(*backend), train.weights(*plain));
    auto found = backend->operationTimes();
    ASSERT_TRUE(found.isOk()) << found.message();
    std::vector<rt::OperationTime> times = *found;
    EXPECT_EQ(times.size(), timing == Timing::None ? 0 : operations);
    std::sort(times.begin(), times.end(), [](const auto &a, const auto &b) {
      return std::tie(a.region, a.iteration, a.operation) <
             std::tie(b.region, b.iteration, b.operation);
    });
    for (size_t i = 0; i < times.size(); ++i) {
      EXPECT_LE(times[i].startNs, times[i].endNs);
      if (timing == Timing::OneByOne && i > 0)
        EXPECT_LE(times[i - 1].endNs, times[i].startNs) << i;
    }
  }
}

TEST(HostExecutor, BeforeUpdateSeesGradientsAndOldWeights) {
  TrainPlan train;
  auto backend = makeBackend(train.plan());
  train.writeInputs(*backend);
  int calls = 0;
  Status status = backend->runStep(0, [&] {
    ++calls;
    EXPECT_EQ(train.weights(*backend), train.initialWeights());
    return Status::error("enough");
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(status.message(), "enough");
  // Nothing of the update ran.
  EXPECT_EQ(train.weights(*backend), train.initialWeights());
}

//===-- failures ----------------------------------------------------------===//

/// Fails rank 1 at one operation of the body's second iteration.
rt::HostHooks failAt(uint32_t operation) {
  rt::HostHooks hooks;
  hooks.beforeOperation = [=](const rt::HostPosition &at) {
    return at.rank == 1 && at.region == 1 && at.iteration == 1 &&
                   at.operation == operation
               ? Status::error("injected")
               : ok();
  };
  return hooks;
}

TEST(HostExecutor, AnErrorOfOneRankEndsAllAndIsNamed) {
  TrainPlan train;
  for (int operation = 0; operation < train.bodyOperations(); ++operation) {
    auto backend =
        makeBackend(train.plan(), {}, failAt(static_cast<uint32_t>(operation)));
    train.writeInputs(*backend);
    auto start = std::chrono::steady_clock::now();
    std::string message = backend->runStep(0, nullptr).message();
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(5));
    EXPECT_NE(message.find("rank 1, program 0, region 1, operation " +
                           std::to_string(operation) + " ("),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("iteration 1: injected"), std::string::npos)
        << message;
    EXPECT_NE(message.find("\n  rank 0, stream 0: program 0, region "),
              std::string::npos)
        << message;
    // The memory is in no known state.
    EXPECT_NE(backend->runStep(0, nullptr)
                  .message()
                  .find("the run has ended: injected"),
              std::string::npos);
  }
}

TEST(HostExecutor, AStepThatTakesTooLongEnds) {
  TrainPlan train;
  rt::BackendOptions options;
  options.stepTimeoutSeconds = 0.05;
  rt::HostHooks hooks;
  hooks.beforeOperation = [](const rt::HostPosition &at) {
    if (at.rank == 1 && at.region == 1 && at.operation == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return ok();
  };
  auto backend = makeBackend(train.plan(), options, hooks);
  train.writeInputs(*backend);
  std::string message = backend->runStep(0, nullptr).message();
  EXPECT_NE(message.find("the step did not finish in 0.05"), std::string::npos)
      << message;
  EXPECT_NE(message.find("last completed operations"), std::string::npos);
}

//===-- the order of operations -------------------------------------------===//

TEST(HostExecutor, WhenAndStridesSelectIterationsAndPlaces) {
  HostPlan plan({{"dp", 2}});
  constexpr uint64_t repeat = 4;
  uint32_t out = plan.buffer(repeat * 4), when = plan.buffer(5 * 4);
  uint32_t table = plan.buffer(2 * repeat * 4, pb::Buffer::INPUT);
  pb::Region *once = plan.region(pb::Region::ONCE);
  plan.fill(once, 0, operand(when, pb::F32, {5}), 0);
  pb::Region *body = plan.region(pb::Region::BODY, repeat);
  // out[iteration] = table[rank][iteration]
  pb::Operand from = operand(table, pb::F32, {}),
              to = operand(out, pb::F32, {});
  from.set_iteration_stride(4);
  to.set_iteration_stride(4);
  pb::AxisStride *stride = from.add_rank_strides();
  stride->set_axis(0);
  stride->set_stride(repeat * 4);
  plan.copy(body, 0, from, to);
  // Position i holds the sum of the table's elements of the iterations in which
  // variant i ran.
  for (uint64_t i = 0; i < 5; ++i) {
    pb::Operand sum = operand(when, pb::F32, {});
    sum.set_offset(i * 4);
    plan.kernel(body, 0, "add", {sum, from, sum});
    body->mutable_operations(body->operations_size() - 1)
        ->set_when(static_cast<pb::Operation::When>(i));
  }
  auto backend = makeBackend(plan.plan);
  for (uint64_t rank = 0; rank < 2; ++rank)
    write<float>(*backend, rank, table, {1, 2, 4, 8, 16, 32, 64, 128});
  for (int step = 0; step < 2; ++step) {
    Status status = backend->runStep(0, nullptr);
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_EQ(read<float>(*backend, 0, out, 4),
              (std::vector<float>{1, 2, 4, 8}));
    EXPECT_EQ(read<float>(*backend, 1, out, 4),
              (std::vector<float>{16, 32, 64, 128}));
    EXPECT_EQ(read<float>(*backend, 0, when, 5),
              (std::vector<float>{15, 1, 14, 8, 7}));
  }
}

TEST(HostExecutor, WaitsOfOneConditionAreDoneInItsIterations) {
  HostPlan plan;
  uint32_t a = plan.buffer(4), b = plan.buffer(4);
  pb::Region *body = plan.region(pb::Region::BODY, 8);
  plan.fill(body, 0, part(a, 0, 1), 1);
  body->mutable_operations(0)->set_when(pb::Operation::LAST);
  plan.copy(body, 1, part(a, 0, 1), part(b, 0, 1));
  HostPlan::waitFor(body, 0);
  // In every other iteration nobody would record the event.
  auto refused = rt::createHostBackend(plan.plan, rt::BackendOptions());
  EXPECT_NE(refused.message().find("not every iteration that runs it records"),
            std::string::npos)
      << refused.message();
  body->mutable_operations(1)->set_when(pb::Operation::LAST);
  rt::BackendOptions options;
  options.hostJitter = 3;
  auto backend = makeBackend(plan.plan, options);
  for (int step = 0; step < 5; ++step)
    ASSERT_TRUE(backend->runStep(0, nullptr).isOk());
  EXPECT_EQ(read<uint32_t>(*backend, 0, b, 1)[0], 0x01010101u);
}

//===-- poison ------------------------------------------------------------===//

TEST(HostExecutor, WhatAStepDidNotWriteIsNaN) {
  HostPlan plan;
  uint32_t source = plan.buffer(12, pb::Buffer::PERSISTENT);
  uint32_t fresh = plan.buffer(12), unread = plan.buffer(12);
  uint32_t kept = plan.buffer(12), early = plan.buffer(12);
  pb::Region *once = plan.region(pb::Region::ONCE);
  plan.copy(once, 0, part(source, 0, 1), part(early, 0, 1));
  pb::Region *body = plan.region(pb::Region::BODY, 2);
  // A tail written in the first iteration only, after the rest.
  plan.copy(body, 0, part(source, 0, 2), part(kept, 0, 2));
  plan.copy(body, 0, part(source, 2, 1), part(kept, 2, 1));
  body->mutable_operations(1)->set_when(pb::Operation::FIRST);
  plan.copy(body, 0, part(source, 0, 1), part(fresh, 0, 1));
  plan.copy(body, 0, part(source, 1, 1), part(early, 1, 1));
  // The sum of the first iteration's 3 and of nothing.
  pb::Operand sum = part(unread, 0, 1);
  sum.set_accumulate(true);
  plan.kernel(body, 0, "cast", {part(source, 2, 1), sum});
  auto backend = makeBackend(plan.plan);
  write<float>(*backend, 0, source, {1, 2, 3});
  for (uint32_t buffer : {fresh, kept, early, unread})
    write<float>(*backend, 0, buffer, {9, 9, 9});
  Status status = backend->runStep(0, nullptr);
  ASSERT_TRUE(status.isOk()) << status.message();
  auto isNaN = [&](uint32_t buffer) {
    std::vector<bool> result;
    for (float value : read<float>(*backend, 0, buffer, 3))
      result.push_back(std::isnan(value));
    return result;
  };
  EXPECT_EQ(isNaN(fresh), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(isNaN(kept), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(isNaN(early), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(isNaN(unread), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(read<float>(*backend, 0, unread, 1)[0], 6);
}

TEST(HostExecutor, ABodysBufferIsPoisonedInEveryIteration) {
  HostPlan plan;
  uint32_t fresh = plan.buffer(8), seen = plan.buffer(2 * 8);
  pb::Region *body = plan.region(pb::Region::BODY, 2);
  plan.fill(body, 0, part(fresh, 0, 1), 0);
  pb::Operand log = part(seen, 0, 2);
  log.set_iteration_stride(8);
  plan.copy(body, 0, part(fresh, 0, 2), log);
  plan.fill(body, 0, part(fresh, 0, 2), 0);
  auto backend = makeBackend(plan.plan);
  ASSERT_TRUE(backend->runStep(0, nullptr).isOk());
  std::vector<float> values = read<float>(*backend, 0, seen, 4);
  EXPECT_EQ(values[0], 0);
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values[2], 0);
  EXPECT_TRUE(std::isnan(values[3]));
}

TEST(HostExecutor, WritersThatNobodyOrdersPoisonNothing) {
  HostPlan plan;
  uint32_t shared = plan.buffer(8);
  pb::Region *body = plan.region(pb::Region::BODY, 4);
  plan.fill(body, 0, part(shared, 0, 1), 1);
  plan.fill(body, 1, part(shared, 1, 1), 2);
  rt::BackendOptions options;
  options.hostJitter = 1;
  auto backend = makeBackend(plan.plan, options);
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(backend->runStep(0, nullptr).isOk());
    EXPECT_EQ(read<uint32_t>(*backend, 0, shared, 2),
              (std::vector<uint32_t>{0x01010101, 0x02020202}));
  }
}

//===-- collectives over axes ---------------------------------------------===//

TEST(HostExecutor, CollectivesRunOverTheirAxes) {
  HostPlan plan({{"dp", 2}, {"gtp", 3}});
  uint32_t own = plan.buffer(4, pb::Buffer::INPUT);
  uint32_t rows = plan.buffer(12), sum = plan.buffer(4), all = plan.buffer(4);
  uint32_t gtp = plan.communicator({1}), dp = plan.communicator({0});
  uint32_t both = plan.communicator({0, 1});
  pb::Region *once = plan.region(pb::Region::ONCE);
  pb::Operand value = part(own, 0, 1);
  plan.collective(once, 0, pb::Collective::ALL_GATHER, gtp, value,
                  part(rows, 0, 3));
  plan.collective(once, 1, pb::Collective::ALL_REDUCE, dp, value,
                  part(sum, 0, 1));
  plan.collective(once, 2, pb::Collective::ALL_REDUCE, both, value,
                  part(all, 0, 1));
  auto backend = makeBackend(plan.plan);
  for (uint64_t rank = 0; rank < 6; ++rank)
    write<float>(*backend, rank, own, {static_cast<float>(1 << rank)});
  ASSERT_TRUE(backend->runStep(0, nullptr).isOk());
  for (uint64_t rank = 0; rank < 6; ++rank) {
    std::vector<float> half = {1, 2, 4};
    if (rank >= 3)
      half = {8, 16, 32};
    EXPECT_EQ(read<float>(*backend, rank, rows, 3), half);
    EXPECT_EQ(read<float>(*backend, rank, sum, 1)[0],
              static_cast<float>(9 << rank % 3));
    EXPECT_EQ(read<float>(*backend, rank, all, 1)[0], 63);
  }
}

//===-- refusals ----------------------------------------------------------===//

std::string refusal(const pb::Plan &plan) {
  auto backend = rt::createHostBackend(plan, rt::BackendOptions());
  return backend.message();
}

TEST(HostExecutor, SmallScratchIsRefused) {
  HostPlan plan;
  uint32_t x = plan.buffer(1024), scratch = plan.buffer(63);
  auto tensor = [&](const Dims &dims) { return operand(x, pb::F32, dims); };
  pb::Kernel *kernel = plan.kernel(
      plan.region(pb::Region::ONCE), 0, "attention",
      {tensor({1, 4, 2}), tensor({1, 4, 2}), tensor({1, 4, 2}),
       tensor({1, 4, 2}), tensor({1, 1, 4}), operand(scratch, pb::U8, {63})});
  plan.attribute(kernel, "heads")->set_i(1);
  plan.attribute(kernel, "kv_heads")->set_i(1);
  plan.attribute(kernel, "scale")->set_f(1);
  plan.attribute(kernel, "causal")->set_i(1);
  std::string message = refusal(plan.plan);
  EXPECT_NE(message.find("is too small: the host needs 64 bytes for a sequence "
                         "of 4; compile with --target=cpu"),
            std::string::npos)
      << message;
}

/// Damages one operation of a plan that runs.
std::string refusalAfter(const std::function<void(pb::Plan &)> &damage) {
  pb::Plan plan = TrainPlan().plan();
  EXPECT_EQ(refusal(plan), "");
  damage(plan);
  std::string message = refusal(plan);
  return message;
}

pb::Operation *bodyOperation(pb::Plan &plan, int index) {
  return plan.mutable_programs(0)->mutable_regions(1)->mutable_operations(
      index);
}

TEST(HostExecutor, DamagedPlansAreRefused) {
  pb::Operand *(*firstOperand)(pb::Plan &) = [](pb::Plan &plan) {
    return bodyOperation(plan, 1)->mutable_kernel()->mutable_operands(0);
  };
  auto expectRefusal = [](const std::function<void(pb::Plan &)> &damage,
                          const std::string &what) {
    std::string message = refusalAfter(damage);
    EXPECT_NE(message.find(what), std::string::npos)
        << "expected '" << what << "', found '" << message << "'";
  };
  expectRefusal([&](pb::Plan &plan) { firstOperand(plan)->set_buffer(99); },
                "region 1: operation 1: operand");
  expectRefusal(
      [&](pb::Plan &plan) { firstOperand(plan)->set_offset(1 << 20); },
      "ends behind its buffer");
  expectRefusal(
      [&](pb::Plan &plan) { firstOperand(plan)->set_offset(~uint64_t(0)); },
      "ends behind its buffer");
  expectRefusal(
      [&](pb::Plan &plan) {
        firstOperand(plan)->set_iteration_stride(uint64_t(1) << 62);
      },
      "ends behind its buffer");
  expectRefusal(
      [&](pb::Plan &plan) {
        firstOperand(plan)->set_offset(2);
        firstOperand(plan)->clear_iteration_stride();
      },
      "not aligned");
  expectRefusal([](pb::Plan &plan) { bodyOperation(plan, 1)->set_stream(7); },
                "its stream does not exist");
  expectRefusal(
      [](pb::Plan &plan) { bodyOperation(plan, 0)->add_waits()->set_event(0); },
      "which no earlier operation records");
  expectRefusal(
      [](pb::Plan &plan) { bodyOperation(plan, 2)->set_event_plus1(1); },
      "records an event");
  expectRefusal([](pb::Plan &plan) { bodyOperation(plan, 1)->clear_kernel(); },
                "it does nothing");
  expectRefusal(
      [](pb::Plan &plan) {
        plan.mutable_programs(0)->mutable_regions(1)->set_repeat(0);
      },
      "it is repeated 0 times");
  expectRefusal(
      [](pb::Plan &plan) { plan.mutable_buffers(0)->set_offset(1 << 30); },
      "is not inside the arena");
  expectRefusal(
      [](pb::Plan &plan) {
        plan.mutable_memory(0)->set_size(uint64_t(1) << 60);
      },
      "bytes each do not fit this machine's memory of ");
  expectRefusal(
      [](pb::Plan &plan) {
        plan.mutable_mesh()->mutable_axes(0)->set_degree(5000);
      },
      " ranks; the host backend runs up to 4096 as threads: compile for a "
      "smaller mesh");
  expectRefusal([](pb::Plan &plan) { plan.add_memory(); }, "needs one arena");
  expectRefusal(
      [](pb::Plan &plan) {
        for (int i = 0; i < 70; ++i) {
          pb::MeshAxis *axis = plan.mutable_mesh()->add_axes();
          axis->set_name("axis" + std::to_string(i));
          axis->set_degree(1);
        }
      },
      "axes; a backend takes 63");
  expectRefusal(
      [](pb::Plan &plan) { plan.mutable_memory(0)->set_alignment(768); },
      "the arena's alignment is 768; it must be a power of two up to 2^30");
  expectRefusal(
      [](pb::Plan &plan) {
        plan.mutable_programs(0)->mutable_regions(1)->set_events(99);
      },
      "it has more events than operations");
  expectRefusal(
      [](pb::Plan &plan) {
        pb::Operation *operation = bodyOperation(plan, 1);
        pb::Operand destination = operation->kernel().operands(0);
        *operation->mutable_fill()->mutable_destination() = destination;
        operation->mutable_fill()->set_byte_value(256);
      },
      "the fill needs a dense destination and a byte");
}

TEST(HostExecutor, CallsFromOutsideAreChecked) {
  TrainPlan train;
  auto backend = makeBackend(train.plan());
  char byte = 0;
  EXPECT_EQ(backend->readBuffer(0, 999, 0, &byte, 1).message(),
            "there is no buffer 999 of rank 0");
  EXPECT_EQ(backend->runStep(1, nullptr).message(),
            "the plan has no program 1");
  pb::Plan plan = train.plan();
  plan.mutable_programs(0)->mutable_regions()->SwapElements(1, 2);
  EXPECT_EQ(makeBackend(plan)->runStep(0, ok).message(),
            "program 0 updates weights before its last body, so there is no "
            "point where its gradients are whole");
}

TEST(HostExecutor, BuffersAreCheckedAtTheirEnds) {
  TrainPlan train;
  auto backend = makeBackend(train.plan());
  char byte = 0;
  EXPECT_FALSE(backend->readBuffer(0, 0, 1 << 20, &byte, 1).isOk());
  EXPECT_FALSE(backend->readBuffer(2, 0, 0, &byte, 1).isOk());
  EXPECT_FALSE(backend->writeBuffer(0, 999, 0, &byte, 1).isOk());
  EXPECT_FALSE(backend->runStep(1, nullptr).isOk());
}

} // namespace
