//===- File.h - Mapped inputs, and outputs that appear whole --------------===//

#ifndef GTP_RT_FILE_H
#define GTP_RT_FILE_H

#include "gtp/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gtp::rt {

/// A regular file mapped for reading. Messages do not repeat the path: the
/// caller says which file it asked for.
class MappedFile {
public:
  static StatusOr<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(bytes), length};
  }

private:
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// Whether `path` can become an output: its folder exists and may be written,
/// and it is not itself a folder. Asked before a run, so that hours of work do
/// not end in a mistyped path.
Status checkWritable(const std::string &path);

/// A file that other readers see complete or not at all: written under a
/// temporary name beside its own and renamed by `commit`; without it, removed.
/// A symbolic link stays one: its target is what is replaced. What exists and
/// is not a regular file (a pipe, /dev/stdout) is written directly.
class OutputFile {
public:
  static StatusOr<OutputFile> create(const std::string &path);

  OutputFile() = default;
  OutputFile(OutputFile &&other) noexcept { *this = std::move(other); }
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  Status write(const void *bytes, uint64_t size);
  Status commit();

private:
  void discard();

  int descriptor = -1;
  std::string finalPath;
  std::string targetPath;    // finalPath, or what it is a link to
  std::string temporaryPath; // empty: written directly
};

} // namespace gtp::rt

#endif // GTP_RT_FILE_H
