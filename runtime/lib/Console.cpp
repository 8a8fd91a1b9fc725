//===- Console.cpp - What a person sees of a run --------------------------===//

#include "gtp-rt/Console.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <unistd.h>

using namespace gtp;
using namespace gtp::rt;

template <typename... Args>
static std::string format(const char *pattern, Args... args) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, args...);
  return buffer;
}

bool Console::detectTerminal() { return ::isatty(STDOUT_FILENO) == 1; }

void Console::flush() {
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && !failure)
    failure = errno ? errno : EIO;
}

Status Console::written() const {
  if (!failure)
    return Status::ok();
  return Status::error(std::string("standard output: cannot write: ") +
                       std::strerror(failure));
}

void Console::finish() {
  if (hasStatus)
    std::fputs("\r\033[K", stdout);
  flush();
  hasStatus = false;
}

void Console::line(const std::string &text) {
  if (quiet)
    return;
  finish();
  std::printf("%s%s\n", prefix(), text.c_str());
  flush();
}

void Console::status(const std::string &text) {
  if (!terminal || quiet)
    return;
  finish();
  std::printf("%s%s", prefix(), text.c_str());
  flush();
  hasStatus = true;
}

std::string gtp::rt::bytesText(uint64_t bytes) {
  if (bytes >= uint64_t(1) << 30)
    return format("%.2f GiB", double(bytes) / (1 << 30));
  if (bytes >= 1 << 20)
    return format("%.1f MiB", double(bytes) / (1 << 20));
  if (bytes >= 1 << 10)
    return format("%.1f KiB", double(bytes) / (1 << 10));
  return format("%llu B", static_cast<unsigned long long>(bytes));
}

std::string gtp::rt::durationText(double seconds) {
  auto whole = static_cast<unsigned long long>(std::max(seconds, 0.0) + 0.5);
  if (whole >= 3600)
    return format("%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60,
                  whole % 60);
  if (whole >= 60)
    return format("%llu:%02llu", whole / 60, whole % 60);
  return format("%llus", whole);
}

std::string gtp::rt::countText(double count) {
  if (count >= 1e9)
    return format("%.2f G", count / 1e9);
  if (count >= 1e6)
    return format("%.2f M", count / 1e6);
  if (count >= 1e4)
    return format("%.1f k", count / 1e3);
  return format("%.0f", count);
}

Progress::Progress(Console &console, uint64_t steps)
    : console(console), steps(steps),
      interval(std::max<uint64_t>(1, steps / 20)) {
  console.line(
      "    step       loss  grad norm       lr     tok/s   elapsed      left");
}

/// Without the sign that some NaNs have.
static double shown(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

void Progress::step(const StepMetrics &metrics) {
  tokens += metrics.tokens;
  seconds += metrics.seconds;
  Clock::time_point now = Clock::now();
  double elapsed = std::chrono::duration<double>(now - start).count();
  bool isRow = metrics.step == 1 || metrics.step == steps ||
               metrics.step % interval == 0 || metrics.skipped || metrics.eval;
  bool isStatus =
      console.isTerminal() && now - lastStatus > std::chrono::milliseconds(200);
  if (!isRow && !isStatus)
    return;
  double left = elapsed / double(metrics.step) * double(steps - metrics.step);
  std::string row =
      format("%8llu %10.4f %10.4g %8.2g %9s %9s %9s",
             static_cast<unsigned long long>(metrics.step), shown(metrics.loss),
             shown(metrics.gradNorm), metrics.learningRate,
             countText(double(tokens) / seconds).c_str(),
             durationText(elapsed).c_str(), durationText(left).c_str());
  if (isRow) {
    if (metrics.eval)
      row += format("  held out %.4f", shown(metrics.eval->loss));
    if (metrics.skipped)
      row += "  update skipped";
    if (metrics.report.withoutCollectives)
      row += "  without collectives";
    console.line(row);
    tokens = 0;
    seconds = 0;
  } else {
    console.status(row);
    lastStatus = now;
  }
}
