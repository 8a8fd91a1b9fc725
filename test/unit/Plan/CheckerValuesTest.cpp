//===- CheckerValuesTest.cpp - What bytes hold, broken --------------------===//

#include "CheckerTest.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

TEST(Checker, FindsUndefinedReads) {
  expectBroken([](pb::Plan &plan) { erase(plan, "full"); }, "undefined-read",
               "'dloss' in buffer");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "fill")
            ->mutable_fill()
            ->mutable_destination()
            ->set_dims(0, 1);
      },
      "undefined-read",
      "'head.dfull' bytes [0, 288), of which byte 264 and maybe more hold "
      "nothing that this step wrote");
  // dy in the bytes of x, which is still needed.
  expectBroken(
      [](pb::Plan &plan) {
        plan.mutable_buffers(static_cast<int>(bufferNamed(plan, "dy")))
            ->set_offset(plan.buffers(static_cast<int>(bufferNamed(plan, "x")))
                             .offset());
      },
      "undefined-read", "'x', whose bytes buffer ");
  // What one iteration needs of the one before is not there in the first.
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "cross_entropy_grad")
            ->set_when(pb::Operation::NOT_FIRST);
      },
      "undefined-read", "'dlogits', which nothing has written", mesh(1, 2, 3));
}

/// The halves of a master go together.
TEST(Checker, FindsWrongRemainders) {
  StepOptions options;
  options.bf16 = options.split = true;
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "adamw.2", 1)
            ->set_buffer(bufferNamed(plan, "table.remainder"));
      },
      "role", "as 'remainder' of parameter 'head', expected all of buffer",
      options);
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "adamw.2", 1)->set_buffer(bufferNamed(plan, "head.m"));
      },
      "role", "expected all of buffer", options);
  expectBroken([](pb::Plan &plan) { erase(plan, "adamw.2"); }, "exactly-once",
               "does not update parameter 'head'", options);
  // A float32 master in the place of a remainder.
  expectBroken(
      [](pb::Plan &plan) {
        pb::Parameter *head = plan.mutable_parameters(2);
        head->set_master_buffer_plus1(head->remainder_buffer_plus1());
        head->clear_remainder_buffer_plus1();
      },
      "structure", "master", options);
  // Both.
  expectBroken(
      [](pb::Plan &plan) {
        pb::Parameter *head = plan.mutable_parameters(2);
        head->set_master_buffer_plus1(head->state_buffers(0) + 1);
      },
      "structure",
      "a f32 master of a bf16 weight; expected no master buffer, compute type "
      "bf16",
      options);
  expectBroken(
      [](pb::Plan &plan) { plan.mutable_numerics()->set_master(pb::BF16); },
      "structure", "master type f32, found bf16 and bf16", options);
}

TEST(Checker, FindsWrongWeights) {
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.gather")
            ->mutable_sources(0)
            ->set_buffer(bufferNamed(plan, "table.compute"));
        collective(plan, "head.gather")->clear_parameter_plus1();
      },
      "weight-version", "found the whole of parameter 'table'");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "linear")->mutable_kernel()->set_parameter_plus1(1);
      },
      "weight-version", "as parameter 'table', found");
  expectBroken([](pb::Plan &plan) { skip(plan, "gain.reduce"); },
               "exactly-once", "still partial over gtp");
  // Master weights are f32, so this gathers the wrong bytes.
  StepOptions options;
  options.bf16 = true;
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operand *source =
            collective(plan, "head.gather")->mutable_sources(0);
        source->set_buffer(bufferNamed(plan, "head.master"));
      },
      "weight-version", "expected exactly all of it", options);
  // Half of the shard, twice.
  expectBroken(
      [](pb::Plan &plan) {
        pb::Collective *gather = collective(plan, "head.gather");
        gather->mutable_sources(0)->set_dims(0, 3);
        gather->mutable_destinations(0)->set_dims(0, 6);
      },
      "weight-version", "expected exactly all of it");
  // One row further.
  expectBroken(
      [](pb::Plan &plan) { operand(plan, "linear", 1)->set_offset(24); },
      "weight-version", "expected exactly all of it");
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "adamw.2", 6)
            ->set_buffer(bufferNamed(plan, "table.compute"));
      },
      "role", "expected all of buffer", options);
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "adamw.2")
            ->mutable_kernel()
            ->mutable_operands()
            ->RemoveLast();
      },
      "role", "does not publish the compute copy of parameter 'head'", options);
}

