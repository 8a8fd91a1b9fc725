//===- ShardWriter.h - What a rank's buffers of a parameter start with ----===//

#ifndef GTP_RT_LIB_SHARDWRITER_H
#define GTP_RT_LIB_SHARDWRITER_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/RunPlan.h"
#include "gtp-rt/WeightSource.h"

#include <vector>

namespace gtp::rt {

/// Cuts parameters into shards and writes them, on all cores; the numbers do
/// not depend on how many there are. Keeps its memory from one to the next.
class ShardWriter {
public:
  ShardWriter(const RunPlan &plan, const WeightSource &weights,
              Backend &backend)
      : plan(plan), weights(weights), backend(backend) {}

  /// Weights, in compute and master precision, and zero states, to every rank
  /// of the backend.
  Status write(const plan::pb::Parameter &parameter);

private:
  void cut(const plan::pb::Parameter &parameter, uint64_t rank);
  Status writeShard(const plan::pb::Parameter &parameter, uint64_t rank);
  template <typename Convert>
  Status writeBuffer(uint64_t rank, uint32_t buffer, uint64_t elementBytes,
                     const Convert &convert);

  const RunPlan &plan;
  const WeightSource &weights;
  Backend &backend;
  /// Of the parameter at hand, unless parts of it can be read alone.
  std::vector<float> logical;
  std::vector<float> shard; ///< of the rank at hand
  std::vector<uint8_t> bytes;
};

} // namespace gtp::rt

#endif // GTP_RT_LIB_SHARDWRITER_H
