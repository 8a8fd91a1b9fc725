//===- Schedule.cpp - The learning rate of each step ----------------------===//

#include "gtp-rt/Schedule.h"
#include "ParseNumber.h"

#include <cmath>

using namespace gtp::rt;

std::optional<Schedule> Schedule::parse(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  Schedule schedule;
  if (name == "cosine")
    schedule.decay = Decay::Cosine;
  else if (name == "linear")
    schedule.decay = Decay::Linear;
  else if (name != "const")
    return std::nullopt;
  if (colon == std::string_view::npos)
    return name == "const" ? std::optional(schedule) : std::nullopt;
  std::string_view warmup = text.substr(colon + 1);
  if (schedule.decay != Decay::None) {
    size_t comma = warmup.find(',');
    if (comma == std::string_view::npos ||
        !parseWhole(warmup.substr(comma + 1), schedule.minimum) ||
        !std::isfinite(schedule.minimum) || schedule.minimum < 0)
      return std::nullopt;
    warmup = warmup.substr(0, comma);
  }
  if (!parseWhole(warmup, schedule.warmup))
    return std::nullopt;
  return schedule;
}

double Schedule::rate(double peak, uint64_t step, uint64_t steps) const {
  if (step <= warmup)
    return peak * (double(step) / double(warmup));
  if (decay == Decay::None)
    return peak;
  // 0 at the end of the warm-up, 1 in the last step.
  double progress = double(step - warmup) / double(steps - warmup);
  if (decay == Decay::Linear)
    return peak + (minimum - peak) * progress;
  return minimum + (peak - minimum) * (0.5 * (1 + std::cos(M_PI * progress)));
}
