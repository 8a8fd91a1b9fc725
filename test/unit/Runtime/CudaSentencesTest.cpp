//===- CudaSentencesTest.cpp - What CUDA says of plans it cannot run ------===//
//
// Most is said while a plan is decoded, which needs no GPU; the rest is skipped
// on a machine without one.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "CudaTarget.h"
#include "DeviceMemory.h"
#include "Driver.h"
#include "GemmChooser.h"
#include "GemmTimer.h"
#include "HostPlan.h"
#include "NcclRunner.h"
#include "TemporaryFolder.h"
#include "gtp-rt/CudaBackend.h"

#include <fstream>
#include <new>

using namespace gtp;
using namespace gtp::test;
namespace cuda = gtp::rt::cuda;

namespace {

void expectSays(const Status &status, const std::string &sentence) {
  EXPECT_NE(status.message().find(sentence), std::string::npos)
      << "expected '" << sentence << "', found '" << status.message() << "'";
}

/// What decoding says of the plan, on any machine.
Status decoded(const HostPlan &plan) {
  cuda::Context context;
  cuda::CudaTarget target(context);
  return rt::decode(plan.plan, target).status();
}

/// One call of a kernel on F32 operands in one buffer.
struct OneCall {
  HostPlan plan;
  uint32_t buffer;
  pb::Kernel *kernel;

