//===- HostSentencesTest.cpp - What the host says of plans it cannot run --===//
//
// Plans that the checker refuses before, so that only a plan that nobody
// checked brings the backend to say it.
//
//===----------------------------------------------------------------------===//

#include "HostPlan.h"
#include "HostTarget.h"

using namespace gtp;
using namespace gtp::test;

namespace {

void expectRefusal(const HostPlan &plan, const std::string &sentence) {
  auto backend = rt::createHostBackend(plan.plan, rt::BackendOptions());
  EXPECT_FALSE(backend.isOk()) << "accepted, expected: " << sentence;
  EXPECT_NE(backend.message().find(sentence), std::string::npos)
      << "expected '" << sentence << "', found '" << backend.message() << "'";
}

} // namespace

TEST(HostSentences, CopiesOfOtherShapes) {
  HostPlan plan;
  uint32_t a = plan.buffer(64), b = plan.buffer(64);
  plan.copy(plan.region(pb::Region::ONCE), 0, operand(a, pb::F32, {2, 3}),
            operand(b, pb::F32, {3, 2}));
  expectRefusal(plan, "the copy's source f32[2, 3] and destination f32[3, 2] "
                      "differ in shape");
}

TEST(HostSentences, ScratchBetweenDoubles) {
  HostPlan plan;
  uint32_t x = plan.buffer(1024), bytes = plan.buffer(256);
  auto tensor = [&](const Dims &dims) { return operand(x, pb::F32, dims); };
  pb::Operand scratch = operand(bytes, pb::U8, {64});
  scratch.set_offset(4);
  pb::Kernel *kernel =
      plan.kernel(plan.region(pb::Region::ONCE), 0, "attention",
                  {tensor({1, 4, 2}), tensor({1, 4, 2}), tensor({1, 4, 2}),
                   tensor({1, 4, 2}), tensor({1, 1, 4}), scratch});
  plan.attribute(kernel, "heads")->set_i(1);
  plan.attribute(kernel, "kv_heads")->set_i(1);
  plan.attribute(kernel, "scale")->set_f(1);
  plan.attribute(kernel, "causal")->set_i(1);
  expectRefusal(plan,
                "kernel attention: its scratch is not aligned to 8 bytes");
}

TEST(HostSentences, TypesThatKernelsLack) {
  HostPlan product;
  uint32_t x = product.buffer(64);
  pb::Operand wide = operand(x, pb::F64, {8});
  product.kernel(product.region(pb::Region::ONCE), 0, "mul",
                 {wide, wide, wide});
  expectRefusal(product, "is neither f32 nor bf16, which the host backend");

  HostPlan squares;
  uint32_t y = squares.buffer(64), sum = squares.buffer(8);
  squares.kernel(squares.region(pb::Region::ONCE), 0, "sum_squares",
                 {operand(y, pb::F64, {8}), operand(sum, pb::F64, {})});
  expectRefusal(
      squares,
      "operand 'x' f64[8] is neither f32 nor bf16, which the host backend");

  HostPlan full;
  uint32_t z = full.buffer(64);
  pb::Kernel *kernel = full.kernel(full.region(pb::Region::ONCE), 0, "full",
                                   {operand(z, pb::I32, {8})});
  full.attribute(kernel, "value")->set_f(0x1p31);
  expectRefusal(full, "the host cannot fill 'out' i32[8] with 2147483648.0");
}

/// No machine has an arena for such a call, which is refused before; so this
/// asks the target itself.
TEST(HostSentences, StagesOfTooManyElements) {
  HostPlan plan;
  pb::Operand huge = operand(plan.buffer(256), pb::BF16, {uint64_t(1) << 62});
  pb::Kernel *kernel = plan.kernel(plan.region(pb::Region::ONCE), 0, "add",
                                   {huge, huge, huge, huge});
  rt::host::HostTarget target;
  auto body = target.kernel(
      rt::CallSite(plan.plan, *kernel, *plan::lookupKernel("add")));
  EXPECT_EQ(body.message(), "its bf16 operands are too large together");
}

/// The registry has none that the host lacks.
TEST(HostSentences, KernelsThatItLacks) {
  HostPlan plan;
  uint32_t x = plan.buffer(64);
  pb::Kernel *kernel =
      plan.kernel(plan.region(pb::Region::ONCE), 0, "mul",
                  std::vector<pb::Operand>(3, operand(x, pb::F32, {8})));
  plan::KernelSpec spec = *plan::lookupKernel("mul");
  spec.name = "of_another_backend";
  rt::host::HostTarget target;
  auto body = target.kernel(rt::CallSite(plan.plan, *kernel, spec));
  EXPECT_EQ(body.message(), "the host has no implementation of it");
}
