//===- Fused.h - Kernels that do the work of several ----------------------===//

#ifndef GTP_RUNTIME_HOST_FUSED_H
#define GTP_RUNTIME_HOST_FUSED_H

#include "Kernel.h"

namespace gtp::rt::host {

/// The body of a verified call of a fused kernel: those of its parts, one after
/// the other on the same operands, which is what it means unless it rounds only
/// once.
StatusOr<KernelBody> makeFusedBody(const CallSite &site, KernelTables &tables);

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_FUSED_H
