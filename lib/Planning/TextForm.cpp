//===- TextForm.cpp - The line format of printed problems -----------------===//

#include "TextForm.h"

#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace gtp::planning {

TextLine::TextLine(unsigned number, const std::string &text) : number(number) {
  std::istringstream stream(text);
  stream >> word;
  std::string token;
  while (stream >> token) {
    size_t equals = token.find('=');
    if (equals == std::string::npos)
      positions.push_back(token);
    else
      fields.push_back({token.substr(0, equals), token.substr(equals + 1)});
  }
}

void TextLine::fail(const std::string &message) {
  if (error.empty())
    error = message;
}

int64_t TextLine::parse(const std::string &text, int64_t minimum) {
  errno = 0;
  char *end = nullptr;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno) {
    fail("'" + text + "' is not an integer");
    return 0;
  }
  if (value < minimum) {
    fail("'" + text + "' is less than " + std::to_string(minimum));
    return 0;
  }
  return value;
}

int64_t TextLine::position(size_t index) {
  positionsUsed = std::max(positionsUsed, index + 1);
  if (index < positions.size())
    return parse(positions[index], INT64_MIN);
  fail("'" + word + "' needs " + std::to_string(index + 1) + " positions");
  return 0;
}

void TextLine::expectPosition(int64_t expected) {
  int64_t found = position(0);
  if (found != expected)
    fail("'" + word + "' has number " + std::to_string(found) + ", expected " +
         std::to_string(expected));
}

TextLine::Field *TextLine::find(const std::string &key) {
  for (Field &field : fields) {
    if (field.key == key) {
      field.used = true;
      return &field;
    }
  }
  return nullptr;
}

bool TextLine::has(const std::string &key) const {
  for (const Field &field : fields)
    if (field.key == key)
      return true;
  return false;
}

int64_t TextLine::integer(const std::string &key, int64_t minimum) {
  if (Field *field = find(key))
    return parse(field->value, minimum);
  fail("'" + word + "' needs '" + key + "='");
  return 0;
}

int64_t TextLine::integerOr(const std::string &key, int64_t absent,
                            int64_t minimum) {
  return has(key) ? integer(key, minimum) : absent;
}

std::vector<uint32_t> TextLine::list(const std::string &key) {
  std::vector<uint32_t> values;
  Field *field = find(key);
  if (!field)
    return values;
  std::istringstream stream(field->value);
  std::string item;
  while (std::getline(stream, item, ',')) {
    int64_t value = parse(item, 0);
    if (value > UINT32_MAX)
      fail("'" + item + "' is too large");
    values.push_back(static_cast<uint32_t>(value));
  }
  return values;
}

std::string TextLine::text(const std::string &key) {
  Field *field = find(key);
  return field ? field->value : "";
}

Status TextLine::finish() {
  if (positions.size() > positionsUsed)
    fail("'" + word + "' does not take '" + positions[positionsUsed] + "'");
  for (const Field &field : fields)
    if (!field.used)
      fail("'" + word + "' does not take '" + field.key + "='");
  if (error.empty())
    return Status::ok();
  return Status::error("line " + std::to_string(number) + ": " + error);
}

std::vector<TextLine> splitLines(const std::string &text) {
  std::vector<TextLine> lines;
  std::istringstream stream(text);
  std::string line;
  for (unsigned number = 1; std::getline(stream, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      lines.emplace_back(number, line);
  }
  return lines;
}

std::string textField(const std::string &key, const std::string &value) {
  return value.empty() ? "" : " " + key + "=" + value;
}

std::string printOps(const OrderGraph &order) {
  std::string text;
  for (OpIndex op = 0; op < order.size(); ++op)
    text += "op " + std::to_string(op) +
            " stream=" + std::to_string(order.stream(op)) +
            textField("after", joinList(order.after(op))) + "\n";
  return text;
}

Status parseOp(TextLine &line, OrderGraph &order) {
  line.expectPosition(order.size());
  int64_t stream = line.integer("stream");
  std::vector<OpIndex> after = line.list("after");
  if (stream >= order.numStreams())
    line.fail("stream " + std::to_string(stream) + " of " +
              std::to_string(order.numStreams()));
  for (OpIndex op : after)
    if (op >= order.size())
      line.fail("comes after operation " + std::to_string(op) +
                ", which is not an earlier one");
  GTP_RETURN_IF_ERROR(line.finish());
  order.addOp(static_cast<unsigned>(stream), after);
  return Status::ok();
}

} // namespace gtp::planning
