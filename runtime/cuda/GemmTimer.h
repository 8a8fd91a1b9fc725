//===- GemmTimer.h - Measures the algorithms of a product -----------------===//
//
// Candidates take turns, so that clocks and power are the same for all, back to
// back, as in a step; operands are random, for zeros draw less power, and lie
// in as many places as the L2 cache has no room for.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_CUDA_GEMMTIMER_H
#define GTP_RUNTIME_CUDA_GEMMTIMER_H

#include "Gemm.h"

#include <memory>

namespace gtp::rt::cuda {

class GemmTimer {
public:
  virtual ~GemmTimer() = default;
  /// Takes GPU memory, for as long as it lives, for the largest of `products`.
  /// Fails where there is not enough.
  static StatusOr<std::unique_ptr<GemmTimer>>
  create(const std::vector<const Gemm *> &products);

  /// Nanoseconds a call takes with each choice, a median; infinite for one that
  /// does not run. Takes about a second.
  virtual StatusOr<std::vector<double>>
  measure(const Gemm &gemm, const std::vector<Gemm::Choice> &choices) = 0;

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
