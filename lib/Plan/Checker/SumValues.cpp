//===- SumValues.cpp - Loss, count and norm as sums of terms --------------===//
//
// A sum over tokens is the terms that kernels made, each of some microbatches,
// as a gradient is; the squared norm is the squares of gradients. Adding unites
// terms, reductions keep them, and only whole sums are used.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::check;

/// Numbers of parts above those of any operation are squares.
static constexpr uint64_t kFirstSquare = uint64_t(1) << 40;

uint32_t Interpreter::squareOf(uint32_t parameter) {
  return parts.intern({{kFirstSquare + parameter, Coverage::Step}});
}

uint32_t Interpreter::uniteSums(uint32_t a, uint32_t b) {
  if (std::optional<uint32_t> sum = parts.unite(a, b))
    return *sum;
  for (const Part &part : parts[b])
    if (part.operation >= kFirstSquare) {
      fail("exactly-once", "counts the square of the gradient of " +
                               c.parameterText(static_cast<uint32_t>(
                                   part.operation - kFirstSquare)) +
                               " twice");
      return a;
    }
  fail("exactly-once", "counts a term of a sum over tokens twice");
  return a;
}

void Interpreter::checkMicrobatch(const Touch &touch) {
  const pb::Operand &operand = *touch.operand;
  uint64_t size = c.buffer(touch.buffer()).size();
  bool body = region->region->kind() == pb::Region::BODY;
  uint64_t pieces = body ? region->region->repeat() : 1;
  uint64_t piece = size / pieces;
  bool right = isDense(operand) && operand.rank_strides().empty() &&
               operand.offset() == 0 && byteExtent(operand) == piece &&
               (pieces == 1 || operand.iteration_stride() == piece);
  if (!right)
    fail("exactly-once",
         "reads " + c.bufferText(touch.buffer()) + " from byte " +
             std::to_string(operand.offset()) + " on as " +
             plan::describe(operand) + ", " +
             std::to_string(operand.iteration_stride()) +
             " bytes further each iteration, expected exactly " +
             (body ? "its microbatch of " + std::to_string(piece) + " bytes"
                   : "all of its " + std::to_string(size) + " bytes"));
}

void Interpreter::checkWholeSum(const Read &value, const std::string &operand) {
  if (value.content != Content::Data)
    return;
  for (const Part &part : parts[value.parts])
    if (part.operation >= kFirstSquare)
      return fail("role", "reads " + operand +
                              ", which holds squares of gradients, expected a "
                              "value");
    else if (part.coverage != Coverage::Step)
      return fail("exactly-once", "reads " + operand +
                                      ", which lacks microbatches: it is the "
                                      "sum of those so far");
}

void Interpreter::checkSquaredNorm(const Read &value,
                                   const std::string &operand) {
  std::vector<Part> expected;
  for (uint32_t p = 0; p < parameters.size(); ++p)
    if (!c.parameter(p).frozen())
      expected.push_back({kFirstSquare + p, Coverage::Step});
  const std::vector<Part> &found = parts[value.parts];
  auto same = [](const Part &a, const Part &b) {
    return a.operation == b.operation && a.coverage == b.coverage;
  };
  if (value.defined && !std::equal(expected.begin(), expected.end(),
                                   found.begin(), found.end(), same))
    fail("exactly-once",
         "reads " + operand + ", which has " + std::to_string(found.size()) +
             " terms, expected the square of the gradient of each of the " +
             std::to_string(expected.size()) + " trained parameters");
}

void Interpreter::checkSumOutput(uint32_t buffer, const Read &value) {
  std::string name;
  for (const pb::Io &io : c.program().outputs())
    if (io.buffer() == buffer)
      name = c.string(io.name());
  std::string what =
      c.programText() + "at the end of the step, output '" + name + "' ";
  const std::vector<Part> &terms = parts[value.parts];
  bool isSum = name == "loss" || name == "count";
  if (isSum && terms.empty())
    return c.fail("role",
                  what + "must be a sum over tokens, found " + describe(value));
  std::vector<uint64_t> computations;
  for (const Part &part : terms) {
    if (part.operation >= kFirstSquare)
      return c.fail("role", what + "holds squares of gradients");
    if (part.coverage != Coverage::Step)
      return c.fail("exactly-once", what + "lacks microbatches");
    computations.push_back(contributedUses[part.operation]);
  }
  std::sort(computations.begin(), computations.end());
  if (std::adjacent_find(computations.begin(), computations.end()) !=
      computations.end())
    c.fail("exactly-once", what + "has a term twice");
}
