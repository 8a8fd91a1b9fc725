//===- FuzzData.cpp - Tokens, labels and dataset indexes ------------------===//

#include "../unit/Runtime/DatasetFiles.h"
#include "../unit/Runtime/TemporaryFolder.h"
#include "Fuzzer.h"
#include "Mutate.h"

#include "gtp-rt/DatasetIndex.h"
#include "gtp-rt/TrainingData.h"

#include <algorithm>
#include <array>

using namespace gtp;
using namespace gtp::fuzz;
using namespace gtp::test;

/// Reads samples from everywhere; each id is below the vocabulary.
static void readSamples(Case &c, const rt::TrainingDataOptions &options) {
  auto data = rt::TrainingData::open(options);
  if (!data.isOk()) {
    if (data.message().empty())
      c.fail("refused without a sentence");
    return;
  }
  c.accepted = true;
  std::vector<int32_t> tokens(options.sequence), labels(options.sequence);
  auto isId = [&](int32_t id) {
    return id >= 0 && static_cast<uint64_t>(id) < options.vocabulary;
  };
  for (uint64_t step = 1; step <= 8; ++step) {
    data->readSample(c.random.bits(), c.random.bits(), step, tokens.data(),
                     labels.data());
    for (size_t i = 0; i < tokens.size(); ++i)
      if (!isId(tokens[i]) ||
          (!isId(labels[i]) && labels[i] != rt::kIgnoredLabel))
        return c.fail("a sample holds id " + std::to_string(tokens[i]) +
                      " or label " + std::to_string(labels[i]) +
                      ", which the vocabulary does not");
  }
}

namespace {

class DataFuzzer : public Fuzzer {
public:
  void run(Case &c) override;

private:
  TemporaryFolder folder;
};

class DatasetFuzzer : public Fuzzer {
public:
  void run(Case &c) override;

private:
  TemporaryFolder folder;
};

} // namespace

void DataFuzzer::run(Case &c) {
  static const unsigned kBits[] = {8, 16, 32};
  rt::TrainingDataOptions options;
  options.tokenBits = c.random.pick(kBits);
  options.vocabulary = c.random.below(4) ? 257 : 1 + c.random.below(70000);
  options.sequence = 1 + c.random.below(c.random.below(8) ? 5 : 100);
  const bool withLabels = c.random.below(2);
  std::string ids, labels;
  for (size_t i = 8 + c.random.below(40); i > 0; --i) {
    ids += littleEndian(c.random.below(256), options.tokenBits / 8);
    labels += littleEndian(
        c.random.below(3) ? c.random.below(256) : uint64_t(-100), 4);
  }
  // Whole files are most of what a run reads; the other one is damaged then.
  if (!withLabels || c.random.below(2))
    mutateBytes(ids, c.random);
  else
    mutateBytes(labels, c.random);
  c.keep(ids + labels);
  options.data = {{folder.write("ids.bin", ids), 1}};
  if (withLabels)
    options.labels = {folder.write("labels.bin", labels)};
  readSamples(c, options);
}

void DatasetFuzzer::run(Case &c) {
  IndexFile file;
  static const unsigned kTypes[] = {1, 2, 3, 4, 5, 8};
  static const unsigned kBytes[] = {1, 1, 2, 4, 8, 2};
  size_t type = c.random.below(std::size(kTypes));
  file.type = kTypes[type];
  unsigned bytes = kBytes[type];
  for (int64_t &offset : file.offsets)
    offset = offset / 2 * bytes;
  std::string index = file.bytes(), ids(7 * bytes, '\0');
  for (size_t i = 0; i < ids.size(); i += bytes)
    ids[i] = static_cast<char>(c.random.below(100));
  if (c.random.below(5))
    mutateBytes(index, c.random);
  else
    mutateBytes(ids, c.random);
  c.keep(index);
  // From memory of exactly this size, so that a sanitizer sees what is beyond.
  auto copy = std::make_unique<uint8_t[]>(index.size());
  std::copy(index.begin(), index.end(), copy.get());
  auto parsed = rt::DatasetIndex::parse(copy.get(), index.size());
  if (!parsed.isOk() && parsed.message().empty())
    c.fail("refused without a sentence");
  rt::TrainingDataOptions options;
  options.data = {{folder.write("d.idx", index), 1}};
  folder.write("d.bin", ids);
  options.vocabulary = 1000;
  options.sequence = 2;
  readSamples(c, options);
  if (c.accepted && !parsed.isOk())
    c.fail("a dataset was read whose index is refused: " + parsed.message());
}

std::unique_ptr<Fuzzer> gtp::fuzz::createDataFuzzer() {
  return std::make_unique<DataFuzzer>();
}

std::unique_ptr<Fuzzer> gtp::fuzz::createDatasetFuzzer() {
  return std::make_unique<DatasetFuzzer>();
}
