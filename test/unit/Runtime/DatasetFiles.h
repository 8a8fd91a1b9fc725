//===- DatasetFiles.h - Indexes of datasets, right and wrong --------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_DATASETFILES_H
#define GTP_TEST_UNIT_RUNTIME_DATASETFILES_H

#include <cstdint>
#include <string>
#include <vector>

namespace gtp::test {

inline std::string littleEndian(uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> (8 * i));
  return text;
}

/// What an index says; `bytes` is the file, wrong where the fields are.
struct IndexFile {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  unsigned type = 8; ///< uint16
  std::vector<int32_t> lengths = {3, 0, 4};
  std::vector<int64_t> offsets = {0, 6, 6};
  std::vector<int64_t> bounds = {0, 2, 3};
  std::string tail;

  std::string bytes() const {
    std::string text = magic + littleEndian(version, 8) +
                       littleEndian(type, 1) + littleEndian(lengths.size(), 8) +
                       littleEndian(bounds.size(), 8);
    for (int32_t length : lengths)
      text += littleEndian(static_cast<uint64_t>(length), 4);
    for (int64_t offset : offsets)
      text += littleEndian(static_cast<uint64_t>(offset), 8);
    for (int64_t bound : bounds)
      text += littleEndian(static_cast<uint64_t>(bound), 8);
    return text + tail;
  }
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_DATASETFILES_H
