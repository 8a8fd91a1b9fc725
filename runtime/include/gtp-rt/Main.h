//===- Main.h - The programs that train -----------------------------------===//
//
// gtp-run, and a program that `gtp-opt --emit=cpp` wrote: with the backends of
// this build.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RT_MAIN_H
#define GTP_RT_MAIN_H

#include "gtp/Plan/plan.pb.h"

namespace gtp::rt {

/// gtp-run: trains with a plan from a file. Returns the exit code.
int runMain(int argc, char **argv);

/// The same for a plan that the program builds: the options are gtp-run's
/// without PLAN, and `--emit-plan=FILE` writes it. Refuses a plan with another
/// hash, unless `hash` is empty.
int runBuiltPlan(int argc, char **argv, plan::pb::Plan plan, const char *hash);

} // namespace gtp::rt

#endif // GTP_RT_MAIN_H
