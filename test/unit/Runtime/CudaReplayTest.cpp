//===- CudaReplayTest.cpp - Steps as graphs -------------------------------===//

#include "BackendUnderTest.h"
#include "HostPlan.h"

using namespace gtp;
using namespace gtp::test;

namespace {

class CudaReplay : public TestOnBackend {};

/// Three streams, a dependency between each two, in a body of three iterations:
/// what a replayed graph gives must be what issued operations give.
TEST_F(CudaReplay, EqualsEager) {
  HostPlan plan;
  uint32_t x = plan.buffer(4 * 1000, pb::Buffer::PERSISTENT);
  uint32_t a = plan.buffer(4 * 1000), b = plan.buffer(4 * 1000);
  auto of = [](uint32_t buffer) { return operand(buffer, pb::F32, {10, 100}); };
  pb::Region *region = plan.region(pb::Region::BODY, 3);
  pb::Kernel *first = plan.kernel(region, 0, "scale", {of(x), of(a)});
  plan.attribute(first, "factor")->set_f(0.75);
  plan.kernel(region, 1, "mul", {of(a), of(a), of(b)});
  HostPlan::waitFor(region, 0);
  plan.kernel(region, 2, "add", {of(a), of(b), of(x)});
  HostPlan::waitFor(region, 1);
  HostPlan::waitFor(region, 0);

  std::vector<float> start(1000);
  for (size_t i = 0; i < start.size(); ++i)
    start[i] = float(i) / 1000;
  auto host = makeBackend(plan.plan);
  auto cuda = backendUnderTest(plan.plan);
  for (rt::Backend *backend : {host.get(), cuda.get()})
    write(*backend, 0, x, start);
  // The third and later steps of CUDA are replays.
  for (unsigned step = 1; step <= 5; ++step) {
    for (rt::Backend *backend : {host.get(), cuda.get()}) {
      Status status = backend->runStep(0, nullptr);
      ASSERT_TRUE(status.isOk()) << status.message();
    }
    EXPECT_EQ(read<float>(*cuda, 0, x, 1000), read<float>(*host, 0, x, 1000))
        << "step " << step;
  }
}

} // namespace