TEST(Checker, FrozenWeightsStayAsTheyAre) {
  expectBroken(
      [](pb::Plan &plan) { plan.mutable_parameters(1)->set_frozen(true); },
      "exactly-once", "updates parameter 'gain', which is frozen");
  expectBroken(
      [](pb::Plan &plan) { plan.mutable_parameters(1)->set_frozen(true); },
      "weight-version", "must hold the shard of parameter 'gain' as it was");
}

TEST(Checker, FindsWrongReductions) {
  expectBroken([](pb::Plan &plan) { skip(plan, "head.reduce"); },
               "exactly-once", "still partial over dp", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.reduce")->set_communicator(gtpScatter);
      },
      "exactly-once", "each axis must be reduced exactly once", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "gain.reduce")->set_communicator(gtpScatter);
      },
      "exactly-once", "still partial over dp", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operation *scatter = findOperation(plan, "head.scatter");
        pb::Operand sum = scatter->collective().destinations(0);
        scatter->mutable_fill();
        *scatter->mutable_fill()->mutable_destination() = sum;
      },
      "exactly-once", "found zeros");
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.scatter")
            ->mutable_destinations(0)
            ->clear_accumulate();
      },
      "exactly-once", "lacks microbatches", mesh(1, 2, 3));
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "head.scatter")->set_when(pb::Operation::LAST);
        collective(plan, "head.scatter")
            ->mutable_destinations(0)
            ->clear_accumulate();
      },
      "exactly-once", "lacks microbatches", apart(3));
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "linear_wgrad")
            ->mutable_kernel()
            ->set_parameter_plus1(1);
      },
      "exactly-once", "as the gradient of parameter 'head'");
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "linear_wgrad", 1)->set_buffer(bufferNamed(plan, "x"));
      },
      "exactly-once", "computed from another activation");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *add = findOperation(plan, "add")->mutable_kernel();
        *add->mutable_operands(1) = add->operands(0);
      },
      "exactly-once",
      "counts a contribution to the gradient of parameter 'table' twice",
      tied());
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *add = findOperation(plan, "add")->mutable_kernel();
        add->mutable_operands()->DeleteSubrange(1, 1);
      },
      "exactly-once", "1 contributions a microbatch for 2 forward uses",
      tied());
  expectBroken([](pb::Plan &plan) { plan.mutable_parameters(0)->set_uses(1); },
               "exactly-once", "of which the plan declares 1", tied());
  expectBroken([](pb::Plan &plan) { erase(plan, "adamw.1"); }, "exactly-once",
               "the step does not update parameter 'gain'");
  expectBroken(
      [](pb::Plan &plan) {
        auto [region, index] = findPlace(plan, "adamw.1");
        pb::Operation again = region->operations(index);
        *region->add_operations() = again;
      },
      "exactly-once", "which was updated before");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "fill")->mutable_fill()->set_byte_value(1);
      },
      "role", " and something else, expected one value");
}

