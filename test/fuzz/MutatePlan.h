//===- MutatePlan.h - Damage to plans, and rewrites that may be legal -----===//

#ifndef GTP_TEST_FUZZ_MUTATEPLAN_H
#define GTP_TEST_FUZZ_MUTATEPLAN_H

#include "Random.h"

#include "gtp/Plan/plan.pb.h"

namespace gtp::fuzz {

/// Changes one thing somewhere below `message`: a number, the order of a list,
/// an element more or less.
void mutateMessage(google::protobuf::Message &message, Random &random);

/// Changes when and where a plan works and not what it computes: a wait or an
/// event more or less, an operation moved in the order or to another stream, a
/// buffer moved or grown, a larger arena. Whether the result is legal is for
/// the checker to say.
void mutateSchedule(plan::pb::Plan &plan, Random &random);

/// Whether `a` and `b` differ in nothing but names, claims, durations, waits,
/// streams, offsets and sizes of buffers, and the order of operations that do
/// not depend on each other: every operation reads what the same operations
/// wrote. If both are legal they compute the same bits.
bool sameProgram(const plan::pb::Plan &a, const plan::pb::Plan &b);

} // namespace gtp::fuzz

#endif // GTP_TEST_FUZZ_MUTATEPLAN_H
