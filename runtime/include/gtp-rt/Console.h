//===- Console.h - What a person sees of a run ----------------------------===//

#ifndef GTP_RT_CONSOLE_H
#define GTP_RT_CONSOLE_H

#include "gtp-rt/Metrics.h"
#include "gtp/Support/Status.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace gtp::rt {

/// Lines on stdout; all of them say so when the plan was not checked.
class Console {
public:
  explicit Console(bool unchecked) : unchecked(unchecked) {}

  /// A quiet one prints nothing: of a job, one process speaks for all.
  void setQuiet(bool value) { quiet = value; }

  void line(const std::string &text);
  /// On a terminal, replaces the unfinished last line; elsewhere nothing.
  void status(const std::string &text);
  /// Removes the status line, before anything else writes to the terminal.
  void finish();
  /// An error once something could not be written; the run goes on.
  Status written() const;
  bool isTerminal() const { return terminal; }
  /// What an error or a line starts with.
  const char *prefix() const { return unchecked ? "[unchecked] " : ""; }

private:
  void flush();

  bool unchecked, quiet = false;
  int failure = 0; ///< errno of the first write that failed
  bool terminal = detectTerminal();
  bool hasStatus = false;
  static bool detectTerminal();
};

/// A table of about twenty rows over the run, and on a terminal a status line
/// between them.
class Progress {
public:
  Progress(Console &console, uint64_t steps);
  void step(const StepMetrics &metrics);

private:
  using Clock = std::chrono::steady_clock;

  Console &console;
  uint64_t steps;
  uint64_t interval;
  Clock::time_point start = Clock::now();
  Clock::time_point lastStatus = start;
  /// Of the steps since the last row.
  uint64_t tokens = 0;
  double seconds = 0;
};

/// "1.5 GiB".
std::string bytesText(uint64_t bytes);
/// "1:02:03", "2:03" or "12s".
std::string durationText(double seconds);
/// "1.2 G", "3.4 M", "12.0 k" or "7": a count in decimal thousands.
std::string countText(double count);

} // namespace gtp::rt

#endif // GTP_RT_CONSOLE_H
