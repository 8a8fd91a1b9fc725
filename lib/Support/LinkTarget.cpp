//===- LinkTarget.cpp - What symbolic links lead to -----------------------===//

#include "gtp/Support/LinkTarget.h"

#include <filesystem>

std::string gtp::linkTarget(const std::string &path) {
  // As many as Linux follows; those that lead round end somewhere among them.
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
