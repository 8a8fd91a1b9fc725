//===- JsonReader.cpp - Reads JSON objects strictly -----------------------===//

#include "JsonReader.h"

#include <sstream>

namespace gtp::machine {

using nlohmann::json;

StatusOr<json> parseJson(std::string_view text) {
  constexpr size_t kMostBytes = 1 << 20;
  constexpr int kMostNesting = 16;
  if (text.size() > kMostBytes)
    return Status::error("has " + std::to_string(text.size()) +
                         " bytes, expected at most " +
                         std::to_string(kMostBytes));
  // The library takes one for the end, and what is behind it for nothing.
  if (size_t nul = text.find('\0'); nul != std::string_view::npos)
    return Status::error("is not JSON: a NUL at byte " +
                         std::to_string(nul + 1));
  int nesting = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      ++nesting;
    else if (!quoted && (c == '}' || c == ']'))
      --nesting;
    if (nesting > kMostNesting)
      return Status::error("nests deeper than " + std::to_string(kMostNesting) +
                           " levels");
  }

  std::vector<std::set<std::string>> keys;
  std::string repeated;
  auto seeKeys = [&](int, json::parse_event_t event, json &parsed) {
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == json::parse_event_t::key &&
             !keys.back().insert(parsed.get<std::string>()).second &&
             repeated.empty())
      repeated = parsed.get<std::string>();
    return true;
  };
  try {
    json value = json::parse(text, seeKeys);
    if (!repeated.empty())
      return Status::error("has the key '" + repeated + "' twice");
    return value;
  } catch (const json::exception &exception) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string message = exception.what();
    size_t end = message.find("] ");
    return Status::error("is not JSON: " + (end == std::string::npos
                                                ? message
                                                : message.substr(end + 2)));
  }
}

/// What was found, short enough for a message.
static std::string show(const json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "a list";
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

static std::string show(double value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

JsonReader::JsonReader(const json &value, std::string path, Status &status)
    : value(value), path(std::move(path)), status(status) {
  if (!value.is_object() && status.isOk())
    status = Status::error((this->path.empty() ? "" : this->path + ": ") +
                           "found " + show(value) + ", expected an object");
}

std::string JsonReader::pathOf(const char *key) const {
  return path.empty() ? key : path + "." + key;
}

void JsonReader::fail(const char *key, const std::string &message) {
  if (status.isOk())
    status = Status::error(pathOf(key) + ": " + message);
}

const json *JsonReader::find(const char *key, bool optional) {
  used.insert(key);
  if (!status.isOk())
    return nullptr;
  auto it = value.find(key);
  if (it != value.end())
    return &*it;
  if (!optional)
    fail(key, "is missing");
  return nullptr;
}

int64_t JsonReader::integer(const char *key, int64_t least, int64_t most) {
  const json *found = find(key);
  if (!found)
    return 0;
  if (found->is_number_integer() &&
      !(found->is_number_unsigned() &&
        found->get<uint64_t>() > uint64_t(most))) {
    int64_t number = found->get<int64_t>();
    if (number >= least)
      return number;
  }
  // Of 2^50, a PiB, sums of many still fit 64 bits.
  fail(key, "found " + show(*found) + ", expected an integer from " +
                std::to_string(least) + " to " +
                (most == int64_t(1) << 50 ? "2^50" : std::to_string(most)));
  return 0;
}

double JsonReader::number(const char *key, double least, double most) {
  const json *found = find(key);
  if (!found)
    return 0;
  if (found->is_number()) {
    double number = found->get<double>();
    if (number >= least && number <= most)
      return number;
  }
  fail(key, "found " + show(*found) + ", expected a number from " +
                show(least) + " to " + show(most));
  return 0;
}

std::string JsonReader::text(const char *key, bool optional) {
  const json *found = find(key, optional);
  if (!found)
    return "";
  if (found->is_string() && !found->get_ref<const std::string &>().empty())
    return found->get<std::string>();
  fail(key, "found " + show(*found) + ", expected text");
  return "";
}

bool JsonReader::flag(const char *key) {
  const json *found = find(key, /*optional=*/true);
  if (!found)
    return false;
  if (!found->is_boolean())
    fail(key, "found " + show(*found) + ", expected true or false");
  return found->is_boolean() && found->get<bool>();
}

size_t JsonReader::choice(const char *key,
                          const std::vector<std::string_view> &names) {
  std::string found = text(key);
  std::string expected;
  for (size_t i = 0; i < names.size(); ++i) {
    if (found == names[i])
      return i;
    expected += (i ? ", " : "") + std::string(names[i]);
  }
  fail(key, "found '" + found + "', expected one of " + expected);
  return 0;
}

std::vector<std::string> JsonReader::texts(const char *key) {
  std::vector<std::string> result;
  const json *found = find(key);
  if (!found)
    return result;
  if (!found->is_array())
    fail(key, "found " + show(*found) + ", expected a list of names");
  else
    for (const json &item : *found) {
      if (!item.is_string()) {
        fail(key, "found " + show(item) + ", expected a name");
        break;
      }
      result.push_back(item.get<std::string>());
    }
  return result;
}

void JsonReader::object(const char *key,
                        const std::function<void(JsonReader &)> &read) {
  if (const json *found = find(key)) {
    JsonReader reader(*found, pathOf(key), status);
    read(reader);
    reader.finish();
  }
}

void JsonReader::objects(const char *key,
                         const std::function<void(JsonReader &)> &read) {
  const json *found = find(key);
  if (!found)
    return;
  if (!found->is_array()) {
    fail(key, "found " + show(*found) + ", expected a list of objects");
    return;
  }
  for (size_t i = 0; i < found->size() && status.isOk(); ++i) {
    JsonReader reader((*found)[i], pathOf(key) + "[" + std::to_string(i) + "]",
                      status);
    read(reader);
    reader.finish();
  }
}

void JsonReader::finish() {
  if (!status.isOk())
    return;
  for (const auto &[key, unused] : value.items()) {
    if (used.count(key))
      continue;
    std::string known;
    for (const std::string &name : used)
      known += (known.empty() ? "" : ", ") + name;
    fail(key.c_str(), "is an unknown key; known here: " + known);
    return;
  }
}

} // namespace gtp::machine
