//===- Options.h - The command line of gtp-run ----------------------------===//

#ifndef GTP_RT_OPTIONS_H
#define GTP_RT_OPTIONS_H

#include "gtp-rt/Schedule.h"
#include "gtp-rt/TrainingData.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gtp::rt {

/// What the optimizer reads each step.
struct Hyperparameters {
  double learningRate = 1e-3;
  double weightDecay = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
};

struct RunOptions {
  std::string plan;

  std::vector<DataFile> data;
  std::vector<std::string> labels; ///< none, or one a file of data
  unsigned tokenBits = 8;          ///< 8: raw bytes
  std::string weights;

  std::string evalData;   ///< empty: no evaluation
  std::string evalLabels; ///< empty: the next token
  /// Steps between evaluations; 0: only behind the last step.
  uint64_t evalEvery = 0;
  /// Global batches an evaluation reads at most; 0: all of the text.
  uint64_t evalSteps = 0;

  uint64_t steps = 1;
  Hyperparameters hyper;
  Schedule schedule;
  /// This many steps in a row that are not finite end the run.
  uint64_t maxNonFinite = 3;
  uint64_t seed = 0;

  enum class BackendChoice { Auto, Cuda, Host };
  BackendChoice backend = BackendChoice::Auto;
  std::optional<uint64_t> hostJitter;
  bool eager = false;
  /// Steps after this one have no collectives and train nothing.
  std::optional<uint64_t> withoutCollectivesAfter;
  /// A file, "off", or empty: the default file.
  std::string tuningCache;

  std::string metrics;
  std::string tensorboard;
  std::string dumpGrads;
  std::string dumpWeights;
  std::string profile;
  std::string trace;

  /// Of a program that builds its plan: write it and stop.
  std::string emitPlan;

  bool verifyOnly = false;
  bool unchecked = false;
  std::vector<std::pair<uint64_t, std::string>> rankPlans;
};

/// A parsed command line: a run, or a text to print instead (help, version).
struct CommandLine {
  RunOptions options;
  std::optional<std::string> text;
};

/// Parses and checks each option by itself and against the others; files are
/// not touched. `builtIn` names the plan of a program that builds it, which
/// takes no PLAN and can write its own; null for gtp-run.
StatusOr<CommandLine> parseCommandLine(int argc, const char *const *argv,
                                       const char *builtIn = nullptr);

} // namespace gtp::rt

#endif // GTP_RT_OPTIONS_H
