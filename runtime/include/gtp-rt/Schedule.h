//===- Schedule.h - The learning rate of each step ------------------------===//

#ifndef GTP_RT_SCHEDULE_H
#define GTP_RT_SCHEDULE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace gtp::rt {

/// Linear warm-up, then constant or a decay that ends with the last step.
struct Schedule {
  enum class Decay { None, Cosine, Linear };

  Decay decay = Decay::None;
  uint64_t warmup = 0; ///< steps
  double minimum = 0;  ///< learning rate of the last step of a decay

  /// Reads "const", "const:WARMUP", "cosine:WARMUP,MIN" or "linear:WARMUP,MIN".
  static std::optional<Schedule> parse(std::string_view text);

  /// The learning rate of step `step` of `steps`, both from 1, where the most
  /// is `peak`.
  double rate(double peak, uint64_t step, uint64_t steps) const;
};

} // namespace gtp::rt

#endif // GTP_RT_SCHEDULE_H
