//===- Mutate.cpp ---------------------------------------------------------===//

#include "Mutate.h"

#include <algorithm>
#include <cctype>
#include <vector>

using namespace gtp::fuzz;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static void truncate(std::string &text, Random &random) {
  text.resize(random.below(text.size()));
}

static void flipBits(std::string &text, Random &random) {
  for (size_t flips = 1 + random.below(8); flips-- && !text.empty();) {
    char &byte = text[random.below(text.size())];
    byte = static_cast<char>(byte ^ (1 << random.below(8)));
  }
}

static void insertBytes(std::string &text, Random &random) {
  std::string bytes;
  for (size_t n = 1 + random.below(16); n--;)
    bytes += static_cast<char>(random.below(256));
  text.insert(random.below(text.size() + 1), bytes);
}

static void putNumber(std::string &bytes, Random &random) {
  static const uint64_t kNumbers[] = {0,
                                      1,
                                      2,
                                      3,
                                      7,
                                      0x7fffffff,
                                      0x80000000,
                                      UINT64_MAX,
                                      uint64_t(1) << 44,
                                      uint64_t(1) << 62,
                                      uint64_t(1) << 63};
  static const size_t kSizes[] = {1, 2, 4, 8};
  size_t size = random.pick(kSizes);
  if (bytes.size() < size)
    return;
  uint64_t number = random.below(4) ? random.pick(kNumbers) : random.below(64);
  // Headers are short, and where most of the meaning is.
  size_t last = bytes.size() - size;
  size_t at =
      random.below(random.below(2) ? std::min<size_t>(last + 1, 64) : last + 1);
  for (size_t i = 0; i < size; ++i)
    bytes[at + i] = static_cast<char>(number >> (8 * i));
}

void gtp::fuzz::mutateBytes(std::string &bytes, Random &random) {
  using Mutation = void (*)(std::string &, Random &);
  static const Mutation kMutations[] = {truncate, flipBits, insertBytes,
                                        putNumber, putNumber};
  for (size_t n = 1 + random.below(3); n--;)
    random.pick(kMutations)(bytes, random);
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

/// Removes, doubles or moves a line.
static void shuffleLines(std::string &text, Random &random) {
  std::vector<std::string> lines(1);
  for (char c : text)
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  size_t from = random.below(lines.size()), to = random.below(lines.size());
  switch (random.below(3)) {
  case 0:
    lines.erase(lines.begin() + static_cast<ptrdiff_t>(from));
    break;
  case 1: {
    std::string copy = lines[from];
    lines.insert(lines.begin() + static_cast<ptrdiff_t>(to), copy);
    break;
  }
  default:
    std::swap(lines[from], lines[to]);
  }
  text.clear();
  for (size_t i = 0; i < lines.size(); ++i)
    text += (i ? "\n" : "") + lines[i];
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Brackets, up to far deeper than any stack.
static void nest(std::string &text, Random &random) {
  static const char *const kOpen[] = {"[", "{\"a\":", "[[{\"rope_scaling\":"};
  std::string deep;
  const char *open = random.pick(kOpen);
  for (size_t i = 0, depth = size_t(1) << random.below(17); i < depth; ++i)
    deep += open;
  text.insert(random.below(text.size() + 1), deep);
}

/// Puts another value where one is.
static void replaceValue(std::string &text, Random &random) {
  static const char *const kValues[] = {"0",
                                        "-1",
                                        "1",
                                        "2",
                                        "3",
                                        "7",
                                        "1e999",
                                        "-1e999",
                                        "1e308",
                                        "1e-320",
                                        "0.5",
                                        "2147483648",
                                        "4294967295",
                                        "1000000000",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "-9223372036854775808",
                                        "99999999999999999999999999999999",
                                        "true",
                                        "false",
                                        "null",
                                        "\"\"",
                                        "\"silu\"",
                                        "\"yarn\"",
                                        "\"F32\"",
                                        "[]",
                                        "[0,0]",
                                        "{}",
                                        "[\"LlamaForCausalLM\"]",
                                        "{\"type\": \"dynamic\"}",
                                        "\"\\ud800\"",
                                        "NaN",
                                        "1e",
                                        "--1"};
  std::vector<size_t> colons;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == ':')
      colons.push_back(i + 1);
  if (colons.empty())
    return;
  size_t begin = random.pick(colons);
  size_t end = text.find_first_of(",\n", begin);
  text.replace(begin, std::min(end, text.size()) - begin, random.pick(kValues));
}

void gtp::fuzz::mutateJson(std::string &text, Random &random) {
  using Mutation = void (*)(std::string &, Random &);
  static const Mutation kMutations[] = {
      truncate,     flipBits,     nest,       replaceValue,
      replaceValue, shuffleLines, insertBytes};
  // Mostly one: more hide behind the first.
  for (size_t n = 1 + random.below(4) / 3 + random.below(4) / 3; n--;)
    random.pick(kMutations)(text, random);
}

//===----------------------------------------------------------------------===//
// MLIR
//===----------------------------------------------------------------------===//

namespace {
struct Token {
  size_t begin = 0, end = 0;
};
} // namespace

static bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
         c == '%' || c == '@' || c == '!' || c == '#';
}

