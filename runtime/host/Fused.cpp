//===- Fused.cpp - Kernels that do the work of several --------------------===//

#include "Fused.h"
#include "Staging.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;
using namespace gtp::rt::host;

namespace {
struct Part {
  KernelBody body;
  std::vector<int> operands; ///< of the fused call
};
} // namespace

StatusOr<KernelBody> gtp::rt::host::makeFusedBody(const CallSite &site,
                                                  KernelTables &tables) {
  std::vector<Part> parts;
  for (const KernelPart &part : site.kind().parts) {
    pb::Kernel call = partCall(site.kind(), site.proto(), part);
    GTP_ASSIGN_OR_RETURN(
        KernelBody body,
        makeBody(site.asKernel(call, *lookupKernel(part.kernel)),
                 *lookupEntry(part.kernel), tables));
    parts.push_back(
        {std::move(body), partOperands(site.kind(), site.proto(), part)});
  }
  return KernelBody([parts](const KernelCall &call) {
    // Kept between calls, so that steps after the first allocate nothing.
    thread_local std::vector<Argument> arguments;
    for (const Part &part : parts) {
      arguments.clear();
      for (int operand : part.operands)
        arguments.push_back(call.arguments[operand]);
      GTP_RETURN_IF_ERROR(
          part.body({arguments.data(), call.coordinates, call.stream}));
    }
    return Status::ok();
  });
}
