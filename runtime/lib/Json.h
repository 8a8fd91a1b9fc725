//===- Json.h - JSON of strangers, bounded --------------------------------===//

#ifndef GTP_RT_LIB_JSON_H
#define GTP_RT_LIB_JSON_H

#include "gtp/Support/Status.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace gtp::rt {

/// Parses `text`. Nesting deeper than `maxDepth`, a key given twice in one
/// object, and anything after the value are errors that name the byte.
StatusOr<nlohmann::json> parseJson(std::string_view text, size_t maxDepth = 16);

} // namespace gtp::rt

#endif // GTP_RT_LIB_JSON_H