TEST(Checker, FindsPartialScalars) {
  expectBroken(
      [](pb::Plan &plan) {
        for (const char *name : {"cross_entropy", "cross_entropy_grad"})
          operand(plan, name, 2)->set_buffer(bufferNamed(plan, "count.mine"));
      },
      "partial", "'count.mine', which is still partial over gtp");
  expectBroken([](pb::Plan &plan) { skip(plan, "loss.reduce"); }, "partial",
               "'loss' is still partial over gtp");
  expectBroken([](pb::Plan &plan) { skip(plan, "norm.reduce"); }, "partial",
               "'square.all'");
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "keep_first")
            ->mutable_kernel()
            ->mutable_attributes(0)
            ->set_i(0);
      },
      "partial", "adds a value that is partial over");
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "count.reduce")->set_communicator(gtpScalar);
      },
      "partial", "still partial over dp", mesh(2, 2));
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "norm.reduce")->set_communicator(dpReduce);
      },
      "partial", "each axis must be reduced exactly once", mesh(2, 2));
}

TEST(Checker, FindsWrongSums) {
  // The loss of the last microbatch, of the first one thrice, and of two.
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "cross_entropy", 3)->clear_accumulate();
      },
      "exactly-once", "output 'loss' lacks microbatches", mesh(1, 2, 3));
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "cross_entropy", 1)->set_iteration_stride(0);
      },
      "exactly-once", "expected exactly its microbatch of 32 bytes",
      mesh(1, 2, 3));
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "cross_entropy")->set_when(pb::Operation::NOT_LAST);
      },
      "exactly-once", "output 'loss' lacks microbatches", mesh(1, 2, 3));
  expectBroken(
      [](pb::Plan &plan) { operand(plan, "count_labels", 0)->set_dims(0, 2); },
      "exactly-once", "expected exactly all of its 96 bytes", mesh(1, 2, 3));
  // A norm without the head's square, with it twice, and of the wrong kind.
  expectBroken(
      [](pb::Plan &plan) {
        findOperation(plan, "norm.add")
            ->mutable_kernel()
            ->mutable_operands()
            ->DeleteSubrange(2, 1);
      },
      "exactly-once",
      "has 2 terms, expected the square of the gradient of each of the 3 "
      "trained parameters");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *add = findOperation(plan, "norm.add")->mutable_kernel();
        *add->mutable_operands(2) = add->operands(0);
      },
      "exactly-once", "the square of the gradient of parameter 'table' twice");
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "adamw.0", 5)->set_buffer(bufferNamed(plan, "dloss"));
      },
      "role", "not the factor of every gradient");
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "adamw.0", 4)->set_buffer(bufferNamed(plan, "head.m"));
      },
      "role", "expected all of the input of that name");
}

/// Adds a call to the last region.
static pb::Kernel *appendKernel(pb::Plan &plan, const std::string &name) {
  pb::Program *program = plan.mutable_programs(0);
  pb::Kernel *kernel = program->mutable_regions(program->regions_size() - 1)
                           ->add_operations()
                           ->mutable_kernel();
  plan.add_strings(name);
  kernel->set_name(static_cast<uint32_t>(plan.strings_size() - 1));
  kernel->set_version(1);
  return kernel;
}

