//===- gtp-fuzz.cpp - Feeds damaged inputs to every reader ----------------===//
//
//   gtp-fuzz KIND [--count=N] [--seed=N] [--from=N | --case=N] [--keep=DIR]
//
// Ends with a line of numbers, and with exit code 1 after a failed case. A case
// that crashes or takes more than a minute ends the process; scripts/fuzz.sh
// goes on behind it.
//
//===----------------------------------------------------------------------===//

#include "Fuzzer.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>

#include <unistd.h>

using namespace gtp::fuzz;

static const Kind kKinds[] = {
#ifdef GTP_FUZZ_COMPILER
    {"config", "json", createConfigFuzzer},
    {"mlir", "mlir", createMlirFuzzer},
#endif
    {"plan", "gtpplan", createPlanFuzzer},
    {"data", "bin", createDataFuzzer},
    {"dataset", "idx", createDatasetFuzzer},
    {"weights", "safetensors", createWeightsFuzzer},
};

/// What one case may take, seconds.
constexpr unsigned kCaseSeconds = 60;

void Case::keep(std::string_view input) {
  std::ofstream file(keptPath, std::ios::binary);
  file.write(input.data(), static_cast<std::streamsize>(input.size()));
  file.close();
  if (!file) {
    std::cerr << "gtp-fuzz: error: cannot write " << keptPath << "\n";
    std::exit(1);
  }
}

namespace {
struct Settings {
  const Kind *kind = nullptr;
  uint64_t count = 1000;
  uint64_t seed = 1;
  uint64_t from = 0;
  std::string keep = ".";
};
} // namespace

static int usage(const std::string &message) {
  std::cerr << "gtp-fuzz: error: " << message
            << "; expected KIND [--count=N] [--seed=N] [--from=N | --case=N] "
               "[--keep=DIR], KIND one of";
  for (const Kind &kind : kKinds)
    std::cerr << " " << kind.name;
  std::cerr << "\n";
  return 1;
}

static std::optional<Settings> parse(int argc, char **argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    size_t equal = argument.find('=');
    std::string name = argument.substr(0, equal);
    std::string value =
        equal == std::string::npos ? "" : argument.substr(equal + 1);
    uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "--count") {
      settings.count = number;
    } else if (name == "--seed") {
      settings.seed = number;
    } else if (name == "--from") {
      settings.from = number;
    } else if (name == "--case") {
      settings.from = number;
      settings.count = number + 1;
    } else if (name == "--keep") {
      settings.keep = value;
    } else {
      for (const Kind &kind : kKinds)
        if (argument == kind.name)
          settings.kind = &kind;
      if (!settings.kind || argument != settings.kind->name)
        return std::nullopt;
    }
  }
  if (!settings.kind)
    return std::nullopt;
  return settings;
}

static void onAlarm(int) {
  static const char kText[] = "gtp-fuzz: the case takes too long\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  std::abort();
}

int main(int argc, char **argv) {
  std::optional<Settings> settings = parse(argc, argv);
  if (!settings)
    return usage("cannot read the command line");
  std::filesystem::create_directories(settings->keep);
  std::signal(SIGALRM, onAlarm);
  auto started = std::chrono::steady_clock::now();
  std::unique_ptr<Fuzzer> fuzzer = settings->kind->create();
  uint64_t accepted = 0, ran = 0, failed = 0, cases = 0;
  for (uint64_t i = settings->from; i < settings->count; ++i, ++cases) {
    std::string kept = settings->keep + "/" + settings->kind->name + "-seed" +
                       std::to_string(settings->seed) + "-case" +
                       std::to_string(i) + "." + settings->kind->extension;
    Case c(settings->seed, i, kept);
    alarm(kCaseSeconds);
    fuzzer->run(c);
    alarm(0);
    accepted += c.accepted;
    ran += c.ran;
    if (c.failure.empty()) {
      std::remove(kept.c_str());
      continue;
    }
    ++failed;
    std::cout << kept << ": " << c.failure << "\n  again: gtp-fuzz "
              << settings->kind->name << " --seed=" << settings->seed
              << " --case=" << i << std::endl;
  }
  std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - started;
  std::printf("%-8s cases %llu refused %llu accepted %llu ran %llu failed %llu "
              "seconds %.1f seed %llu\n",
              settings->kind->name, static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(cases - accepted),
              static_cast<unsigned long long>(accepted),
              static_cast<unsigned long long>(ran),
              static_cast<unsigned long long>(failed), took.count(),
              static_cast<unsigned long long>(settings->seed));
  // A kind whose cases all end the same way tests nothing.
  if (settings->from == 0 && cases >= 100 &&
      (accepted == 0 || accepted == cases)) {
    std::cout << settings->kind->name << ": "
              << (accepted ? "no case was refused" : "no case was accepted")
              << "\n";
    return 1;
  }
  return failed ? 1 : 0;
}
