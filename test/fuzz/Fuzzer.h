//===- Fuzzer.h - What a kind of fuzzing says of its cases ----------------===//
//
// A kind damages inputs of one reader of the project and hands them to it, in
// this process. A case is a function of the seed and its number alone. While a
// case runs, its damaged input lies in a file, which stays when the process
// dies in it or the case fails: that file, the seed and the number are all it
// takes to see the fault again.
//
//===----------------------------------------------------------------------===//

#ifndef GTP_TEST_FUZZ_FUZZER_H
#define GTP_TEST_FUZZ_FUZZER_H

#include "Random.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gtp::fuzz {

/// One damaged input, and what became of it.
class Case {
public:
  Case(uint64_t seed, uint64_t number, std::string keptPath)
      : number(number), random(seed * 0x9e3779b97f4a7c15u + number),
        keptPath(std::move(keptPath)) {}

  /// Writes what the reader is about to see to the kept file. A later call of
  /// the same case replaces it.
  void keep(std::string_view input);
  /// The reader did what it must not; the first reason is shown.
  void fail(const std::string &why) {
    if (failure.empty())
      failure = why;
  }

  const uint64_t number;
  Random random;
  bool accepted = false; ///< else it was refused with a sentence
  bool ran = false;      ///< and it was executed
  std::string failure;   ///< empty: none

private:
  std::string keptPath;
};

/// A kind of fuzzing, with its undamaged inputs loaded.
class Fuzzer {
public:
  virtual ~Fuzzer() = default;
  virtual void run(Case &c) = 0;
};

/// A kind as the command line names it.
struct Kind {
  const char *name;
  const char *extension; ///< of kept files
  std::unique_ptr<Fuzzer> (*create)();
};

std::unique_ptr<Fuzzer> createConfigFuzzer();
std::unique_ptr<Fuzzer> createPlanFuzzer();
std::unique_ptr<Fuzzer> createDataFuzzer();
std::unique_ptr<Fuzzer> createDatasetFuzzer();
std::unique_ptr<Fuzzer> createWeightsFuzzer();
std::unique_ptr<Fuzzer> createMlirFuzzer();

/// Bytes of small sealed plans that the compiler makes, as seeds of the plan
/// kind; none in a build without the compiler.
std::vector<std::string> compiledPlans();

} // namespace gtp::fuzz

#endif // GTP_TEST_FUZZ_FUZZER_H
