//===- FuzzWeights.cpp - safetensors files, and folders of them -----------===//

#include "../unit/Runtime/DatasetFiles.h"
#include "../unit/Runtime/TemporaryFolder.h"
#include "../unit/Runtime/TestPlan.h"
#include "Fuzzer.h"
#include "Mutate.h"

#include "gtp-rt/Safetensors.h"
#include "gtp-rt/WeightSource.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::fuzz;
using namespace gtp::test;

namespace {

/// Headers damaged as JSON, files as bytes, and the index of a folder.
class WeightsFuzzer : public Fuzzer {
public:
  WeightsFuzzer();
  void run(Case &c) override;

private:
  void open(Case &c, const std::string &path);

  TemporaryFolder folder;
  TestPlan plan;
};

} // namespace

// The lengths of shapes agree with bytes of zeros; "b" stands under an alias.
static const char kHeader[] =
    "{\"__metadata__\": {\"format\": \"pt\", \"c\": \"b\"},\n"
    "\"a\": {\"dtype\": \"F32\", \"shape\": [5, 2],\n\"data_offsets\": [0, "
    "40]},\n"
    "\"b\": {\"dtype\": \"BF16\",\n\"shape\": [3],\n\"data_offsets\": [40, "
    "46]}}";
static const char kIndex[] =
    "{\"metadata\": {\"total_size\": 46},\n\"weight_map\": {\n"
    "\"a\": \"1.safetensors\",\n\"b\": \"1.safetensors\"}}";

static std::string fileOf(const std::string &header, const std::string &data) {
  return littleEndian(header.size(), 8) + header + data;
}

WeightsFuzzer::WeightsFuzzer() : plan({{"gtp", 2}}) {
  plan.parameter({{"a", 5}}, {2}, 2);
  plan.parameter({{"b", 3}}, {}, 1);
}

void WeightsFuzzer::open(Case &c, const std::string &path) {
  auto reader = rt::SafetensorsReader::open(path);
  if (!reader.isOk()) {
    if (reader.message().empty())
      c.fail("refused without a sentence");
    return;
  }
  c.accepted = true;
  for (const std::string &name : reader->names()) {
    const rt::TensorInfo *info = reader->find(name);
    std::vector<float> values(info->elements);
    reader->read(name, 0, info->elements, values.data());
  }
  auto run = rt::RunPlan::create(plan.plan);
  auto source = run.isOk() ? rt::WeightSource::checkpoint(*run, path)
                           : StatusOr<rt::WeightSource>(run.status());
  if (!source.isOk())
    return;
  c.ran = true;
  for (const plan::pb::Parameter &parameter : plan.plan.parameters()) {
    std::vector<float> values(10);
    source->read(parameter, 0, values.data());
  }
}

void WeightsFuzzer::run(Case &c) {
  std::string header = kHeader, data(46, '\0');
  if (c.random.below(4) == 0) {
    std::string index = kIndex;
    mutateJson(index, c.random);
    c.keep(index);
    folder.write("1.safetensors", fileOf(header, data));
    folder.write("model.safetensors.index.json", index);
    return open(c, folder.path(""));
  }
  std::string bytes;
  if (c.random.below(3)) {
    mutateJson(header, c.random);
    bytes = fileOf(header, data);
  } else {
    bytes = fileOf(header, data);
    mutateBytes(bytes, c.random);
  }
  c.keep(bytes);
  // From memory of exactly this size, so that a sanitizer sees what is beyond.
  auto copy = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  auto parsed = rt::parseSafetensors({copy.get(), bytes.size()});
  open(c, folder.write("one.safetensors", bytes));
  if (c.accepted != parsed.isOk())
    c.fail("the header alone and the file differ in being accepted: " +
           parsed.message());
}

std::unique_ptr<Fuzzer> gtp::fuzz::createWeightsFuzzer() {
  return std::make_unique<WeightsFuzzer>();
}
