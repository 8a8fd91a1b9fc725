//===- JsonIndex.h - Where the keys of a JSON text are --------------------===//

#ifndef GTP_LIB_IMPORT_JSONINDEX_H
#define GTP_LIB_IMPORT_JSONINDEX_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <optional>
#include <string>

namespace gtp {

/// A line and a column, both from 1.
struct TextPlace {
  unsigned line = 1;
  unsigned column = 1;
};

/// One pass over a JSON text before it is parsed: the parser of LLVM recurses
/// without a bound and keeps neither positions nor duplicate keys. The text
/// need not be valid; what is found is then not complete.
class JsonIndex {
public:
  JsonIndex(llvm::StringRef text, unsigned maxDepth);

  /// The place of the first bracket nested deeper than the bound.
  std::optional<TextPlace> tooDeep() const { return place(deepOffset); }

  /// The first key that its object holds twice, without the path to it.
  const std::string &duplicateKey() const { return duplicate; }
  std::optional<TextPlace> duplicatePlace() const {
    return place(duplicateOffset);
  }

  /// The place of a key: "rope_scaling.factor".
  std::optional<TextPlace> find(llvm::StringRef path) const;

private:
  std::optional<TextPlace> place(std::optional<size_t> offset) const;

  llvm::StringRef text;
  llvm::StringMap<size_t> offsets;
  std::optional<size_t> deepOffset;
  std::optional<size_t> duplicateOffset;
  std::string duplicate;
};

} // namespace gtp

#endif // GTP_LIB_IMPORT_JSONINDEX_H
