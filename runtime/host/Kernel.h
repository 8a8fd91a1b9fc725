//===- Kernel.h - How the host backend calls a kernel ---------------------===//
//
// A factory makes a body of a call; bodies are shared by all ranks.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_KERNEL_H
#define GTP_RUNTIME_HOST_KERNEL_H

#include "CallSite.h"

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace gtp::rt::host {

using rt::Argument;
using rt::KernelBody;
using rt::KernelCall;
using rt::Shape;

/// Positions of the rows of an operand [B, T, ..]: along T, or from where the
/// row's document starts if the call has the operand `starts`.
struct RowPositions {
  uint64_t length = 1;               ///< T
  std::optional<size_t> starts = {}; ///< the operand

  /// Fails unless every start is an index up to its own row's.
  Status check(const KernelCall &call, uint64_t rows) const;
  /// From row `first` on; null if there are none.
  const int32_t *startsOf(const KernelCall &call, uint64_t first) const {
    return starts ? call.as<const int32_t>(*starts) + first : nullptr;
  }
  uint64_t of(const KernelCall &call, uint64_t row) const {
    const int32_t *start = startsOf(call, row);
    return row % length - (start ? static_cast<uint64_t>(*start) : 0);
  }
};

/// cos and sin of every (position, frequency).
struct RopeTable {
  std::vector<float> cosines, sines;
};

/// What several calls of a plan share, made at load.
struct KernelTables {
  /// By constant and number of positions.
  std::map<std::pair<const void *, uint64_t>, std::shared_ptr<const RopeTable>>
      rope;
};

/// A verified call as a factory sees it, and the plan's, which may hold
/// bfloat16 where the body gets float32 (Staging.h).
class KernelSite : public CallSite {
public:
  KernelSite(const CallSite &site, const CallSite &stored, KernelTables &tables)
      : CallSite(site), tables(tables), stored(stored) {}

  plan::pb::DType storedType(size_t index) const {
    return stored.operand(index).dtype();
  }

  /// Positions of the rows of operand `x`; operand `starts` may be absent.
  RowPositions positions(size_t x, size_t starts) const;

  /// Fails unless every operand of a float type is float32, but for those the
  /// kernel defines as float64.
  Status needFloat32() const;
  /// Fails when a matrix is larger than the BLAS can index.
  Status needBlasSizes() const;

  KernelTables &tables;

private:
  const CallSite &stored;
};

using KernelFactory = StatusOr<KernelBody> (*)(const KernelSite &);

/// A table's line: the kernel's name in the registry and who makes it.
struct KernelEntry {
  std::string_view name;
  KernelFactory factory;
  /// The body takes bfloat16 as it is stored: it moves bytes or converts.
  bool anyType = false;
};

/// Null when the host has no such kernel.
const KernelEntry *lookupEntry(std::string_view name);

// One list a family; `lookupEntry` joins them.
const std::vector<KernelEntry> &activationKernels();
const std::vector<KernelEntry> &attentionKernels();
const std::vector<KernelEntry> &documentKernels();
const std::vector<KernelEntry> &elementwiseKernels();
const std::vector<KernelEntry> &embeddingKernels();
const std::vector<KernelEntry> &linearKernels();
const std::vector<KernelEntry> &lossKernels();
const std::vector<KernelEntry> &normKernels();
const std::vector<KernelEntry> &optimizerKernels();
const std::vector<KernelEntry> &ropeKernels();

/// Memory of the calling thread for intermediate sums, kept between calls so
/// that steps after the first allocate nothing. Invalidated by the next call.
double *threadSums(size_t count);

} // namespace gtp::rt::host

#endif // GTP_RUNTIME_HOST_KERNEL_H
