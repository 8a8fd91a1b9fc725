//===- Wait.h - Events and barriers of the host's workers -----------------===//
//
// Nothing here orders more than it must: a ThreadSanitizer build sees exactly
// the edges of the plan, so a missing wait shows as a race. That is why the
// waiter counts below are relaxed and ordered by fences, which make no edge.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_WAIT_H
#define GTP_RUNTIME_HOST_WAIT_H

#include <atomic>
#include <cstdint>

namespace gtp::rt::host {

/// A counter that only grows and that threads can sleep on.
class Event {
public:
  /// Publishes everything the caller has done, under this number.
  void record(uint32_t generation);
  /// Sleeps until a number at or after `generation` is recorded; false when the
  /// run was ended first.
  [[nodiscard]] bool wait(uint32_t generation,
                          const std::atomic<bool> &ended) const;
  /// As `wait`, but for at most about 20 ms; false when still not recorded.
  [[nodiscard]] bool waitBriefly(uint32_t generation) const;
  uint32_t last() const { return value.load(std::memory_order_relaxed); }

private:
  bool reached(uint32_t generation) const {
    // Numbers wrap; two that are compared are never far apart.
    return static_cast<int32_t>(value.load(std::memory_order_acquire) -
                                generation) >= 0;
  }

  std::atomic<uint32_t> value{0};
  mutable std::atomic<uint32_t> waiters{0};
};

/// A join of a fixed number of threads, again and again.
class Barrier {
public:
  explicit Barrier(uint32_t participants) : participants(participants) {}
  /// False when the run was ended before all arrived.
  [[nodiscard]] bool arrive(const std::atomic<bool> &ended);

private:
  const uint32_t participants;
  std::atomic<uint32_t> arrived{0};
  Event phase;
};

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_WAIT_H
