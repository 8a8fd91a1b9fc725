//===- Parallel.h - A loop on all cores -----------------------------------===//

#ifndef GTP_RT_LIB_PARALLEL_H
#define GTP_RT_LIB_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace gtp::rt {

/// Calls run(begin, end) for pieces of [0, count), in no order and on all cores
/// of this process, or as many of them as the machine has threads left for, and
/// returns when all are done. `run` must not throw.
template <typename Run>
void inParallel(uint64_t count, uint64_t piece, const Run &run) {
  const uint64_t pieces = (count + piece - 1) / piece;
  std::atomic<uint64_t> next = 0;
  auto work = [&] {
    for (uint64_t i = next++; i < pieces; i = next++)
      run(i * piece, std::min(count, (i + 1) * piece));
  };
  std::vector<std::thread> helpers;
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  // Where the machine has no more threads, those that there are do all of it.
  bool hasThreads = true;
  for (uint64_t i = 1; hasThreads && i < std::min(cores, pieces); ++i)
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error &) {
      hasThreads = false;
    }
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

} // namespace gtp::rt

#endif // GTP_RT_LIB_PARALLEL_H
