//===- Structure.h - Parts of rule `structure` ------------------*- C++ -*-===//

#ifndef GTP_LIB_PLAN_CHECKER_STRUCTURE_H
#define GTP_LIB_PLAN_CHECKER_STRUCTURE_H

#include "Context.h"

namespace gtp::plan::check {

/// Whether `index` is one of a table of `size` entries.
inline bool in(uint64_t index, int size) {
  return index < static_cast<uint64_t>(size);
}

/// Each buffer of a parameter is a shard of it, and of no other. The tables
/// before that of parameters have been checked.
void checkParameters(Context &context);

/// The inputs, outputs and regions of `context.program()`, without their
/// operations.
void checkProgram(Context &context);

/// Every operation by itself, and its events. The tables have been checked.
void checkOperations(Context &context);

/// Rule `transport`, of a collective whose operands have been checked.
Status checkTransport(const Context &context, const pb::Collective &collective);
/// That a gather's source that depends on the rank is its own piece of the
/// destination. Both operands are legal by themselves.
Status checkInPlace(const pb::Plan &plan, const pb::Communicator &communicator,
                    const pb::Operand &source, const pb::Operand &destination);

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_STRUCTURE_H
