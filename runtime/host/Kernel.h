//===- Kernel.h - How the host backend calls a kernel ---------------------===//
//
// A factory turns a call of a plan, already verified against the registry, into
// a body that only needs addresses. Factories run at load and do everything
// that is the same in every step; bodies are shared by all ranks, keep no state
// and allocate nothing.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_RUNTIME_HOST_KERNEL_H
#define GTP_RUNTIME_HOST_KERNEL_H

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/Status.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace gtp::rt::host {

/// An operand's elements as rows of its last dimension.
struct Shape {
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t pitch = 0;
  uint64_t elementBytes = 0;

  uint64_t elements() const { return rows * columns; }
};

Shape shapeOf(const plan::pb::Operand &operand);

/// Where an operand is on this rank in this iteration.
struct Argument {
  std::byte *data = nullptr;
  /// Add to what is there.
  bool add = false;
};

struct KernelCall {
  const Argument *arguments;
  /// The rank's coordinate on each axis of the mesh.
  const uint64_t *coordinates;

  float *f32(size_t operand) const { return as<float>(operand); }
  template <typename T>
  T *as(size_t operand) const {
    return reinterpret_cast<T *>(arguments[operand].data);
  }
  bool add(size_t operand) const { return arguments[operand].add; }
};

using KernelBody = std::function<Status(const KernelCall &)>;

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

/// A verified call as a factory sees it.
class KernelSite {
public:
  KernelSite(const plan::pb::Plan &plan, const plan::pb::Kernel &kernel,
             const plan::KernelSpec &spec, KernelTables &tables)
      : tables(tables), plan(plan), kernel(kernel), spec(spec) {}

  size_t count() const { return static_cast<size_t>(kernel.operands_size()); }
  const plan::pb::Operand &operand(size_t index) const {
    return kernel.operands(static_cast<int>(index));
  }
  Shape shape(size_t index) const { return shapeOf(operand(index)); }
  uint64_t dim(size_t index, int dimension) const {
    return operand(index).dims(dimension);
  }

  double real(std::string_view name) const {
    return plan::floatAttribute(plan, kernel, name);
  }
  int64_t integer(std::string_view name) const {
    return plan::intAttribute(plan, kernel, name);
  }
  const plan::pb::FloatList &constant(std::string_view name) const {
    return *plan::constantAttribute(plan, kernel, name);
  }

  /// "'q' bf16[2, 4] ...", for messages.
  std::string text(size_t index) const;
  /// Fails unless every operand of a float type is float32, but for those the
  /// kernel defines as float64.
  Status needFloat32() const;
  /// Fails when a matrix is larger than the BLAS can index.
  Status needBlasSizes() const;

  KernelTables &tables;

private:
  const plan::pb::Plan &plan;
  const plan::pb::Kernel &kernel;
  const plan::KernelSpec &spec;
};

using KernelFactory = StatusOr<KernelBody> (*)(const KernelSite &);

/// Null when the host has no such kernel.
KernelFactory lookupFactory(std::string_view name);

/// A table's line: the kernel's name in the registry and who makes it.
struct KernelEntry {
  std::string_view name;
  KernelFactory factory;
};

// One list a family; `lookupFactory` joins them.
const std::vector<KernelEntry> &activationKernels();
const std::vector<KernelEntry> &attentionKernels();
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
