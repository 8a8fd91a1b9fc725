//===- KernelsTest.cpp - Every kernel computes its meaning ----------------===//
//
// Each backend has a program of these tests.
//
//===----------------------------------------------------------------------===//

#include "BackendUnderTest.h"
#include "KernelCases.h"

using namespace gtp;
using namespace gtp::test;

namespace {

const KernelCases &allCases() {
  static const KernelCases cases = [] {
    KernelCases all;
    for (const KernelCases *family :
         {&activationCases(), &attentionCases(), &elementwiseCases(),
          &fusedCases(), &linearCases(), &lossCases(), &normCases(),
          &optimizerCases()})
      all.insert(family->begin(), family->end());
    return all;
  }();
  return cases;
}

TEST(Kernels, EveryKernelOfTheRegistryHasACase) {
  for (const plan::KernelSpec &kernel : plan::kernelRegistry())
    EXPECT_TRUE(allCases().count(std::string(kernel.name)))
        << "kernel " << kernel.name << " has no conformance case";
}

class Kernel : public testing::TestWithParam<std::string> {};

TEST_P(Kernel, ComputesItsMeaning) {
  if (std::string reason = whyNotHere(); !reason.empty())
    GTEST_SKIP() << reason;
  allCases().at(GetParam())();
}

std::vector<std::string> caseNames() {
  std::vector<std::string> names;
  for (const auto &[name, test] : allCases())
    names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, Kernel, testing::ValuesIn(caseNames()),
                         [](const testing::TestParamInfo<std::string> &info) {
                           return info.param;
                         });

TEST(Kernels, OutOfRangeIdsAreErrors) {
  if (std::string reason = whyNotHere(); !reason.empty())
    GTEST_SKIP() << reason;
  HostPlan plan;
  uint32_t ids = plan.buffer(8, pb::Buffer::INPUT);
  uint32_t table = plan.buffer(48, pb::Buffer::PERSISTENT);
  uint32_t out = plan.buffer(32);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "embedding",
              {operand(ids, pb::I32, {2}), operand(table, pb::F32, {3, 4}),
               operand(out, pb::F32, {2, 4})});
  for (int32_t id : {-1, 3}) {
    auto backend = backendUnderTest(plan.plan);
    write<int32_t>(*backend, 0, ids, {2, id});
    std::string message = backend->runStep(0, nullptr).message();
    EXPECT_NE(message.find("token id " + std::to_string(id) +
                           " at position 1 is outside the table's 3 rows"),
              std::string::npos)
        << message;
  }
}

/// Documents start at or before each of their tokens.
TEST(Kernels, OutOfRangeDocumentStartsAreErrors) {
  if (std::string reason = whyNotHere(); !reason.empty())
    GTEST_SKIP() << reason;
  HostPlan plan;
  uint32_t starts = plan.buffer(16, pb::Buffer::INPUT);
  uint32_t x = plan.buffer(32, pb::Buffer::PERSISTENT);
  uint32_t table = plan.buffer(16, pb::Buffer::PERSISTENT);
  uint32_t out = plan.buffer(32);
  plan.kernel(plan.region(pb::Region::ONCE), 0, "add_positions",
              {operand(x, pb::F32, {2, 2, 2}), operand(table, pb::F32, {2, 2}),
               operand(out, pb::F32, {2, 2, 2}),
               operand(starts, pb::I32, {2, 2})});
  for (int32_t start : {-1, 2}) {
    auto backend = backendUnderTest(plan.plan);
    write<int32_t>(*backend, 0, starts, {0, 1, 0, start});
    std::string message = backend->runStep(0, nullptr).message();
    EXPECT_NE(message.find("the document of token 1 of a sequence starts at " +
                           std::to_string(start) +
                           ", expected an index from 0 to the token's"),
              std::string::npos)
        << message;
  }
}

} // namespace
