//===- Wait.cpp - Events and barriers of the host's workers ---------------===//

#include "Wait.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace gtp::rt::host;

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
                  std::atomic<uint32_t>::is_always_lock_free,
              "a futex is a plain 32-bit word");

static const uint32_t *futexWord(const std::atomic<uint32_t> &word) {
  return reinterpret_cast<const uint32_t *>(&word);
}

static void futexWait(const std::atomic<uint32_t> &word, uint32_t seen) {
  // Bounds how late a thread notices that the run was ended.
  timespec timeout{0, 20'000'000};
  syscall(SYS_futex, futexWord(word), FUTEX_WAIT_PRIVATE, seen, &timeout,
          nullptr, 0);
}

static void futexWakeAll(const std::atomic<uint32_t> &word) {
  syscall(SYS_futex, futexWord(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

void Event::record(uint32_t generation) {
  value.store(generation, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiters.load(std::memory_order_relaxed) != 0)
    futexWakeAll(value);
}

bool Event::waitBriefly(uint32_t generation) const {
  // Most waits of a balanced plan are short, and a sleep costs two switches.
  for (int spin = 0; spin < 64; ++spin)
    if (reached(generation))
      return true;
  waiters.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  uint32_t seen = value.load(std::memory_order_relaxed);
  if (static_cast<int32_t>(seen - generation) < 0)
    futexWait(value, seen);
  waiters.fetch_sub(1, std::memory_order_relaxed);
  return reached(generation);
}

bool Event::wait(uint32_t generation, const std::atomic<bool> &ended) const {
  while (!waitBriefly(generation))
    if (ended.load(std::memory_order_relaxed))
      return false;
  return true;
}

bool Barrier::arrive(const std::atomic<bool> &ended) {
  // No other thread can finish this phase before this one has arrived.
  uint32_t next = phase.last() + 1;
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < participants)
    return phase.wait(next, ended);
  arrived.store(0, std::memory_order_relaxed);
  phase.record(next);
  return true;
}
