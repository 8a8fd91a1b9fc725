//===- BackendUnderTest.h - What a program of kernel tests tests ----------===//
//
// Each backend has a program that links its own of these.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_BACKENDUNDERTEST_H
#define GTP_TEST_UNIT_RUNTIME_BACKENDUNDERTEST_H

#include "gtp-rt/Backend.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace gtp::test {

/// A backend that holds `rank` and must exist.
std::unique_ptr<rt::Backend> backendUnderTest(const plan::pb::Plan &plan,
                                              uint64_t rank = 0);

/// By how many units in the last place of bfloat16 a result of a bf16 kernel
/// may differ from the float32 kernel's on the same values, rounded.
double narrowUnits();

/// Why the backend cannot run on this machine; empty where it can.
std::string whyNotHere();

/// Of a test that the backend must run for.
class TestOnBackend : public testing::Test {
protected:
  void SetUp() override {
    if (std::string reason = whyNotHere(); !reason.empty())
      GTEST_SKIP() << reason;
  }
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_BACKENDUNDERTEST_H
