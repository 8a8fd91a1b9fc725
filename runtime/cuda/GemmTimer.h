//===- GemmTimer.h - Measures the algorithms of a product -----------------===//
// A GPU full of matrix products runs at the clock that its power allows, so
// what counts is what a call takes when nothing but its like runs: which of two
// is faster in a burst is often slower in the long run. Each candidate
// therefore has the GPU to itself for a while. Operands are random, for zeros
// draw less power, and lie in as many places as the L2 cache has no room for.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_GEMMTIMER_H
#define GTP_RUNTIME_CUDA_GEMMTIMER_H

#include "Gemm.h"

#include <memory>

namespace gtp::rt::cuda {

/// Fails unless `bytes` of operands and workspace fit the `free` of the GPU.
Status checkTimerMemory(uint64_t bytes, uint64_t free);

class GemmTimer {
public:
  virtual ~GemmTimer() = default;
  /// Takes GPU memory, for as long as it lives, for the largest of `products`.
  /// Fails where there is not enough.
  static StatusOr<std::unique_ptr<GemmTimer>>
  create(const std::vector<const Gemm *> &products);

  struct Fastest {
    size_t candidate = 0;
    double ns = 0;      ///< a call takes
    double firstNs = 0; ///< and with the first candidate
  };
  /// The candidate that sustains the highest rate; the first, unless another
  /// one wins by more than measurements vary. Takes up to three s.
  virtual StatusOr<Fastest> fastest(const Gemm &gemm) = 0;

  struct Call {
    const Gemm *gemm;
    Gemm::Choice choice;
  };
  /// Nanoseconds that calls of all of them take, one behind the other, repeated
  /// for so many seconds.
  virtual StatusOr<double> sustain(const std::vector<Call> &all,
                                   double seconds) = 0;
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_GEMMTIMER_H
