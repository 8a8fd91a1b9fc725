//===- LinkTarget.cpp - What symbolic links lead to -----------------------===//

#include "gtp/Support/LinkTarget.h"

#include <filesystem>

std::string gtp::linkTarget(const std::string &path) {
  // As many as Linux follows. What leads round ends somewhere among them, and
  // cannot be opened.
  constexpr int kMostLinks = 40;
  std::filesystem::path target = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code failed;
    std::filesystem::path next = std::filesystem::read_symlink(target, failed);
    if (failed)
      break;
    target = target.parent_path() / next;
  }
  return target.string();
}

bool gtp::isSameFile(const std::string &a, const std::string &b) {
  if (a.empty() || b.empty())
    return false;
  std::error_code failed;
  if (a == b || std::filesystem::equivalent(a, b, failed))
    return true;
  auto whole = [&](const std::string &path) {
    return std::filesystem::weakly_canonical(
        std::filesystem::absolute(linkTarget(path), failed), failed);
  };
  std::filesystem::path left = whole(a);
  return !failed && left == whole(b) && !failed;
}