  OneCall(const std::string &name, const std::vector<Dims> &dims,
          uint64_t bytes) {
    buffer = plan.buffer(bytes);
    std::vector<pb::Operand> operands;
    for (const Dims &of : dims)
      operands.push_back(operand(buffer, pb::F32, of));
    kernel = plan.kernel(plan.region(pb::Region::ONCE), 0, name, operands);
  }
  OneCall &integer(const std::string &name, int64_t value) {
    plan.attribute(kernel, name)->set_i(value);
    return *this;
  }
  OneCall &real(const std::string &name, double value) {
    plan.attribute(kernel, name)->set_f(value);
    return *this;
  }
};

TEST(CudaSentences, MoreThanKernelsTake) {
  expectSays(decoded(OneCall("add", std::vector<Dims>(1002, {8}), 256).plan),
             "it adds 1001 tensors; the cuda backend takes 1000");

  const uint64_t wide = uint64_t(1) << 20;
  OneCall norm("rms_norm_grad", {{1, wide}, {1, wide}, {wide}, {1, wide}},
               4 * wide);
  norm.real("eps", 1e-5).integer("unit_offset", 0);
  expectSays(decoded(norm.plan), "the norm is over 1048576 features, more than "
                                 "a block of the GPU has shared memory for");

  const Dims heads = {1, 4, 512};
  OneCall attention("attention", {heads, heads, heads, heads, {1, 1, 4}}, 8192);
  *attention.kernel->add_operands() =
      operand(attention.plan.buffer(256), pb::U8, {64});
  attention.integer("heads", 1).integer("kv_heads", 1).integer("causal", 1);
  attention.real("scale", 1);
  expectSays(decoded(attention.plan),
             "a head has 512 features; the cuda backend takes up to 256");
}

TEST(CudaSentences, ValuesThatTypesLack) {
  HostPlan full;
  pb::Kernel *kernel = full.kernel(full.region(pb::Region::ONCE), 0, "full",
                                   {operand(full.buffer(64), pb::I32, {8})});
  full.attribute(kernel, "value")->set_f(0x1p31);
  expectSays(decoded(full),
             "the cuda backend cannot fill 'out' i32[8] with 2147483648.0");
}

/// What the registry allows and CUDA does not do.
TEST(CudaSentences, TypesThatItDoesNotComputeIn) {
  HostPlan mixed;
  mixed.kernel(mixed.region(pb::Region::ONCE), 0, "linear",
               {operand(mixed.buffer(64), pb::F32, {4, 4}),
                operand(mixed.buffer(64), pb::F32, {4, 4}),
                operand(mixed.buffer(32), pb::BF16, {4, 4})});
  expectSays(decoded(mixed), "is bf16; cuBLASLt has no product of f32 "
                             "operands that rounds to it; compile with "
                             "--grad-dtype=f32");
  HostPlan wide;
  auto of = [&] { return operand(wide.buffer(128), pb::F64, {4, 4}); };
  wide.kernel(wide.region(pb::Region::ONCE), 0, "linear", {of(), of(), of()});
  expectSays(decoded(wide),
             "is neither f32 nor bf16, which the cuda backend multiplies in");
  HostPlan product;
  auto x = [&] { return operand(product.buffer(128), pb::F64, {16}); };
  product.kernel(product.region(pb::Region::ONCE), 0, "mul", {x(), x(), x()});
  expectSays(decoded(product),
             "operand 'a' f64[16] is neither f32 nor bf16, which the cuda "
             "backend computes in");
}

/// The registry has none that CUDA lacks, so this asks the target itself.
TEST(CudaSentences, KernelsThatItLacks) {
  HostPlan plan;
  pb::Kernel *kernel = plan.kernel(
      plan.region(pb::Region::ONCE), 0, "mul",
      std::vector<pb::Operand>(3, operand(plan.buffer(64), pb::F32, {8})));
  plan::KernelSpec spec = *plan::lookupKernel("mul");
  spec.name = "of_another_backend";
  cuda::Context context;
  expectSays(cuda::CudaTarget(context)
                 .kernel(rt::CallSite(plan.plan, *kernel, spec))
                 .status(),
             "the cuda backend has no implementation of it; --backend=host "
             "runs it");
}

TEST(CudaSentences, GroupsOfTooManyRanks) {
  HostPlan plan({{"gtp", 65}});
  plan.communicator({0});
  rt::Code code;
  code.ranks = 65;
  code.communicators.push_back(
      rt::groupsOf(plan.plan.mesh(), plan.plan.communicators(0)));
  auto noOne = [](const std::string &) -> StatusOr<std::vector<std::string>> {
    return Status::error("nobody is there");
  };
  expectSays(cuda::createNcclRunner(plan.plan, code, 0, noOne).status(),
             "a communicator has 65 ranks; the cuda backend takes 64");
}

TEST(CudaSentences, TransportsLeftToItUnderALimit) {
  HostPlan plan({{"gtp", 2}});
  plan.plan.mutable_claims()->set_collective_ctas(16);
  plan.region(pb::Region::BODY)
      ->add_operations()
      ->mutable_collective()
      ->set_transport(pb::Collective::HOST);
  rt::Code code;
  auto noOne = [](const std::string &) -> StatusOr<std::vector<std::string>> {
    return Status::error("nobody is there");
  };
  auto status = [&] {
    return cuda::createNcclRunner(plan.plan, code, 0, noOne).status();
  };
  expectSays(status(), "the plan limits the multiprocessors that collectives "
                       "hold together, to 16, and a collective goes by HOST, "
                       "which leaves the transport to the backend; compile it "
                       "for a GPU's --target");
  plan.plan.mutable_claims()->set_collective_ctas(0);
  expectSays(status(), "nobody is there");
}

TEST(CudaSentences, CollectivesThatHoldMoreThanTheGpu) {
  EXPECT_TRUE(cuda::checkMultiprocessors(132, 132).isOk());
  expectSays(cuda::checkMultiprocessors(16, 14),
             "the plan lets collectives that run together hold 16 "
             "multiprocessors, and the GPU has 14; compile it for a target "
             "with a lower cta_reserve");
}

TEST(CudaSentences, ScratchOfProductsBetweenLines) {
  OneCall product("linear", {{1, 8}, {8, 8}, {1, 8}}, 256);
  pb::Operand scratch = operand(product.plan.buffer(512), pb::U8, {256});
  scratch.set_offset(128);
  *product.kernel->add_operands() = scratch;
  expectSays(decoded(product.plan),
             "operand 'scratch' u8[256] is not aligned to 256 bytes, which "
             "cuBLASLt needs");
}

TEST(CudaSentences, ProductsThatNeedTooMuch) {
  EXPECT_TRUE(cuda::checkProductWorkspace(1000, 1000).isOk());
  expectSays(cuda::checkProductWorkspace(1001, 1000),
             "it needs a workspace of 1001 bytes; the plan gives the product "
             "1000 of scratch");
  EXPECT_TRUE(cuda::checkTimerMemory(7, 7).isOk());
  expectSays(cuda::checkTimerMemory(8, 7),
             "measuring the algorithms of matrix products takes 8 bytes of GPU "
             "memory, and the GPU has 7 free; --tuning-cache=off takes the "
             "library's first choice");
}

TEST(CudaSentences, TuningCacheThatCannotBeSaved) {
  TemporaryFolder folder;
  const std::string place = folder.path("cache");
  auto cache = rt::TuningCache::open(place + "/tuning.json");
  ASSERT_TRUE(cache.isOk()) << cache.message();
  cache->add({"cuBLASLt 13.1.0", "a GPU"}, "a product", {});
  // A file where its folder would be.
  std::ofstream(place) << "x";
  EXPECT_TRUE(cuda::saveMeasured(*cache, 1).isOk()) << "nothing is new";
  Status saved = cuda::saveMeasured(*cache, 0);
  expectSays(saved, "the tuning cache cannot be saved: ");
  expectSays(saved, "; name another --tuning-cache=FILE, or off");
}

/// Its tables are of a size that no machine has.
OneCall hugeRope() {
  const uint64_t positions = uint64_t(1) << 45;
  const Dims dims = {1, positions, 8};
  OneCall rope("rope", {dims, dims}, positions * 8 * sizeof(float));
  rope.integer("head_dim", 8).integer("inverse", 0);
  pb::FloatList *frequencies = rope.plan.plan.add_constants();
  for (int i = 0; i < 4; ++i)
    frequencies->add_values(1);
  rope.plan.attribute(rope.kernel, "frequencies")->set_constant(0);
  return rope;
}

TEST(CudaSentences, TablesThatNoMachineHolds) {
  EXPECT_THROW((void)decoded(hugeRope().plan), std::bad_alloc);
}

HostPlan largerThanAnyGpu() {
  HostPlan plan;
  plan.buffer(uint64_t(1) << 42);
  return plan;
}

HostPlan gatherOfTwo() {
  HostPlan plan({{"gtp", 2}});
  uint32_t axis = plan.communicator({0});
  uint32_t source = plan.buffer(64), destination = plan.buffer(128);
  plan.collective(plan.region(pb::Region::ONCE), 0, pb::Collective::ALL_GATHER,
                  axis, operand(source, pb::F32, {16}),
                  operand(destination, pb::F32, {32}));
  return plan;
}

/// Buffer 0 has the ids, buffer 1 the table.
HostPlan lookup() {
  HostPlan plan;
  uint32_t ids = plan.buffer(16, pb::Buffer::PERSISTENT);
  uint32_t table = plan.buffer(64, pb::Buffer::PERSISTENT);
  uint32_t rows = plan.buffer(64);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "embedding",
              {operand(ids, pb::I32, {1, 4}), operand(table, pb::F32, {4, 4}),
               operand(rows, pb::F32, {1, 4, 4})});
  return plan;
}

