//===- BackendUnderTest.h - What a program of kernel tests tests ----------===//
//
// Each backend has a program that links its own of these.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_BACKENDUNDERTEST_H
#define GTP_TEST_UNIT_RUNTIME_BACKENDUNDERTEST_H

#include "gtp-rt/Backend.h"

#include <memory>
#include <string>

namespace gtp::test {

/// A backend that holds `rank` and must exist.
std::unique_ptr<rt::Backend> backendUnderTest(const plan::pb::Plan &plan,
                                              uint64_t rank = 0);

/// Whether it has what float32 training with the mean over tokens does not
/// need: bfloat16, masters in two halves, means over sequences.
bool isComplete();

/// Whether the libraries that it calls sum bfloat16 in the order in which they
/// sum float32.
bool librariesSumAlike();

/// Why the backend cannot run on this machine; empty where it can.
std::string whyNotHere();

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_BACKENDUNDERTEST_H
