//===- StepTimer.h - Events around each operation of a step ---------------===//

#ifndef GTP_RUNTIME_CUDA_STEPTIMER_H
#define GTP_RUNTIME_CUDA_STEPTIMER_H

#include "gtp-rt/Backend.h"

#include <cuda_runtime_api.h>

namespace gtp::rt::cuda {

/// The events of one way to run a step, issued again and again or captured
/// once.
class StepTimer {
public:
  StepTimer() = default;
  ~StepTimer();
  StepTimer(const StepTimer &) = delete;
  StepTimer &operator=(const StepTimer &) = delete;

  /// Starts over; what is issued from now on is captured or not.
  Status begin(Timing timing, bool capturing);
  /// Around an operation on its stream. One by one, `before` waits for the last
  /// operation on whatever stream.
  Status before(cudaStream_t stream);
  Status after(cudaStream_t stream, const OperationTime &operation);
  /// Once the step is done; `start` was recorded before it.
  StatusOr<std::vector<OperationTime>> times(cudaEvent_t start) const;

private:
  Status record(size_t number, cudaStream_t stream);

  Timing timing = Timing::None;
  bool isCaptured = false;
  std::vector<cudaEvent_t> events; ///< of operation i: 2i and 2i + 1
  std::vector<OperationTime> operations;
  cudaEvent_t last = nullptr; ///< one by one: behind the last operation
};

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_STEPTIMER_H
