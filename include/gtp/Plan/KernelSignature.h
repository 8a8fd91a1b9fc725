//===- KernelSignature.h - What measured times are told apart by ----------===//

#ifndef GTP_PLAN_KERNELSIGNATURE_H
#define GTP_PLAN_KERNELSIGNATURE_H

#include "gtp/Plan/plan.pb.h"

#include <string>

namespace gtp::plan {

struct KernelSpec;

/// Adds type and local shape of an operand that is not scratch to the signature
/// of a kernel's call: "bf16[8, 64] bf16[32, 64]". Gaps between rows are left
/// out.
void addToSignature(std::string &signature, const pb::Operand &operand);

/// The signature of a call of `spec`, its operands in order.
std::string signatureOf(const KernelSpec &spec, const pb::Kernel &kernel);

} // namespace gtp::plan

#endif // GTP_PLAN_KERNELSIGNATURE_H