/// What is wrong with these is not the plan.
TEST(CudaSentences, PlansOfTheGpuTestsAreRight) {
  for (const HostPlan &plan :
       {HostPlan(), largerThanAnyGpu(), gatherOfTwo(), lookup()}) {
    Status status = decoded(plan);
    EXPECT_TRUE(status.isOk()) << status.message();
  }
}

class CudaSentencesOnGpu : public TestOnBackend {};

Status refusal(const HostPlan &plan, uint64_t rank = 0) {
  rt::CudaPlace place;
  place.rank = rank;
  return rt::createCudaBackend(plan.plan, {}, place).status();
}

TEST_F(CudaSentencesOnGpu, MemoryThatIsNotThere) {
  expectSays(refusal(hugeRope().plan), "plan's rank in this process: ");
  Status status = refusal(largerThanAnyGpu());
  expectSays(status, "the plan needs 439");
  expectSays(status, "free; end what else runs on it, or compile with a "
                     "--memory-budget");
}

TEST_F(CudaSentencesOnGpu, RanksThatAreNotThere) {
  expectSays(refusal(HostPlan(), 2),
             "there is no rank 2 in the plan's mesh of 1");
  expectSays(refusal(gatherOfTwo()),
             "the plan has collectives, so that its 2 ranks "
             "need a process each");
}

TEST_F(CudaSentencesOnGpu, StepsAfterAnError) {
  auto backend = backendUnderTest(lookup().plan);
  write(*backend, 0, 1, std::vector<float>(16, 1));
  write(*backend, 0, 0, std::vector<int32_t>{0, 1, 7, 2});
  Status step = backend->runStep(0, nullptr);
  expectSays(step, "rank 0: token id 7 at position 2 is outside the table's 4 "
                   "rows\nlast completed collectives:");
  expectSays(backend->runStep(0, nullptr),
             "the run has ended with an error before");
}

TEST_F(CudaSentencesOnGpu, FunctionsThatTheDriverLacks) {
  void (*function)() = nullptr;
  expectSays(cuda::findInDriver("cuOfNoVersion", function),
             "the GPU's driver has no cuOfNoVersion; a driver for CUDA 13 (580 "
             "or later) is needed");
}

/// Jobs on several machines need it.
TEST_F(CudaSentencesOnGpu, MemoryIsReachedByNetworkCards) {
  auto memory = cuda::DeviceMemory::allocate(0, 4096);
  ASSERT_TRUE(memory.isOk()) << memory.message();
  decltype(&cuMemRetainAllocationHandle) retain = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemGetAllocationPropertiesFromHandle) read = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  ASSERT_TRUE(cuda::findInDriver("cuMemRetainAllocationHandle", retain).isOk());
  ASSERT_TRUE(cuda::findInDriver("cuMemRelease", release).isOk());
  ASSERT_TRUE(cuda::findInDriver("cuMemGetAllocationPropertiesFromHandle", read)
                  .isOk());
  ASSERT_TRUE(cuda::findInDriver("cuDeviceGetAttribute", attribute).isOk());
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(retain(&handle, (*memory)->base()), CUDA_SUCCESS);
  CUmemAllocationProp properties = {};
  ASSERT_EQ(read(&properties, handle), CUDA_SUCCESS);
  release(handle);
  int direct = 0;
  ASSERT_EQ(
      attribute(&direct,
                CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
      CUDA_SUCCESS);
  EXPECT_EQ(properties.allocFlags.gpuDirectRDMACapable != 0, direct != 0);
}

} // namespace
