//===- LinkTarget.h - What symbolic links lead to ---------------*- C++ -*-===//

#ifndef GTP_SUPPORT_LINKTARGET_H
#define GTP_SUPPORT_LINKTARGET_H

#include <string>

namespace gtp {

/// The path that `path` leads to as a symbolic link, whether or not anything
/// is there yet; `path` where it is none. Links of folders on the way stay.
std::string linkTarget(const std::string &path);

/// Whether two paths name one file: by hard or symbolic links, of the file or
/// of folders on the way; where nothing is there yet, by the names that links
/// lead to. An empty path names none.
bool isSameFile(const std::string &a, const std::string &b);

} // namespace gtp

#endif // GTP_SUPPORT_LINKTARGET_H
