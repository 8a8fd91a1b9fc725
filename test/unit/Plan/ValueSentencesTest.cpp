//===- ValueSentencesTest.cpp - What the checker says of values -----------===//
//
// A row a sentence about what bytes hold, so that its words are those that a
// user reads. CheckerValuesTest.cpp has the rules.
//
//===----------------------------------------------------------------------===//

#include "CheckerTest.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

namespace {

/// A copy of an operation at the end of a region, which nobody waits for;
/// region 1 is the body, 2 the update.
pb::Operation &again(pb::Plan &plan, const std::string &name, int region = 2) {
  pb::Operation copy = *findOperation(plan, name);
  copy.clear_waits();
  copy.clear_event_plus1();
  pb::Operation *added =
      plan.mutable_programs(0)->mutable_regions(region)->add_operations();
  *added = copy;
  return *added;
}

uint32_t addString(pb::Plan &plan, const std::string &text) {
  plan.add_strings(text);
  return static_cast<uint32_t>(plan.strings_size() - 1);
}

void rename(pb::Plan &plan, pb::Kernel &kernel, const std::string &name,
            uint32_t version = 1) {
  kernel.set_name(addString(plan, name));
  kernel.set_version(version);
}

pb::Operand operandOf(const pb::Plan &plan, const std::string &buffer,
                      pb::DType type, std::vector<uint64_t> dims,
                      uint64_t offset = 0) {
  pb::Operand result;
  result.set_buffer(bufferNamed(plan, buffer));
  result.set_dtype(type);
  result.mutable_dims()->Add(dims.begin(), dims.end());
  result.set_offset(offset);
  return result;
}

/// A cast at the end of the update.
void appendCast(pb::Plan &plan, const pb::Operand &from,
                const pb::Operand &to) {
  pb::Operation &added = again(plan, "rms_norm");
  pb::Kernel kernel;
  *kernel.add_operands() = from;
  *kernel.add_operands() = to;
  *added.mutable_kernel() = kernel;
  rename(plan, *added.mutable_kernel(), "cast");
}

/// The scatter of head's gradient becomes a copy.
pb::Copy &scatterAsCopy(pb::Plan &plan) {
  skip(plan, "head.scatter");
  return *findOperation(plan, "head.scatter")->mutable_copy();
}

/// The norm becomes a bias: its gradient is that of what it is added to.
pb::Plan biasPlan() {
  pb::Plan plan = buildStep();
  pb::Kernel *forward = findOperation(plan, "rms_norm")->mutable_kernel();
  forward->clear_attributes();
  rename(plan, *forward, "add_bias");
  pb::Kernel *backward = findOperation(plan, "rms_norm_grad")->mutable_kernel();
  backward->clear_attributes();
  // dy, x, weight, dx, dweight: the first and the last are left.
  backward->mutable_operands()->DeleteSubrange(1, 3);
  rename(plan, *backward, "bias_grad");
  operand(plan, "embedding_grad", 0)->set_buffer(bufferNamed(plan, "dy"));
  restateClaims(plan);
  return plan;
}

} // namespace

TEST(ValueSentences, OfAliasesAndCollectives) {
  expectBroken(
      [](pb::Plan &plan) {
        operand(plan, "rms_norm", 2)->set_buffer(bufferNamed(plan, "x"));
      },
      "alias", ": operands of one operation must not overlap what it writes");
  expectBroken(
      [](pb::Plan &plan) {
        makeWindows(plan);
        plan.mutable_claims()->set_collective_ctas(7);
        collective(plan, "gain.reduce")
            ->set_transport(pb::Collective::SYMMETRIC);
        takeCtas(plan, "gain.reduce", 8);
      },
      "collective-ctas",
      " and the collectives that may run beside it take 8 CTAs, above the "
      "plan's limit of 7");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Collective *reduce = collective(plan, "gain.reduce");
        reduce->mutable_sources(0)->set_dims(0, 5);
        reduce->mutable_sources(0)->set_offset(4);
        reduce->mutable_destinations(0)->set_dims(0, 5);
      },
      "role", ", found a piece of the gradient of parameter 'gain'");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Collective *scatter = collective(plan, "head.scatter");
        scatter->mutable_sources(0)->set_dims(0, 6);
        scatter->mutable_destinations(0)->set_dims(0, 3);
      },
      "pad", "expected all 240 bytes and zeros up to 288");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Collective *gather =
            again(plan, "head.gather").mutable_collective();
        gather->mutable_sources(0)->set_buffer(
            bufferNamed(plan, "head.gradient"));
      },
      "role", ", expected a weight or an activation");
  expectBroken(
      [](pb::Plan &plan) {
        collective(plan, "head.scatter")->set_communicator(dpReduce);
      },
      "exactly-once", ", whose shards are cut over gtp", mesh(2, 2));
}

TEST(ValueSentences, OfCopies) {
  expectBroken(
      [](pb::Plan &plan) {
        pb::Copy &copy = scatterAsCopy(plan);
        *copy.mutable_source() = operandOf(plan, "head.dfull", pb::F32, {6, 3});
        copy.mutable_source()->set_pitch(6);
        *copy.mutable_destination() =
            operandOf(plan, "head.gradient", pb::F32, {6, 3});
      },
      "role",
      "copies the gradient of parameter 'head', partial over gtp, "
      "cut over none with a pitch or stride");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Copy &copy = scatterAsCopy(plan);
        copy.mutable_source()->set_dims(0, 6);
        pb::AxisStride *stride = copy.mutable_source()->add_rank_strides();
        stride->set_axis(1);
        stride->set_stride(72);
      },
      "role", " that is not the rank's shard");
}

