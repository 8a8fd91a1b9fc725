//===- ParameterStore.h - Parameters, logical and on the ranks ------------===//
//
// Cuts logical tensors into the ranks' shards and puts shards together again.
// One parameter is in memory at a time. Pads are written as zeros and never
// read back.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_PARAMETERSTORE_H
#define GTP_RT_PARAMETERSTORE_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/ControlChannel.h"
#include "gtp-rt/RunPlan.h"
#include "gtp-rt/WeightSource.h"

#include <string>
#include <vector>

namespace gtp::rt {

class ParameterStore {
public:
  /// Checks that every parameter's buffers hold its shard.
  static StatusOr<ParameterStore> create(const RunPlan &plan);

  /// Writes weights, in compute and master precision, and zero states to every
  /// rank of the backend.
  Status initialize(Backend &backend, const WeightSource &weights) const;

  /// Which values of the parameters a dump holds.
  enum class Plane {
    Weights,  ///< master weights, or what stands for them
    Gradients ///< reduced, before clipping
  };
  /// Writes all parameters of the plan as float32 to a safetensors file that
  /// the caller commits. Where ranks are processes of a job, all of them call
  /// it, and rank 0 writes what the others send.
  Status gather(Backend &backend, Plane plane, const std::string &path,
                SafetensorsWriter &writer, ControlChannel *job = nullptr) const;

  /// How many of the reduced gradients that ranks of this process hold are not
  /// finite, and the first: "2 of 9 gradients are not finite, first that of
  /// 'model.norm.weight'".
  StatusOr<std::string> explainNonFinite(Backend &backend) const;

private:
  explicit ParameterStore(const RunPlan &plan) : plan(plan) {}

  RunPlan plan;
};

} // namespace gtp::rt

#endif // GTP_RT_PARAMETERSTORE_H
