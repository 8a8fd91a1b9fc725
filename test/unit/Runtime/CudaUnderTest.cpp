//===- CudaUnderTest.cpp - CUDA's kernels are under test ------------------===//

#include "BackendUnderTest.h"
#include "gtp-rt/CudaBackend.h"

#include <gtest/gtest.h>

using namespace gtp;

std::unique_ptr<rt::Backend>
gtp::test::backendUnderTest(const plan::pb::Plan &plan, uint64_t rank) {
  rt::CudaPlace place;
  place.rank = rank;
  auto backend = rt::createCudaBackend(plan, {}, place);
  if (!backend.isOk()) {
    ADD_FAILURE() << backend.message();
    std::abort();
  }
  return std::move(*backend);
}

double gtp::test::narrowUnits() {
  // Both compute in float32, but which terms of a sum a thread or a library
  // adds first depends on the type: two float32 that lie on either side of a
  // tie round to neighbours.
  return 1;
}

std::string gtp::test::whyNotHere() {
  return rt::countGpus() > 0 ? "" : "this machine has no GPU";
}
