//===- OwnPieceTest.cpp - Gathers that find the rank's shard in place -----===//
//
// A copy puts the own shard where a gather reads it. What the checker must
// refuse is every other way in which the two can be.
//
//===----------------------------------------------------------------------===//

#include "CheckerTest.h"

#include "gtp/Plan/Operand.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

namespace {

constexpr uint32_t gtpAxis = 1;

/// The gather of `weight` in place, behind a copy on its stream.
void gatherInPlace(pb::Plan &plan, const std::string &weight) {
  const std::string name = weight + ".gather";
  auto [region, index] = findPlace(plan, name);
  pb::Operation copy = region->operations(index);
  plan.add_strings(weight + ".copy");
  copy.set_source(static_cast<uint32_t>(plan.strings_size() - 1));
  copy.clear_event_plus1();
  pb::Operation &gather = *region->mutable_operations(index);
  gather.clear_waits();
  pb::Operand &source = *gather.mutable_collective()->mutable_sources(0);
  pb::Copy body;
  *body.mutable_source() = source;
  source.set_buffer(gather.collective().destinations(0).buffer());
  pb::AxisStride *stride = source.add_rank_strides();
  stride->set_axis(gtpAxis);
  stride->set_stride(*byteExtent(source));
  *body.mutable_destination() = source;
  *copy.mutable_copy() = body;
  region->add_operations();
  for (int i = region->operations_size() - 1; i > index; --i)
    region->mutable_operations()->SwapElements(i, i - 1);
  *region->mutable_operations(index) = copy;
  restateClaims(plan);
}

pb::Plan inPlacePlan(const StepOptions &options = {}) {
  pb::Plan plan = buildStep(options);
  gatherInPlace(plan, "table");
  gatherInPlace(plan, "head");
  return plan;
}

pb::Copy &copyOf(pb::Plan &plan, const std::string &weight = "head") {
  return *findOperation(plan, weight + ".copy")->mutable_copy();
}

pb::Operand &sourceOf(pb::Plan &plan) {
  return *collective(plan, "head.gather")->mutable_sources(0);
}

void expectRefused(const std::function<void(pb::Plan &)> &change,
                   const std::string &rule, const std::string &text,
                   const StepOptions &options = {}) {
  pb::Plan plan = inPlacePlan(options);
  change(plan);
  expectFinding(plan, rule, text);
}

} // namespace

TEST(OwnPiece, IsLegalOnAllMeshes) {
  for (uint64_t dp : {1, 2})
    for (uint64_t gtp : {2, 3})
      for (uint64_t microbatches : {1, 3})
        expectLegal(inPlacePlan(mesh(dp, gtp, microbatches)));
  StepOptions bf16;
  bf16.bf16 = true;
  expectLegal(inPlacePlan(bf16));
  expectLegal(inPlacePlan(apart(2)));
}

TEST(OwnPiece, GathersOfParametersCountAsThat) {
  EXPECT_EQ(inPlacePlan().claims().gathered_peak_bytes(),
            buildStep().claims().gathered_peak_bytes());
}

TEST(OwnPiece, NeedsTheCopy) {
  expectRefused(
      [](pb::Plan &plan) {
        // Something else of the same time in its stead.
        pb::Copy &copy = copyOf(plan);
        copy.mutable_destination()->clear_rank_strides();
        copy.mutable_destination()->set_buffer(bufferNamed(plan, "dx"));
      },
      "undefined-read", "gathers in place, and buffer ", apart());
  expectRefused([](pb::Plan &plan) { erase(plan, "head.copy"); },
                "undefined-read", "a copy must put it there before");
}

TEST(OwnPiece, IsCopiedBeforeTheGather) {
  expectRefused(
      [](pb::Plan &plan) {
        auto [region, index] = findPlace(plan, "head.copy");
        region->mutable_operations()->SwapElements(index, index + 1);
      },
      "undefined-read", "a copy must put it there before");
  expectRefused(
      [](pb::Plan &plan) {
        // Nothing orders the two.
        findOperation(plan, "head.copy")->set_stream(2);
      },
      "race", "no wait orders the two");
}

TEST(OwnPiece, IsThatOfTheGather) {
  expectRefused(
      [](pb::Plan &plan) {
        // Of another parameter.
        *copyOf(plan).mutable_source() = copyOf(plan, "table").source();
      },
      "weight-version", "of parameter 'table'");
  expectRefused(
      [](pb::Plan &plan) {
        copyOf(plan).mutable_destination()->mutable_rank_strides(0)->set_axis(
            0);
      },
      "undefined-read", "a copy must put it there before", mesh(2, 2));
  expectRefused(
      [](pb::Plan &plan) {
        copyOf(plan).mutable_destination()->mutable_rank_strides(0)->set_stride(
            24);
      },
      "undefined-read", "a copy must put it there before");
  expectRefused(
      [](pb::Plan &plan) {
        for (pb::Operand *operand : {copyOf(plan).mutable_destination(),
                                     copyOf(plan).mutable_source()})
          operand->set_dims(0, operand->dims(0) - 1);
      },
      "undefined-read", "a copy must put it there before");
}

TEST(OwnPiece, IsWhereTheGatherHasIt) {
  const auto *sentence = "depends on the rank and is not the rank's own piece";
  expectRefused(
      [](pb::Plan &plan) {
        sourceOf(plan).mutable_rank_strides(0)->set_axis(0);
      },
      "structure", sentence, mesh(2, 2));
  expectRefused(
      [](pb::Plan &plan) {
        sourceOf(plan).mutable_rank_strides(0)->set_stride(24);
      },
      "structure", sentence);
  expectRefused(
      [](pb::Plan &plan) {
        sourceOf(plan).set_buffer(bufferNamed(plan, "head.compute"));
        sourceOf(plan).mutable_rank_strides(0)->set_stride(0);
      },
      "structure", sentence);
  expectRefused([](pb::Plan &plan) { sourceOf(plan).clear_rank_strides(); },
                "alias", "operands of one operation must not overlap");
}

TEST(OwnPiece, NobodyElseReadsIt) {
  expectRefused(
      [](pb::Plan &plan) {
        // The product reads the slot before the others' pieces came.
        auto [region, index] = findPlace(plan, "head.gather");
        uint32_t event = region->operations(index).event_plus1();
        region->mutable_operations()->DeleteSubrange(index, 1);
        findOperation(plan, "head.copy")->set_event_plus1(event);
      },
      "undefined-read", "hold nothing that this step wrote");
}

TEST(OwnPiece, OtherOperationsWriteTheSameOnAllRanks) {
  expectRefused(
      [](pb::Plan &plan) {
        pb::AxisStride *stride =
            copyOf(plan).mutable_source()->add_rank_strides();
        stride->set_axis(gtpAxis);
      },
      "unsupported", "what is not dense or depends on the rank too");
  expectRefused(
      [](pb::Plan &plan) {
        pb::Operand *out = operand(plan, "linear", 2);
        out->set_dims(0, 1);
        pb::AxisStride *stride = out->add_rank_strides();
        stride->set_axis(gtpAxis);
        stride->set_stride(4);
      },
      "structure", "");
  expectRefused(
      [](pb::Plan &plan) {
        pb::Operand *source =
            collective(plan, "head.scatter")->mutable_sources(0);
        source->add_rank_strides()->set_axis(gtpAxis);
      },
      "unsupported", "a reduction's source with a stride over ranks");
}
