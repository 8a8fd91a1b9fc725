//===- CallShape.cpp - What the signature of a kernel's call says ---------===//

#include "CallShape.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gtp::machine {

static bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

static double bytesOf(std::string_view type) {
  for (auto [name, bytes] : {std::pair<std::string_view, double>{"f64", 8},
                             {"i64", 8},
                             {"f32", 4},
                             {"i32", 4},
                             {"bf16", 2},
                             {"i16", 2},
                             {"u8", 1}})
    if (type == name)
      return bytes;
  return 0;
}

double CallShape::Operand::elements() const {
  double product = 1;
  for (int64_t dim : dims)
    product *= double(dim);
  return product;
}

std::optional<CallShape> CallShape::parse(std::string_view text) {
  CallShape shape;
  while (!text.empty()) {
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos ||
        close < open)
      return std::nullopt;
    Operand operand;
    operand.type = text.substr(0, open);
    if (bytesOf(operand.type) == 0)
      return std::nullopt;
    const char *next = text.data() + open + 1, *end = text.data() + close;
    while (next != end) {
      int64_t dim = 0;
      auto [after, error] = std::from_chars(next, end, dim);
      if (error != std::errc() || dim < 0)
        return std::nullopt;
      operand.dims.push_back(dim);
      next =
          std::find_if(after, end, [](char c) { return c != ',' && c != ' '; });
      if (next == after && next != end)
        return std::nullopt;
    }
    shape.operands.push_back(std::move(operand));
    text.remove_prefix(close + 1);
    if (!text.empty() && text.front() != ' ')
      return std::nullopt;
    text.remove_prefix(std::min<size_t>(1, text.size()));
  }
  return shape;
}

std::optional<std::pair<int64_t, int64_t>>
CallShape::product(std::string_view kernel) const {
  // Both factors first, the result last, a bias in between.
  if (!startsWith(kernel, "linear") || operands.size() < 3 ||
      operands.back().dims.empty())
    return std::nullopt;
  const int64_t columns = operands.back().dims.back();
  const double elements = operands.back().elements();
  if (columns <= 0 || elements > 1e15)
    return std::nullopt;
  return std::pair(int64_t(elements) / columns, columns);
}

double CallShape::size(std::string_view kernel) const {
  // The three matrices have mk, kn and mn elements.
  if (product(kernel))
    return 2 * std::sqrt(operands[0].elements() * operands[1].elements() *
                         operands.back().elements());
  if (startsWith(kernel, "attention") && !operands.empty() &&
      operands[0].dims.size() == 3)
    return operands[0].elements() * double(operands[0].dims[1]);
  double bytes = 0;
  for (const Operand &operand : operands)
    bytes += operand.elements() * bytesOf(operand.type);
  return bytes;
}

std::string CallShape::kind() const {
  return operands.empty()
             ? ""
             : std::to_string(operands.size()) + " " + operands.front().type;
}

} // namespace gtp::machine
