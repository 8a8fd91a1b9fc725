//===- Staging.h - bfloat16 operands of kernels that compute in float32 ---===//
//
// The meaning of a kernel on bfloat16 is that of float32 on the same values,
// each result rounded once where it is stored. So the float32 body runs on
// copies of the bfloat16 operands in memory of the thread.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_STAGING_H
#define GTP_RUNTIME_HOST_STAGING_H

#include "Kernel.h"

namespace gtp::rt::host {

/// The body of a verified call. `entry` is called on the call itself when no
/// operand is bfloat16 or when it takes every type.
StatusOr<KernelBody> makeBody(const CallSite &site, const KernelEntry &entry,
                              KernelTables &tables);

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_STAGING_H
