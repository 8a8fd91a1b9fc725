//===- Evaluation.h - The loss of a text that is not trained on -----------===//

#ifndef GTP_RT_EVALUATION_H
#define GTP_RT_EVALUATION_H

#include "gtp-rt/Backend.h"
#include "gtp-rt/Metrics.h"
#include "gtp-rt/RunPlan.h"
#include "gtp-rt/TokenFile.h"

namespace gtp::rt {

/// A text in pieces: sample i is the T tokens from i*T on, each with its
/// successor as label, so that every token but the first is predicted once. The
/// last sample may be shorter; its rest holds token 0 and counts nowhere.
class EvalData {
public:
  /// `options.sequence` is T. Fails when there is nothing to predict or no
  /// label counts.
  static StatusOr<EvalData> open(TokenFileOptions options);

  const TokenFile &file() const { return text; }
  uint64_t samples() const;
  /// The first sample with a label that counts.
  uint64_t firstCountedSample() const { return counted / sequence; }
  /// Sample `index`, which may be behind the last: then no label counts.
  void readSample(uint64_t index, int32_t *tokens, int32_t *labels) const;

private:
  TokenFile text;
  uint64_t sequence = 0;
  uint64_t counted = 0; ///< the first token whose label counts
};

/// How many runs of the plan's evaluation, each of a global batch, take the
/// samples of `data`; at most `limit` if that is not 0. Fails when no label in
/// so few of them counts, which a run should not find out after its training.
StatusOr<uint64_t> evalBatches(const RunPlan &plan, const EvalData &data,
                               uint64_t limit);

/// Runs the plan's evaluation (`plan.eval` must have a value) on the first
/// `batches` global batches of samples (`evalBatches`), in order. Weights and
/// states stay as they are. The loss is the batches' mean in double, weighted
/// by the plan's output `count`.
StatusOr<EvalMetrics> evaluate(const RunPlan &plan, Backend &backend,
                               const EvalData &data, uint64_t batches);

} // namespace gtp::rt

#endif // GTP_RT_EVALUATION_H
