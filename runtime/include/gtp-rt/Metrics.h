//===- Metrics.h - What a step is measured by, as lines of JSON -----------===//

#ifndef GTP_RT_METRICS_H
#define GTP_RT_METRICS_H

#include "gtp-rt/Backend.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace gtp::rt {

/// The plan's kind of loss says what is counted: labels, or with sequence-mean
/// samples that have a counted label.
struct EvalMetrics {
  double loss = 0;    ///< mean over all of the text that is counted
  uint64_t count = 0; ///< how many that are
};

/// What one step of training is measured by.
struct StepMetrics {
  uint64_t step = 0;  ///< from 1
  float loss = 0;     ///< before the update, the mean that the plan is for
  float gradNorm = 0; ///< before clipping
  /// The gradient norm is not finite, so that the update changed nothing.
  bool skipped = false;
  double learningRate = 0;
  uint64_t tokens = 0; ///< read in this step by all ranks
  double seconds = 0;  ///< of this step
  /// From the end of the step before to its end; of the first, as `seconds`.
  double wallSeconds = 0;
  double modelFlops = 0;           ///< of this step, all ranks
  uint64_t peakBytes = 0;          ///< device memory of a rank, by the plan
  StepReport report;               ///< of the backend
  Timing timing = Timing::None;    ///< of the step's operations
  std::optional<EvalMetrics> eval; ///< after the update, of held-out text
};

/// One JSON object a step, each line written whole as its step ends, so that a
/// run that is killed leaves whole lines.
class MetricsWriter {
public:
  /// `unchecked` adds that to every line.
  static StatusOr<MetricsWriter> create(const std::string &path,
                                        bool unchecked);
  Status write(const StepMetrics &metrics);
  /// A line of an evaluation without a step, as step 0.
  Status write(const EvalMetrics &metrics);

private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  Status writeLine(const std::string &text);

  std::string path;
  bool unchecked = false;
  std::unique_ptr<std::FILE, Close> file;
};

} // namespace gtp::rt

#endif // GTP_RT_METRICS_H
