//===- TextForm.h - The line format of printed problems -------------------===//
//
// One item a line: `keyword position... key=value...`, lists comma separated.
// `#` starts a comment. Tests write problems and wrong solutions in it.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_LIB_PLANNING_TEXTFORM_H
#define GTP_LIB_PLANNING_TEXTFORM_H

#include "gtp/Planning/OrderGraph.h"

#include <algorithm>
#include <string_view>

namespace gtp::planning {

/// Reads the fields of one line. The first thing that is wrong is kept; getters
/// then return zeros, and finish() reports it with the line's number.
class TextLine {
public:
  TextLine(unsigned number, const std::string &text);

  const std::string &keyword() const { return word; }
  int64_t position(size_t index);
  /// Position 0 must be `expected`: items are numbered as they come.
  void expectPosition(int64_t expected);
  int64_t integer(const std::string &key, int64_t minimum = 0);
  int64_t integerOr(const std::string &key, int64_t absent,
                    int64_t minimum = 0);
  std::vector<uint32_t> list(const std::string &key);
  std::string text(const std::string &key);
  bool has(const std::string &key) const;
  void fail(const std::string &message);
  /// An error also for positions and keys that nobody asked for.
  Status finish();

private:
  struct Field {
    std::string key, value;
    bool used = false;
  };
  Field *find(const std::string &key);
  int64_t parse(const std::string &text, int64_t minimum);

  unsigned number;
  std::string word;
  std::vector<std::string> positions;
  size_t positionsUsed = 0;
  std::vector<Field> fields;
  std::string error;
};

/// The lines that are not blank.
std::vector<TextLine> splitLines(const std::string &text);

/// "1,2,3".
template <typename Range>
std::string joinList(const Range &range) {
  std::string text;
  for (auto item : range)
    text += (text.empty() ? "" : ",") + std::to_string(item);
  return text;
}

/// " key=value", or nothing for an empty value.
std::string textField(const std::string &key, const std::string &value);

/// Lines `op 0 stream=0 after=...` of an order graph.
std::string printOps(const OrderGraph &order);
/// Appends the operation of an `op` line to `order`.
Status parseOp(TextLine &line, OrderGraph &order);

} // namespace gtp::planning

#endif // GTP_LIB_PLANNING_TEXTFORM_H
