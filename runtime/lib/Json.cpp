//===- Json.cpp - JSON of strangers, bounded ------------------------------===//

#include "Json.h"

using namespace gtp;
using namespace gtp::rt;
using nlohmann::json;

namespace {

/// Builds the value as the parser reports its parts. The library's own builder
/// keeps the last of two equal keys in silence and nests without bound.
class BoundedBuilder : public nlohmann::json_sax<json> {
public:
  explicit BoundedBuilder(size_t maxDepth) : maxDepth(maxDepth) {}

  json root;
  std::string error;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return add(value);
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return false; }

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &value) override {
    json &object = *stack.back();
    if (object.contains(value)) {
      error = "the key '" + value + "' is given twice in one object";
      return false;
    }
    pending = &object[value];
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    error = "not valid JSON at byte " + std::to_string(position);
    return false;
  }

private:
  /// Where the next value goes.
  json *place(json &&value) {
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    if (stack.back()->is_array()) {
      stack.back()->push_back(std::move(value));
      return &stack.back()->back();
    }
    *pending = std::move(value);
    return pending;
  }

  bool add(json &&value) {
    place(std::move(value));
    return true;
  }

  bool open(json &&value) {
    if (stack.size() == maxDepth) {
      error = "nested deeper than " + std::to_string(maxDepth) + " levels";
      return false;
    }
    stack.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    stack.pop_back();
    return true;
  }

  size_t maxDepth;
  std::vector<json *> stack;
  json *pending = nullptr;
};

} // namespace

StatusOr<json> gtp::rt::parseJson(std::string_view text, size_t maxDepth) {
  // The library takes a NUL for the end, and what is behind it for nothing.
  if (size_t nul = text.find('\0'); nul != std::string_view::npos)
    return Status::error("not valid JSON: a NUL at byte " +
                         std::to_string(nul + 1));
  BoundedBuilder builder(maxDepth);
  if (!json::sax_parse(text.begin(), text.end(), &builder))
    return Status::error(builder.error.empty() ? "not valid JSON"
                                               : builder.error);
  return std::move(builder.root);
}
