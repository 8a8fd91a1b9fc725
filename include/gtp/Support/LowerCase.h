//===- LowerCase.h - Names of the plan's enumerators in sentences ---------===//

#ifndef GTP_SUPPORT_LOWERCASE_H
#define GTP_SUPPORT_LOWERCASE_H

#include <string>

namespace gtp {

/// The text with 'a' to 'z' for 'A' to 'Z', in every locale: "all_gather" of
/// ALL_GATHER.
inline std::string lowerCase(std::string text) {
  for (char &c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

} // namespace gtp

#endif // GTP_SUPPORT_LOWERCASE_H
