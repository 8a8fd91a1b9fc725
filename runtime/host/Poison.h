//===- Poison.h - Which operation acquires which buffer -------------------===//

#ifndef GTP_RUNTIME_HOST_POISON_H
#define GTP_RUNTIME_HOST_POISON_H

#include "Program.h"

namespace gtp::rt::host {

/// Finds, for every TRANSIENT buffer, the operation that acquires it: the first
/// of the program that touches it, provided the plan orders the others after
/// it.
void placePoison(const plan::pb::Plan &plan, Program &program);

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_POISON_H
