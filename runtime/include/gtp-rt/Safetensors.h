//===- Safetensors.h - Checkpoint tensors in and out of files -------------===//
//
// A file is a u64 header length, a JSON header and the tensors' bytes, little
// endian throughout. A folder holds `model.safetensors`, or shards that
// `model.safetensors.index.json` lists. Inputs are checked as a whole before
// the first tensor is read: every byte belongs to exactly one tensor.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_SAFETENSORS_H
#define GTP_RT_SAFETENSORS_H

#include "gtp-rt/File.h"
#include "gtp/Support/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gtp::rt {

enum class TensorType { F32, F16, BF16 };

struct TensorInfo {
  TensorType type = TensorType::F32;
  std::vector<uint64_t> shape;
  uint64_t elements = 0;
  /// Bytes in the data section, [begin, end).
  uint64_t begin = 0, end = 0;
};

/// "[2, 3]".
std::string shapeText(const std::vector<uint64_t> &shape);

/// What a header says; tensors by name.
struct SafetensorsHeader {
  std::map<std::string, TensorInfo> tensors;
  /// `__metadata__`. Some writers list a shared tensor here, its other name as
  /// key.
  std::map<std::string, std::string> metadata;
  /// Where the data section starts in the file.
  uint64_t dataStart = 0;
};

/// Parses and checks the header of a whole file's bytes.
StatusOr<SafetensorsHeader> parseSafetensors(std::string_view file);

/// A checkpoint for reading: one file, or a folder of them.
class SafetensorsReader {
public:
  static StatusOr<SafetensorsReader> open(const std::string &fileOrFolder);

  /// In name order.
  std::vector<std::string> names() const;
  /// Null when there is no such tensor. Aliases of the metadata are followed.
  const TensorInfo *find(const std::string &name) const;
  /// The file that holds `name`, for messages.
  const std::string &fileOf(const std::string &name) const;
  /// All files that were read, the index of a folder included.
  const std::vector<std::string> &paths() const { return pathsRead; }
  /// Elements [begin, begin + count) of a tensor that exists, as float32.
  void read(const std::string &name, uint64_t begin, uint64_t count,
            float *destination) const;

private:
  struct File {
    std::string path;
    MappedFile bytes;
    SafetensorsHeader header;
  };
  struct Entry {
    size_t file;
    const TensorInfo *info;
  };
  Status addFile(const std::string &path);
  const Entry *lookup(const std::string &name) const;

  std::vector<File> files;
  std::vector<std::string> pathsRead;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> aliases;
};

/// Writes float32 tensors one after the other, in the order declared: memory
/// never holds more than what the caller passes. The same tensors make the same
/// bytes.
class SafetensorsWriter {
public:
  struct Declaration {
    std::string name;
    std::vector<uint64_t> shape;
  };
  static StatusOr<SafetensorsWriter>
  create(const std::string &path, const std::vector<Declaration> &tensors);

  /// The next `count` elements in the order of the declarations.
  Status append(const float *values, uint64_t count);
  /// Every declared element has been appended: the file appears.
  Status commit();

private:
  OutputFile file;
  uint64_t remaining = 0; // elements
};

} // namespace gtp::rt

#endif // GTP_RT_SAFETENSORS_H
