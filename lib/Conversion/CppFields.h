//===- CppFields.h - What differs between layers of a class ---------------===//

#ifndef GTP_LIB_CONVERSION_CPPFIELDS_H
#define GTP_LIB_CONVERSION_CPPFIELDS_H

#include "PlanItems.h"

namespace gtp {

/// The slots of one place of a class, a layer each.
using Column = std::vector<const Slot *>;

/// Whether all layers have the same there.
bool isConstant(const Column &column);

/// A field that holds a column: its type, the name it would like, and its rows.
struct WantedField {
  std::string type, name;
  std::vector<std::string> rows;
  std::string pattern = {}; ///< of names with a label
};
WantedField fieldFor(const Column &column);

/// The value of a slot inside the text of its call.
std::string inCall(const Slot &slot, const std::string &value);

} // namespace gtp

#endif // GTP_LIB_CONVERSION_CPPFIELDS_H
