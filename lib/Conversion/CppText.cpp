//===- CppText.cpp - Values as C++ text -----------------------------------===//

#include "CppText.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

using namespace gtp;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string gtp::quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", byte);
      result += octal;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string gtp::identifier(const std::string &text) {
  static const std::set<std::string> keywords = {
      "and",      "asm",      "auto",     "bool",      "break",    "case",
      "catch",    "char",     "class",    "compl",     "const",    "continue",
      "default",  "delete",   "do",       "double",    "else",     "enum",
      "explicit", "export",   "extern",   "false",     "float",    "for",
      "friend",   "goto",     "if",       "inline",    "int",      "long",
      "mutable",  "new",      "noexcept", "not",       "nullptr",  "operator",
      "or",       "private",  "public",   "protected", "register", "return",
      "short",    "signed",   "sizeof",   "static",    "struct",   "switch",
      "template", "this",     "throw",    "true",      "try",      "typedef",
      "typeid",   "typename", "union",    "unsigned",  "using",    "virtual",
      "void",     "volatile", "while",    "xor",       "decltype", "constexpr"};
  std::string result;
  // One underscore for whatever is none of these: two would be reserved.
  for (char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  while (!result.empty() && result.back() == '_')
    result.pop_back();
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])))
    result = "n" + result;
  return keywords.count(result) ? result + "_" : result;
}

std::string gtp::realText(double value) {
  if (std::isnan(value))
    return "NAN";
  if (std::isinf(value))
    return value > 0 ? "INFINITY" : "-INFINITY";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  std::string result = text;
  return result.find_first_of(".e") == std::string::npos ? result + ".0"
                                                         : result;
}

std::string gtp::integerText(int64_t value) {
  return value == INT64_MIN ? "INT64_MIN" : std::to_string(value);
}

/// "pb::Buffer::INPUT".
static std::string enumText(const EnumValueDescriptor &value) {
  const auto *outer = value.type()->containing_type();
  return "pb::" + (outer ? outer->name() + "::" : "") + value.name();
}

std::string gtp::scalarText(const Message &message,
                            const FieldDescriptor &field) {
  const auto *reflection = message.GetReflection();
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_UINT64:
    return std::to_string(reflection->GetUInt64(message, &field)) + "u";
  case FieldDescriptor::CPPTYPE_UINT32:
    return std::to_string(reflection->GetUInt32(message, &field));
  case FieldDescriptor::CPPTYPE_INT32:
    return std::to_string(reflection->GetInt32(message, &field));
  case FieldDescriptor::CPPTYPE_INT64:
    return integerText(reflection->GetInt64(message, &field));
  case FieldDescriptor::CPPTYPE_DOUBLE:
    return realText(reflection->GetDouble(message, &field));
  case FieldDescriptor::CPPTYPE_BOOL:
    return reflection->GetBool(message, &field) ? "true" : "false";
  case FieldDescriptor::CPPTYPE_ENUM:
    return enumText(*reflection->GetEnum(message, &field));
  case FieldDescriptor::CPPTYPE_STRING:
    return quoted(reflection->GetString(message, &field));
  default:
    return "";
  }
}

std::vector<const FieldDescriptor *> gtp::setFields(const Message &message) {
  std::vector<const FieldDescriptor *> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

Item gtp::call(std::string callee, const std::vector<std::string> &arguments) {
  Item item{std::move(callee), {}};
  for (const std::string &argument : arguments)
    item.arguments.emplace_back() += argument;
  return item;
}

void gtp::addSetters(const Message &message, const std::string &path,
                     std::vector<Item> &items) {
  const auto *reflection = message.GetReflection();
  for (const FieldDescriptor *field : setFields(message)) {
    const std::string &name = field->name();
    if (!field->is_repeated()) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        addSetters(reflection->GetMessage(message, field),
                   path + "mutable_" + name + "()->", items);
      else
        items.push_back(
            call(path + "set_" + name, {scalarText(message, *field)}));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        items.push_back(call(path + "add_" + name, {}));
        addSetters(reflection->GetRepeatedMessage(message, field, i),
                   path + "mutable_" + name + "(" + std::to_string(i) + ")->",
                   items);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        items.push_back(
            call(path + "add_" + name,
                 {quoted(reflection->GetRepeatedString(message, field, i))}));
        break;
      default:
        items.push_back(call(path + "add_" + name,
                             {std::to_string(reflection->GetRepeatedUInt32(
                                 message, field, i))}));
      }
  }
}