/// Words with their sigils, strings, and single other characters.
static std::vector<Token> tokenize(const std::string &text) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    if (text[i] == '"') {
      end = std::min(text.find('"', end), text.size() - 1) + 1;
    } else if (isWord(text[i])) {
      while (end < text.size() && isWord(text[end]))
        ++end;
    }
    tokens.push_back({i, end});
    i = end;
  }
  return tokens;
}

static void replaceToken(std::string &text, Random &random) {
  static const char *const kTokens[] = {
      "0",
      "-1",
      "1",
      "2",
      "7",
      "4294967296",
      "9223372036854775807",
      "9223372036854775808",
      "99999999999999999999999",
      "-9223372036854775808",
      "1.0e+300",
      "0x7FF0000000000000",
      "?",
      "*",
      "x",
      "f32",
      "bf16",
      "i32",
      "i64",
      "f64",
      "index",
      "tensor<f32>",
      "tensor<0x4xf32>",
      "tensor<?x4xf32>",
      "tensor<*xf32>",
      "tensor<9223372036854775807x2xf32>",
      "none",
      "unit",
      "true",
      "dense<0>",
      "[]",
      "{}",
      "\"\"",
      "@nowhere",
      "%0",
      "%undefined",
      "()",
      "memref<4xf32>",
      "vector<4xf32>",
      "#gtp.mesh<dp = 2, gtp = 3>",
  };
  std::vector<Token> tokens = tokenize(text);
  if (tokens.empty())
    return;
  Token at = random.pick(tokens);
  const bool isNumber =
      std::isdigit(static_cast<unsigned char>(text[at.begin]));
  std::string with;
  switch (random.below(4)) {
  case 0:
    with = random.pick(kTokens);
    break;
  case 1:
    if (isNumber) {
      static const char *const kNumbers[] = {
          "0", "1", "3", "256", "2147483648", "9223372036854775807"};
      with = random.pick(kNumbers);
      break;
    }
    [[fallthrough]];
  default: {
    // Another token of the text that starts the same: a value for a value, a
    // number for a number, an operation for an operation.
    std::vector<Token> alike;
    for (const Token &token : tokens)
      if (text[token.begin] == text[at.begin] ||
          (isNumber &&
           std::isdigit(static_cast<unsigned char>(text[token.begin]))))
        alike.push_back(token);
    Token from = random.pick(alike);
    with = text.substr(from.begin, from.end - from.begin);
  }
  }
  text.replace(at.begin, at.end - at.begin, with);
}

static void dropToken(std::string &text, Random &random) {
  std::vector<Token> tokens = tokenize(text);
  if (tokens.empty())
    return;
  Token at = random.pick(tokens);
  text.erase(at.begin, at.end - at.begin);
}

static void copyToken(std::string &text, Random &random) {
  std::vector<Token> tokens = tokenize(text);
  if (tokens.empty())
    return;
  Token from = random.pick(tokens), to = random.pick(tokens);
  std::string copy = text.substr(from.begin, from.end - from.begin) + " ";
  text.insert(to.begin, copy);
}

/// Takes out an attribute: from a comma or a brace to the next.
static void dropAttribute(std::string &text, Random &random) {
  std::vector<size_t> equals;
  for (size_t i = 0; i + 2 < text.size(); ++i)
    if (text.compare(i, 3, " = ") == 0 || text.compare(i, 3, " : ") == 0)
      equals.push_back(i);
  if (equals.empty())
    return;
  size_t at = random.pick(equals);
  size_t begin = text.find_last_of(",{(<\n", at);
  size_t end = text.find_first_of(",})>\n", at);
  if (begin == std::string::npos || end == std::string::npos)
    return;
  // The separator goes too, except an opening one.
  begin += text[begin] != ',';
  text.erase(begin, end - begin);
}

void gtp::fuzz::mutateMlir(std::string &text, Random &random) {
  using Mutation = void (*)(std::string &, Random &);
  static const Mutation kMutations[] = {
      replaceToken, replaceToken, replaceToken,  replaceToken,  replaceToken,
      dropToken,    copyToken,    dropAttribute, dropAttribute, shuffleLines,
      shuffleLines, flipBits,     insertBytes,   truncate};
  for (size_t n = 1 + random.below(4) / 2; n--;)
    random.pick(kMutations)(text, random);
}
