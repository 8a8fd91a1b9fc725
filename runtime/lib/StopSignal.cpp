//===- StopSignal.cpp - SIGTERM asks for an end ---------------------------===//

#include "StopSignal.h"

#include <atomic>

using namespace gtp::rt;

static std::atomic<bool> isRequested;
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may not lock");

StopSignal::StopSignal() {
  isRequested = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { isRequested = true; };
  // Restarting: a write of metrics must not fail because a signal came.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGTERM, &action, &previous);
}

StopSignal::~StopSignal() { ::sigaction(SIGTERM, &previous, nullptr); }

bool StopSignal::requested() const { return isRequested; }
