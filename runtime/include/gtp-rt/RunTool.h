//===- RunTool.h - gtp-run, but for main ----------------------------------===//

#ifndef GTP_RT_RUNTOOL_H
#define GTP_RT_RUNTOOL_H

#include "gtp-rt/Backend.h"

#include <functional>
#include <memory>

namespace gtp::rt {

/// Makes a backend for a plan: `createHostBackend`, or a test's own.
using BackendFactory = std::function<StatusOr<std::unique_ptr<Backend>>(
    const plan::pb::Plan &, const BackendOptions &)>;

/// Runs the command line and returns the exit code. Every input is checked
/// before the first step, and outputs appear whole at the end.
int runTool(int argc, const char *const *argv,
            const BackendFactory &createHost);

} // namespace gtp::rt

#endif // GTP_RT_RUNTOOL_H