TEST(Checker, FindsMisusedSums) {
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operand loss = collective(plan, "loss.reduce")->destinations(0);
        pb::Operand other = loss;
        other.set_buffer(bufferNamed(plan, "scale"));
        pb::Kernel *again = appendKernel(plan, "cross_entropy");
        *again = findOperation(plan, "cross_entropy")->kernel();
        *again->mutable_operands(3) = other;
        pb::Kernel *add = appendKernel(plan, "add");
        *add->add_operands() = collective(plan, "loss.reduce")->sources(0);
        *add->add_operands() = other;
        *add->add_operands() = loss;
      },
      "exactly-once", "output 'loss' has a term twice", mesh(1, 1));
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "cross_entropy_grad", 3)
            ->set_buffer(bufferNamed(plan, "loss.sum"));
      },
      "exactly-once", "which lacks microbatches: it is the sum of those so far",
      mesh(1, 1, 2));
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operand mine = collective(plan, "loss.reduce")->sources(0);
        pb::Operand loss = collective(plan, "loss.reduce")->destinations(0);
        pb::Kernel *add = appendKernel(plan, "add");
        *add->add_operands() = mine;
        *add->add_operands() = mine;
        *add->add_operands() = loss;
      },
      "exactly-once", "counts a term of a sum over tokens twice");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operation *reduce = findOperation(plan, "loss.reduce");
        pb::Copy copy;
        *copy.mutable_source() = reduce->collective().destinations(0);
        copy.mutable_source()->set_buffer(bufferNamed(plan, "dloss"));
        *copy.mutable_destination() = reduce->collective().destinations(0);
        *reduce->mutable_copy() = copy;
      },
      "role", "output 'loss' must be a sum over tokens, found data");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operand loss = collective(plan, "loss.reduce")->destinations(0);
        pb::Kernel *cast = appendKernel(plan, "cast");
        *cast->add_operands() =
            collective(plan, "norm.reduce")->destinations(0);
        *cast->add_operands() = loss;
      },
      "role", "output 'loss' holds squares of gradients");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Operand all = collective(plan, "norm.reduce")->destinations(0);
        pb::Operand mine = collective(plan, "norm.reduce")->sources(0);
        pb::Kernel *square = appendKernel(plan, "sum_squares");
        *square->add_operands() = all;
        *square->add_operands() = mine;
      },
      "role", "which holds squares of gradients, expected a value");
}

TEST(Checker, FindsOtherCotangents) {
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "linear_dgrad", 0)
            ->set_buffer(bufferNamed(plan, "logits"));
      },
      "exactly-once", "passes on another gradient");
}

/// Adds to the first region: `full` into column bands of a [4, 6] matrix, and a
/// cast of `columns` columns from column `from` on.
static pb::Plan
bandPlan(const std::vector<std::pair<uint64_t, uint64_t>> &bands, uint64_t from,
         uint64_t columns) {
  pb::Plan plan = buildStep();
  uint32_t matrix = static_cast<uint32_t>(plan.buffers_size());
  for (int i = 0; i < 2; ++i) {
    pb::Buffer *buffer = plan.add_buffers();
    buffer->set_offset(plan.memory(0).size());
    buffer->set_size(4 * 6 * 4);
    plan.mutable_memory(0)->set_size(plan.memory(0).size() + 256);
  }
  auto operand = [](uint32_t buffer, uint64_t first, uint64_t width) {
    pb::Operand result;
    result.set_buffer(buffer);
    result.set_dtype(pb::F32);
    result.add_dims(4);
    result.add_dims(width);
    result.set_offset(first * 4);
    result.set_pitch(6);
    return result;
  };
  pb::Region *once = plan.mutable_programs(0)->mutable_regions(0);
  pb::Operation full = *findOperation(plan, "full");
  for (auto [first, width] : bands) {
    pb::Operation *added = once->add_operations();
    *added = full;
    *added->mutable_kernel()->mutable_operands(0) =
        operand(matrix, first, width);
  }
  pb::Kernel *cast = once->add_operations()->mutable_kernel();
  plan.add_strings("cast");
  cast->set_name(static_cast<uint32_t>(plan.strings_size() - 1));
  cast->set_version(1);
  *cast->add_operands() = operand(matrix, from, columns);
  *cast->add_operands() = operand(matrix + 1, 0, columns);
  restateClaims(plan);
  return plan;
}

TEST(Checker, TellsColumnBandsApart) {
  expectLegal(bandPlan({{0, 4}, {4, 2}}, 0, 6));
  expectLegal(bandPlan({{4, 2}, {0, 4}}, 4, 2));
  expectLegal(bandPlan({{0, 4}}, 1, 3));
  expectLegal(bandPlan({{1, 4}, {0, 3}}, 0, 5));
  for (const pb::Plan &plan :
       {bandPlan({{0, 4}}, 0, 6), bandPlan({{0, 4}}, 4, 2),
        bandPlan({{0, 4}}, 3, 2), bandPlan({{0, 2}, {3, 3}}, 0, 6)})
    expectFinding(plan, "undefined-read", "reads 'x'");
}
