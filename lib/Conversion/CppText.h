//===- CppText.h - Values as C++ text -------------------------------------===//

#ifndef GTP_LIB_CONVERSION_CPPTEXT_H
#define GTP_LIB_CONVERSION_CPPTEXT_H

#include "PlanItems.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace gtp {

/// A literal of the text.
std::string quoted(const std::string &text);
/// The text as an identifier.
std::string identifier(const std::string &text);
/// The shortest literal that reads as the same number.
std::string realText(double value);
std::string integerText(int64_t value);

/// "{1, 2}".
template <typename Range>
std::string listText(const Range &range) {
  std::string text = "{";
  for (auto value : range)
    text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "}";
}

/// A singular scalar field as an expression.
std::string scalarText(const google::protobuf::Message &message,
                       const google::protobuf::FieldDescriptor &field);

/// The fields that are set.
std::vector<const google::protobuf::FieldDescriptor *>
setFields(const google::protobuf::Message &message);

/// A call without slots.
Item call(std::string callee, const std::vector<std::string> &arguments);

/// Calls of the setters of what is set in `message`, which `path` leads to:
/// "plan.message.mutable_model()->".
void addSetters(const google::protobuf::Message &message,
                const std::string &path, std::vector<Item> &items);

} // namespace gtp

#endif // GTP_LIB_CONVERSION_CPPTEXT_H
