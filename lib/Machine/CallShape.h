//===- CallShape.h - What the signature of a kernel's call says -----------===//

#ifndef GTP_LIB_MACHINE_CALLSHAPE_H
#define GTP_LIB_MACHINE_CALLSHAPE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gtp::machine {

/// Types and local shapes of a call's operands.
struct CallShape {
  struct Operand {
    std::string type;
    std::vector<int64_t> dims;
    double elements() const;
  };
  std::vector<Operand> operands;

  /// Reads what gtp/Plan/KernelSignature.h writes, "bf16[8, 64] f32[]"; nothing
  /// of any other text.
  static std::optional<CallShape> parse(std::string_view signature);

  /// What the time of a call grows with: of a matrix product its flops, of
  /// attention the pairs of positions times the width, of any other kernel the
  /// bytes of its operands. 0 is not known.
  double size(std::string_view kernel) const;

  /// Calls of one kernel with the same of these are told apart by size alone.
  std::string kind() const;

  /// Rows and columns of what a matrix product writes; nothing of others.
  std::optional<std::pair<int64_t, int64_t>>
  product(std::string_view kernel) const;
};

} // namespace gtp::machine

#endif // GTP_LIB_MACHINE_CALLSHAPE_H
