//===- CppProgram.h - A plan as a C++ program, before EmitC ---------------===//
//
// Calls that repeat become a class: its fields are what differs from layer to
// layer, its function makes the calls, and a table has a row a layer. No IR.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_CONVERSION_CPPPROGRAM_H
#define GTP_LIB_CONVERSION_CPPPROGRAM_H

#include "PlanItems.h"

namespace gtp {

struct CppCall {
  std::string callee;
  std::vector<std::string> arguments;
};

/// `static const type name = value;`
struct CppConstant {
  std::string type, name, value;
};

struct CppField {
  std::string type, name;
};

/// Layers with the same calls but for the fields.
struct CppClass {
  std::string name, comment;
  std::string function; ///< "issue" or "declare"
  std::vector<CppField> fields;
  std::vector<CppCall> calls;
};

/// `static const type name[] = {rows};`, a row a layer in issue order.
struct CppTable {
  std::string type, name;
  std::vector<std::vector<std::string>> rows;
};

struct CppFunction {
  std::string name;
  std::vector<CppCall> calls;
};

struct CppProgram {
  std::vector<CppConstant> constants;
  std::vector<CppClass> classes;
  std::vector<CppTable> tables;
  std::vector<CppFunction> functions; ///< in the order to call them
};

/// The program that makes the calls of `items`, which `plan` names.
CppProgram cppProgramOf(const plan::pb::Plan &plan, const PlanItems &items);

} // namespace gtp

#endif // GTP_LIB_CONVERSION_CPPPROGRAM_H