TEST(ValueSentences, OfWhatIsRead) {
  expectBroken([](pb::Plan &plan) { again(plan, "linear"); }, "weight-version",
               ", which is not the version of this place in the step");
  expectBroken([](pb::Plan &plan) { again(plan, "linear"); }, "exactly-once",
               "uses a weight outside the body, where no gradient accounts "
               "for it");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *linear = again(plan, "linear").mutable_kernel();
        *linear->mutable_operands(1) =
            operandOf(plan, "head.compute", pb::F32, {6, 6});
        *linear->mutable_operands(2) =
            operandOf(plan, "dx", pb::F32, {2, 4, 6});
      },
      "weight-version", ": a gather is missing before it");
  expectBroken(
      [](pb::Plan &plan) {
        appendCast(plan, operandOf(plan, "head.compute", pb::F32, {6, 6}),
                   operandOf(plan, "dx", pb::F32, {6, 6}));
      },
      "role", ", expected an activation or a gradient");
  // A sum of the rank's tokens beside a number that all ranks have.
  expectBroken(
      [](pb::Plan &plan) {
        *again(plan, "cross_entropy").mutable_kernel()->mutable_operands(3) =
            operandOf(plan, "dx", pb::F32, {});
        *again(plan, "full").mutable_kernel()->mutable_operands(0) =
            operandOf(plan, "dx", pb::F32, {}, 4);
        appendCast(plan, operandOf(plan, "dx", pb::F32, {2}),
                   operandOf(plan, "dy", pb::F32, {2}));
      },
      "partial", ", of which parts are partial over different axes");
}

TEST(ValueSentences, OfContributions) {
  expectBroken(
      [](pb::Plan &plan) { again(plan, "head.scatter", /*region=*/1); },
      "exactly-once",
      " a contribution to the gradient of parameter 'head' that it already "
      "has",
      apart(3));
  expectBroken([](pb::Plan &plan) { again(plan, "linear_wgrad"); },
               "exactly-once", "contributes to a gradient outside the body");
  expectBroken(
      [](pb::Plan &plan) {
        appendCast(plan, operandOf(plan, "gain.partial", pb::F32, {5}, 4),
                   operandOf(plan, "dx", pb::F32, {5}));
      },
      "role", "reads a piece of the gradient of parameter 'gain'");
  // A scalar, and a gradient.
  expectBroken(
      [](pb::Plan &plan) {
        *again(plan, "keep_first").mutable_kernel()->mutable_operands(0) =
            operandOf(plan, "square.mine", pb::F64, {});
      },
      "partial", "keeps the first of a value that is already partial over gtp");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *keep = again(plan, "keep_first").mutable_kernel();
        *keep->mutable_operands(0) =
            operandOf(plan, "gain.partial", pb::F32, {6});
        *keep->mutable_operands(1) = operandOf(plan, "dx", pb::F32, {6});
      },
      "partial", "keeps the first of a value that is already partial over gtp");
  pb::Plan plan = biasPlan();
  expectLegal(plan);
  operand(plan, "embedding_grad", 0)->set_buffer(bufferNamed(plan, "y"));
  expectFinding(plan, "exactly-once",
                "the contributions to the gradient of parameter 'gain' are "
                "computed from other gradients than that of what it was added "
                "to");
}

TEST(ValueSentences, OfUpdates) {
  expectBroken([](pb::Plan &plan) { erase(plan, "loss.reduce"); },
               "undefined-read",
               " must hold a value, found bytes that nothing wrote or that "
               "were taken");
  // A row of the gradient, and none of it.
  expectBroken(
      [](pb::Plan &plan) {
        pb::Copy &copy = scatterAsCopy(plan);
        copy.mutable_source()->set_dims(0, 1);
        copy.mutable_destination()->set_dims(0, 1);
      },
      "undefined-read",
      " must hold the reduced gradient of parameter 'head', found bytes that "
      "nothing wrote");
  expectBroken([](pb::Plan &plan) { erase(plan, "head.scatter"); },
               "exactly-once", "found its bytes unwritten or taken", apart());
  expectBroken([](pb::Plan &plan) { again(plan, "adamw.2", /*region=*/1); },
               "weight-version",
               "updates parameter 'head' outside the update region");
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *adamw = findOperation(plan, "adamw.2")->mutable_kernel();
        *adamw->add_operands() = operandOf(plan, "dx", pb::F32, {6, 6});
      },
      "role",
      "publishes a compute copy of parameter 'head', whose compute buffer is "
      "its master");
}

TEST(ValueSentences, OfRemainders) {
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *adamw = findOperation(plan, "adamw.2")->mutable_kernel();
        pb::Kernel old = *adamw;
        adamw->clear_operands();
        *adamw->add_operands() = old.operands(0);
        adamw->mutable_operands(0)->set_dtype(pb::BF16);
        *adamw->add_operands() = operandOf(plan, "dx", pb::I16, {6, 6});
        for (int i = 1; i < old.operands_size(); ++i)
          *adamw->add_operands() = old.operands(i);
        rename(plan, *adamw, "adamw_split");
      },
      "role", "updates a remainder of parameter 'head', which has none");
  StepOptions options;
  options.bf16 = options.split = true;
  expectBroken(
      [](pb::Plan &plan) {
        pb::Kernel *adamw = findOperation(plan, "adamw.2")->mutable_kernel();
        adamw->mutable_operands()->DeleteSubrange(1, 1);
        // The moments of a bf16 master are bf16.
        for (int i : {1, 2})
          adamw->mutable_operands(i)->set_dtype(pb::BF16);
        rename(plan, *adamw, "adamw", 2);
      },
      "role",
      "updates parameter 'head' without its remainder, which is the rest of "
      "its master",
      options);
}
