//===- StepTimer.cpp - Events around each operation of a step -------------===//

#include "StepTimer.h"
#include "Check.h"

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::rt::cuda;

StepTimer::~StepTimer() {
  for (cudaEvent_t event : events)
    cudaEventDestroy(event);
  if (last)
    cudaEventDestroy(last);
}

Status StepTimer::begin(Timing how, bool capturing) {
  timing = how;
  isCaptured = capturing;
  operations.clear();
  if (!last)
    GTP_CUDA(cudaEventCreateWithFlags(&last, cudaEventDisableTiming));
  return Status::ok();
}

Status StepTimer::record(size_t number, cudaStream_t stream) {
  if (number == events.size()) {
    cudaEvent_t event = nullptr;
    GTP_CUDA(cudaEventCreate(&event));
    events.push_back(event);
  }
  // In a graph it is a node that records, not an edge.
  GTP_CUDA(cudaEventRecordWithFlags(events[number], stream,
                                    isCaptured ? cudaEventRecordExternal
                                               : cudaEventRecordDefault));
  return Status::ok();
}

Status StepTimer::before(cudaStream_t stream) {
  if (timing == Timing::OneByOne && !operations.empty())
    GTP_CUDA(cudaStreamWaitEvent(stream, last, 0));
  return record(2 * operations.size(), stream);
}

Status StepTimer::after(cudaStream_t stream, const OperationTime &operation) {
  GTP_RETURN_IF_ERROR(record(2 * operations.size() + 1, stream));
  operations.push_back(operation);
  if (timing == Timing::OneByOne)
    GTP_CUDA(cudaEventRecord(last, stream));
  return Status::ok();
}

StatusOr<std::vector<OperationTime>> StepTimer::times(cudaEvent_t start) const {
  std::vector<OperationTime> found = operations;
  for (size_t i = 0; i < found.size(); ++i) {
    float begin = 0, end = 0; // milliseconds
    GTP_CUDA(cudaEventElapsedTime(&begin, start, events[2 * i]));
    GTP_CUDA(cudaEventElapsedTime(&end, start, events[2 * i + 1]));
    found[i].startNs = static_cast<int64_t>(double(begin) * 1e6);
    found[i].endNs = static_cast<int64_t>(double(end) * 1e6);
  }
  return found;
}
