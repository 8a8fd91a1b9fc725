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

bool gtp::test::isComplete() { return false; }

std::string gtp::test::whyNotHere() {
  return rt::countGpus() > 0 ? "" : "this machine has no GPU";
}
