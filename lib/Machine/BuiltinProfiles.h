//===- BuiltinProfiles.h - The profiles that are part of the binary -------===//

#ifndef GTP_LIB_MACHINE_BUILTINPROFILES_H
#define GTP_LIB_MACHINE_BUILTINPROFILES_H

#include <string_view>
#include <utility>
#include <vector>

namespace gtp::machine {

/// Names and texts, by name. The build makes it from profiles/*.json.
const std::vector<std::pair<std::string_view, std::string_view>> &
builtinProfiles();

} // namespace gtp::machine

#endif // GTP_LIB_MACHINE_BUILTINPROFILES_H
