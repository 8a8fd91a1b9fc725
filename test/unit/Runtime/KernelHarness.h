//===- KernelHarness.h - Runs one kernel of the registry through a backend ===//
//
// A case gives inputs and what the registry's meaning makes of them, computed
// in double. The harness runs it dense, with a pitch on every operand that may
// have one, and, where a result may accumulate, twice in a row; then with
// bfloat16 operands, whose results must be the float32 kernel's on the same
// inputs, rounded once; a backend says by how many units they may differ then.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_UNIT_RUNTIME_KERNELHARNESS_H
#define GTP_TEST_UNIT_RUNTIME_KERNELHARNESS_H

#include "HostPlan.h"

namespace gtp::test {

struct Tensor {
  Dims dims;
  std::vector<double> values;

  Tensor() = default;
  explicit Tensor(Dims dims, double value = 0);
  uint64_t columns() const { return dims.empty() ? 1 : dims.back(); }
  uint64_t rows() const { return values.size() / columns(); }
  double &at(uint64_t row, uint64_t column) {
    return values[row * columns() + column];
  }
  double at(uint64_t row, uint64_t column) const {
    return values[row * columns() + column];
  }
};

/// Values in [-1, 1] that float32 holds exactly.
Tensor randomTensor(Dims dims, uint64_t seed);

class KernelCase {
public:
  explicit KernelCase(std::string name) : name(std::move(name)) {}

  KernelCase &in(const Tensor &values, pb::DType type = pb::F32);
  /// A result and what it must be.
  KernelCase &out(const Tensor &expected, pb::DType type = pb::F32);
  /// Read and written.
  KernelCase &inOut(const Tensor &before, const Tensor &expected,
                    pb::DType type = pb::F32);
  KernelCase &scratch(uint64_t bytes);
  KernelCase &real(const std::string &attribute, double value);
  KernelCase &integer(const std::string &attribute, int64_t value);
  KernelCase &constant(const std::string &attribute,
                       const std::vector<double> &values);
  /// Largest |got - expected| / (1 + |expected|); default 1e-5.
  KernelCase &tolerance(double value);

  /// Runs all variants and compares.
  void check() const;
  /// What all operands hold after one run, dense.
  std::vector<Tensor> results() const;
  /// What each rank of a mesh gets as the last operand, dense, once.
  std::vector<Tensor>
  runOn(const std::vector<std::pair<std::string, uint64_t>> &axes) const;

private:
  struct Bound {
    Tensor before;
    Tensor expected;
    pb::DType type;
    bool read, written;
  };
  struct Built;

  /// `inParts` calls the parts of a fused kernel in its place.
  Built build(HostPlan plan, uint64_t gap, uint64_t repeat,
              bool inParts = false) const;
  void addCall(HostPlan &plan, pb::Region *region, const std::string &called,
               const std::vector<pb::Operand> &operands) const;
  /// Runs a step and reads the operands' bytes; empty when it fails.
  std::vector<std::vector<std::byte>> execute(const Built &built) const;
  void run(uint64_t gap, uint64_t repeat) const;
  /// `keepGradients` leaves results of that role in float32.
  void runBfloat16(uint64_t gap, uint64_t repeat, bool keepGradients) const;
  const plan::OperandSpec &spec(size_t operand) const;

  std::string name;
  std::vector<Bound> bounds;
  std::vector<std::pair<std::string, double>> reals;
  std::vector<std::pair<std::string, int64_t>> integers;
  std::vector<std::pair<std::string, std::vector<double>>> constants;
  double limit = 1e-5;
};

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_KERNELHARNESS_H
