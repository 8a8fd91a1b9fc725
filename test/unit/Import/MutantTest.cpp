//===- MutantTest.cpp - Damaged configs never do damage -------------------===//
//
// Each mutant either is refused with exactly one error or becomes a verified
// program. A crash or a hang fails the test as such; sanitizers see the rest.
//
//===----------------------------------------------------------------------===//

#include "gtp/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>

using namespace mlir;

namespace {
/// The same choices with every standard library: no distributions.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  size_t below(size_t bound) { return bound ? engine() % bound : 0; }

private:
  std::mt19937_64 engine;
};
} // namespace

/// The configs of a folder whose importing works, or fails.
static std::vector<std::string> readSeeds(bool working) {
  std::vector<std::string> paths, texts;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(GTP_CONFIGS, code), end;
       it != end && !code; it.increment(code))
    if (StringRef(it->path()).ends_with(".json"))
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  MLIRContext context;
  ScopedDiagnosticHandler silent(&context,
                                 [](Diagnostic &) { return success(); });
  for (const std::string &path : paths)
    if (auto file = llvm::MemoryBuffer::getFile(path)) {
      StringRef text = (*file)->getBuffer();
      bool works =
          bool(gtp::importConfig(text, path, gtp::ImportOptions(), &context));
      if (works == working)
        texts.push_back(text.str());
    }
  return texts;
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

static void truncate(std::string &text, Random &random) {
  text.resize(random.below(text.size()));
}

static void flipBits(std::string &text, Random &random) {
  for (size_t flips = 1 + random.below(8); flips-- && !text.empty();)
    text[random.below(text.size())] ^= 1 << random.below(8);
}

/// Brackets, up to far deeper than any stack.
static void nest(std::string &text, Random &random) {
  static const char *const kOpen[] = {"[", "{\"a\":", "[[{\"rope_scaling\":"};
  std::string deep;
  const char *open = kOpen[random.below(3)];
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
                                        "[]",
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
  size_t begin = colons[random.below(colons.size())];
  size_t end = text.find_first_of(",\n", begin);
  text.replace(begin, std::min(end, text.size()) - begin,
               kValues[random.below(std::size(kValues))]);
}

/// Removes, doubles or moves a line: a key is absent, twice there, or astray.
static void shuffleLines(std::string &text, Random &random) {
  std::vector<std::string> lines;
  for (StringRef line : llvm::split(text, '\n'))
    lines.push_back(line.str());
  size_t from = random.below(lines.size()), to = random.below(lines.size());
  switch (random.below(3)) {
  case 0:
    lines.erase(lines.begin() + from);
    break;
  case 1:
    lines.insert(lines.begin() + to, lines[from]);
    break;
  default:
    std::swap(lines[from], lines[to]);
  }
  text = llvm::join(lines, "\n");
}

static void insertBytes(std::string &text, Random &random) {
  std::string bytes;
  for (size_t n = 1 + random.below(16); n--;)
    bytes += static_cast<char>(random.below(256));
  text.insert(random.below(text.size() + 1), bytes);
}

static std::string mutate(std::string text, Random &random) {
  using Mutation = void (*)(std::string &, Random &);
  static const Mutation kMutations[] = {
      truncate,     flipBits,     nest,       replaceValue,
      replaceValue, shuffleLines, insertBytes};
  // Mostly one: more hide behind the first.
  for (size_t n = 1 + random.below(4) / 3 + random.below(4) / 3; n--;)
    kMutations[random.below(std::size(kMutations))](text, random);
  return text;
}

//===----------------------------------------------------------------------===//
// The test
//===----------------------------------------------------------------------===//

TEST(Mutants, AreRefusedWithOneErrorOrBecomePrograms) {
  const std::vector<std::string> working = readSeeds(true);
  const std::vector<std::string> refusedSeeds = readSeeds(false);
  ASSERT_GE(working.size(), 10u);
  ASSERT_GE(refusedSeeds.size(), 8u);
  constexpr unsigned kMutants = 1500;
  constexpr double kSecondsEach = 30;
  unsigned imported = 0, refused = 0;
  for (unsigned i = 0; i < kMutants; ++i) {
    SCOPED_TRACE("mutant " + std::to_string(i));
    Random random(i);
    const auto &seeds = i % 8 ? working : refusedSeeds;
    std::string text = mutate(seeds[random.below(seeds.size())], random);
    MLIRContext context(MLIRContext::Threading::DISABLED);
    unsigned errors = 0;
    ScopedDiagnosticHandler count(&context, [&](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return success();
    });
    auto begin = std::chrono::steady_clock::now();
    OwningOpRef<ModuleOp> module =
        gtp::importConfig(text, "mutant.json", gtp::ImportOptions(), &context);
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), kSecondsEach);
    if (module) {
      ++imported;
      EXPECT_EQ(errors, 0u);
      EXPECT_TRUE(succeeded(verify(*module)));
    } else {
      ++refused;
      EXPECT_EQ(errors, 1u);
    }
  }
  std::cout << imported << " imported, " << refused << " refused\n";
  EXPECT_GT(imported, 100u);
  EXPECT_GT(refused, 500u);
}
