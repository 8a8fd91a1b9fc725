//===- JsonReader.h - Reads JSON objects strictly -------------------------===//

#ifndef GTP_LIB_MACHINE_JSONREADER_H
#define GTP_LIB_MACHINE_JSONREADER_H

#include "gtp/Support/Status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gtp::machine {

/// Parses text of bounded size and nesting without repeated keys. Throws
/// nothing.
StatusOr<nlohmann::json> parseJson(std::string_view text);

/// Reads one object. The first error of all readers that share `status` is
/// kept, with the path of what is wrong; getters then return zeros.
class JsonReader {
public:
  JsonReader(const nlohmann::json &value, std::string path, Status &status);

  bool has(const char *key) const {
    return value.is_object() && value.contains(key);
  }
  int64_t integer(const char *key, int64_t least = 0,
                  int64_t most = int64_t(1) << 50);
  /// Nanoseconds that can be scheduled: up to 1000 seconds.
  int64_t time(const char *key) { return integer(key, 0, 1'000'000'000'000); }
  double number(const char *key, double least, double most);
  std::string text(const char *key, bool optional = false);
  bool flag(const char *key);
  /// One of `names`; its index.
  size_t choice(const char *key, const std::vector<std::string_view> &names);
  std::vector<std::string> texts(const char *key);
  void object(const char *key, const std::function<void(JsonReader &)> &read);
  void objects(const char *key, const std::function<void(JsonReader &)> &read);
  /// Every object says where its numbers come from.
  void source() { text("source"); }
  void fail(const char *key, const std::string &message);
  /// An error for keys that nobody asked for.
  void finish();

private:
  const nlohmann::json *find(const char *key, bool optional = false);
  std::string pathOf(const char *key) const;

  const nlohmann::json &value;
  std::string path;
  Status &status;
  std::set<std::string> used;
};

} // namespace gtp::machine

#endif // GTP_LIB_MACHINE_JSONREADER_H
