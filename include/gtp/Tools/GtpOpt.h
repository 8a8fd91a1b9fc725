//===- GtpOpt.h - The compiler's command line -----------------------------===//

#ifndef GTP_TOOLS_GTPOPT_H
#define GTP_TOOLS_GTPOPT_H

namespace gtp {

/// The whole of gtp-opt; what it returns is the exit code.
int gtpOptMain(int argc, char **argv);

} // namespace gtp

#endif // GTP_TOOLS_GTPOPT_H
