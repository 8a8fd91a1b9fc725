//===- KernelCall.h - A plan's call of a registered kernel ----------------===//
//
// Whether the operands and attributes of a call fit the kernel, so that a call
// that passes touches no byte outside its operands, and access to attributes.
// Whether the operands fit their buffers is the checker's business.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_PLAN_KERNELCALL_H
#define GTP_PLAN_KERNELCALL_H

#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/plan.pb.h"
#include "gtp/Support/Status.h"

#include <vector>

namespace gtp::plan {

/// Name of the kernel; empty when the index is out of range.
std::string_view kernelName(const pb::Plan &plan, const pb::Kernel &kernel);

/// Checks name, version, number of operands, types, shapes, pitches and
/// attributes. Ids and labels are trusted to be below `plan.model.vocabulary`,
/// which the runtime checks as it reads data; tables and logits hold that many.
/// Sizes of scratch depend on the backend and are checked there.
Status verifyKernelCall(const pb::Plan &plan, const pb::Kernel &kernel);

/// Index in `kernel.operands` of the first operand of the spec called `name`,
/// and how many there are (variadic). The call must have passed
/// `verifyKernelCall`.
struct OperandRange {
  int first = 0;
  int count = 0;
};
OperandRange findOperands(const KernelSpec &spec, const pb::Kernel &kernel,
                          std::string_view name);

/// For each operand of a part of a fused kernel its index in `kernel.operands`.
/// The call must have the number of operands that the kernel takes.
std::vector<int> partOperands(const KernelSpec &spec, const pb::Kernel &kernel,
                              const KernelPart &part);
/// The part as a call of its own: the operands are its, name and attributes are
/// still those of the fused kernel.
pb::Kernel partCall(const KernelSpec &spec, const pb::Kernel &kernel,
                    const KernelPart &part);

/// Attributes of a verified call; the default when an optional one is absent.
double floatAttribute(const pb::Plan &plan, const pb::Kernel &kernel,
                      std::string_view name, double otherwise = 0);
int64_t intAttribute(const pb::Plan &plan, const pb::Kernel &kernel,
                     std::string_view name, int64_t otherwise = 0);
/// Whether the call leaves the order of its sums to the backend.
bool isFast(const pb::Plan &plan, const pb::Kernel &kernel,
            const KernelSpec &spec);
/// Null when absent.
const pb::FloatList *constantAttribute(const pb::Plan &plan,
                                       const pb::Kernel &kernel,
                                       std::string_view name);

} // namespace gtp::plan

#endif // GTP_PLAN_KERNELCALL_H
