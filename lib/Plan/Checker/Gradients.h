//===- Gradients.h - Sets of gradient contributions -------------*- C++ -*-===//
//
// Also of the terms of other sums over tokens.
//
// A gradient's content is which contributions it is the sum of. A contribution
// is what one operation makes in one microbatch; adding unites sets, and a
// contribution in both would be counted twice. Microbatches are told apart only
// as far as accumulation needs: those before this iteration, and this one.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLAN_CHECKER_GRADIENTS_H
#define GTP_LIB_PLAN_CHECKER_GRADIENTS_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gtp::plan::check {

/// The microbatches of which a sum has an operation's contribution.
enum class Coverage : uint8_t {
  Current,    ///< this one only
  Previous,   ///< all before this one
  All,        ///< all up to this one
  Step,       ///< all of the step: known behind the body, or made outside it
  Incomplete, ///< neither
};

struct Part {
  uint64_t operation = 0; ///< number of the kernel in the program
  Coverage coverage = Coverage::Current;
  bool operator<(const Part &other) const {
    return operation != other.operation ? operation < other.operation
                                        : coverage < other.coverage;
  }
};

/// Interned lists of parts, so that tags stay small. List 0 is empty.
class PartTable {
public:
  PartTable() : lists(1) { indices[{}] = 0; }

  const std::vector<Part> &operator[](uint32_t index) const {
    return lists[index];
  }
  uint32_t intern(const std::vector<Part> &list);
  /// None when a contribution is in both.
  std::optional<uint32_t> unite(uint32_t a, uint32_t b);
  /// The list at the start of the next iteration; `first`: after the first one,
  /// where the current microbatch is all there is.
  uint32_t nextIteration(uint32_t list, bool first);
  /// The list behind the body of one iteration (`only`) or more.
  uint32_t afterBody(uint32_t list, bool only);

private:
  std::vector<std::vector<Part>> lists;
  std::map<std::vector<Part>, uint32_t> indices;
};

} // namespace gtp::plan::check

#endif // GTP_LIB_PLAN_CHECKER_GRADIENTS_H
