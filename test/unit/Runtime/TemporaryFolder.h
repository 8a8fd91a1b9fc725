//===- TemporaryFolder.h - A folder that a test may fill ------------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_TEMPORARYFOLDER_H
#define GTP_TEST_UNIT_RUNTIME_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gtp::test {

/// Removed, with what is in it, at the end of the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        std::filesystem::temp_directory_path() / "gtp-test-XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(root); }

  std::string path(const std::string &name) const { return root + "/" + name; }

  /// Writes a file and returns its path.
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  static std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// How many files the folder holds.
  size_t count() const {
    return size_t(std::distance(std::filesystem::directory_iterator(root), {}));
  }

private:
  std::string root;
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_TEMPORARYFOLDER_H
