//===- Structure.h - Parts of rule `structure` ------------------*- C++ -*-===//

#ifndef GTP_LIB_PLAN_CHECKER_STRUCTURE_H
#define GTP_LIB_PLAN_CHECKER_STRUCTURE_H

#include "Context.h"

namespace gtp::plan::check {

/// Every operation by itself, and its events. The tables have been checked.
void checkOperations(Context &context);

/// Rule `transport`, of a collective whose operands have been checked.
Status checkTransport(const Context &context, const pb::Collective &collective);

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_STRUCTURE_H
