//===- KernelShapes.h - Each kernel's rules on shapes and types -*- C++ -*-===//

#ifndef GTP_LIB_PLAN_KERNELSHAPES_H
#define GTP_LIB_PLAN_KERNELSHAPES_H

#include "gtp/Plan/KernelCall.h"

namespace gtp::plan {

/// The part of `verifyKernelCall` that differs by kernel. Operand count,
/// attributes and each operand by itself have been verified.
Status verifyKernelShapes(const pb::Plan &plan, const pb::Kernel &kernel,
                          const KernelSpec &spec);

} // namespace gtp::plan

#endif // GTP_LIB_PLAN_KERNELSHAPES_H
