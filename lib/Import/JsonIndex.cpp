//===- JsonIndex.cpp - Where the keys of a JSON text are ------------------===//

#include "JsonIndex.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace gtp;
using llvm::StringRef;

namespace {
/// An open bracket.
struct Frame {
  bool isObject;
  bool expectsKey;
  llvm::StringSet<> keys;
};
} // namespace

/// Keys are indexed down to the objects in the config's own; longer keys and
/// deeper ones would only cost memory.
static constexpr size_t kIndexedDepth = 2;
static constexpr size_t kIndexedKeyLength = 128;

/// The offset behind the string that starts at `begin` with a quote.
static size_t skipString(StringRef text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return text.size();
}

/// What a quoted key says once its escapes are read.
static std::string decodeKey(StringRef quoted) {
  if (quoted.contains('\\')) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(quoted);
    if (value) {
      if (std::optional<StringRef> text = value->getAsString())
        return text->str();
    } else {
      llvm::consumeError(value.takeError());
    }
  }
  quoted.consume_front("\"");
  quoted.consume_back("\"");
  return quoted.str();
}

JsonIndex::JsonIndex(StringRef text, unsigned maxDepth) : text(text) {
  llvm::SmallVector<Frame> open;
  std::string outer; // the key of the root that is open
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == '"') {
      size_t end = skipString(text, i);
      if (!open.empty() && open.back().expectsKey) {
        Frame &object = open.back();
        object.expectsKey = false;
        std::string key = decodeKey(text.slice(i, end));
        if (!object.keys.insert(key).second && !duplicateOffset) {
          duplicateOffset = i;
          duplicate = key;
        }
        if (open.size() <= kIndexedDepth && key.size() <= kIndexedKeyLength) {
          if (open.size() == 1)
            outer = key;
          offsets.try_emplace(open.size() == 1 ? key : outer + "." + key, i);
        }
      }
      i = end;
      continue;
    }
    if (c == '{' || c == '[') {
      if (open.size() == maxDepth) {
        deepOffset = i;
        return;
      }
      open.push_back({c == '{', c == '{', {}});
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    } else if (c == ',' && !open.empty()) {
      open.back().expectsKey = open.back().isObject;
    }
    ++i;
  }
}

std::optional<TextPlace> JsonIndex::find(StringRef path) const {
  auto it = offsets.find(path);
  if (it == offsets.end())
    return std::nullopt;
  return place(it->second);
}

std::optional<TextPlace> JsonIndex::place(std::optional<size_t> offset) const {
  if (!offset)
    return std::nullopt;
  StringRef before = text.take_front(*offset);
  size_t lineStart = before.rfind('\n');
  lineStart = lineStart == StringRef::npos ? 0 : lineStart + 1;
  return TextPlace{static_cast<unsigned>(before.count('\n') + 1),
                   static_cast<unsigned>(*offset - lineStart + 1)};
}
