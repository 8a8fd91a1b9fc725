//===- LinkTarget.h - What symbolic links lead to ---------------*- C++ -*-===//

#ifndef GTP_SUPPORT_LINKTARGET_H
#define GTP_SUPPORT_LINKTARGET_H

#include <string>

namespace gtp {

/// The path that `path` leads to as a symbolic link, whether or not anything
/// is there yet; `path` where it is none. Links of folders on the way stay.
std::string linkTarget(const std::string &path);

} // namespace gtp

#endif // GTP_SUPPORT_LINKTARGET_H
