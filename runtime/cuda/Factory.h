//===- Factory.h - From a call's site to the body that launches it --------===//

#ifndef GTP_RUNTIME_CUDA_FACTORY_H
#define GTP_RUNTIME_CUDA_FACTORY_H

#include "CallSite.h"
#include "Check.h"
#include "Context.h"

#include <string_view>
#include <vector>

namespace gtp::rt::cuda {

/// A call as a factory sees it.
class Site : public CallSite {
public:
  Site(const CallSite &site, Context &context)
      : CallSite(site), context(context) {}

  /// Fails for a float64 operand.
  Status needNarrow(size_t index) const;
  /// Fails for any float64 operand.
  Status needNarrow() const;
  /// The operand without its address.
  Tensor tensor(size_t index) const;
  /// What every address that the operand has is a multiple of, up to 256 bytes.
  uint64_t alignment(size_t index) const;

  Context &context;
};

/// An operand of a body: what is known at load, and where it is in a call.
struct Slot {
  Tensor tensor;
  size_t index;

  Slot(const Site &site, size_t index)
      : tensor(site.tensor(index)), index(index) {}
  Tensor in(const KernelCall &call) const {
    Tensor result = tensor;
    result.data = call.arguments[index].data;
    result.add = call.arguments[index].add;
    return result;
  }
};

/// The operand `starts`, which a call may lack.
struct Starts {
  bool given;
  size_t index;

  Starts(const Site &site, size_t index)
      : given(index < site.count()), index(index) {}
  const int32_t *in(const KernelCall &call) const {
    return given ? call.as<const int32_t>(index) : nullptr;
  }
};

using Factory = StatusOr<KernelBody> (*)(const Site &);

struct FactoryEntry {
  std::string_view name;
  Factory factory;
};

// One list a family; `lookupFactory` joins them.
const std::vector<FactoryEntry> &attentionFactories();
const std::vector<FactoryEntry> &elementwiseFactories();
const std::vector<FactoryEntry> &modelFactories();
const std::vector<FactoryEntry> &updateFactories();

/// Null when CUDA has no such kernel.
Factory lookupFactory(std::string_view name);

} // namespace gtp::rt::cuda

#endif // GTP_RUNTIME_CUDA_FACTORY_H
