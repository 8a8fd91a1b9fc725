//===- ParseNumber.h - Numbers of the command line ------------------------===//

#ifndef GTP_RT_LIB_PARSENUMBER_H
#define GTP_RT_LIB_PARSENUMBER_H

#include <charconv>
#include <string_view>
#include <system_error>

namespace gtp::rt {

/// All of `text` as a T; false when it is anything else.
template <typename T>
bool parseWhole(std::string_view text, T &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace gtp::rt

#endif // GTP_RT_LIB_PARSENUMBER_H
