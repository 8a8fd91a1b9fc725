//===- ParallelTest.cpp - Loops on all cores ------------------------------===//

#include "Parallel.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

using namespace gtp::rt;

namespace {

/// Whether each of [0, 1000) is met once.
bool meetsAll() {
  std::vector<int> met(1000);
  inParallel(met.size(), 7, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      ++met[i];
  });
  return std::all_of(met.begin(), met.end(), [](int n) { return n == 1; });
}

TEST(Parallel, MeetsEveryIndexOnce) {
  EXPECT_TRUE(meetsAll());
  inParallel(0, 7, [](uint64_t, uint64_t) { FAIL() << "of nothing"; });
}

/// In a process that can start no thread: 0 if all is done nevertheless.
[[noreturn]] void meetAllAlone() {
  // No address space is left for a thread's stack.
  rlimit none = {1, 1};
  setrlimit(RLIMIT_AS, &none);
  bool refused = false;
  try {
    std::thread([] {}).join();
  } catch (const std::system_error &) {
    refused = true;
  }
  _exit(refused && meetsAll() ? 0 : 1);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GTP_NEEDS_ADDRESSES 1
#endif
#endif

TEST(Parallel, DoesWithoutThreadsThatTheMachineRefuses) {
#ifdef GTP_NEEDS_ADDRESSES
  GTEST_SKIP() << "a sanitizer's own memory needs the address space";
#endif
  // A process of its own: this one may keep stacks of threads that have ended.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(meetAllAlone(), testing::ExitedWithCode(0), "");
}

} // namespace
