//===- WeightSource.cpp - Where a run's first weights come from -----------===//

#include "gtp-rt/WeightSource.h"
#include "gtp-rt/Initializer.h"

#include <algorithm>
#include <cstring>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::rt;

std::vector<uint64_t> gtp::rt::tensorShape(const pb::Parameter &parameter,
                                           int tensor) {
  std::vector<uint64_t> shape(parameter.shape().begin(),
                              parameter.shape().end());
  if (!shape.empty())
    shape[0] = parameter.tensors(tensor).rows();
  if (parameter.tensors(tensor).transposed())
    std::reverse(shape.begin(), shape.end());
  return shape;
}

static uint64_t elementsOf(const std::vector<uint64_t> &shape) {
  uint64_t elements = 1;
  for (uint64_t size : shape)
    elements *= size;
  return elements;
}

void gtp::rt::changeLayout(const pb::Parameter &parameter, int tensor,
                           LayoutChange change, float *elements) {
  // Both layouts are [major, minor, run] with major and minor exchanged.
  const pb::CheckpointTensor &layout = parameter.tensors(tensor);
  uint64_t total = elementsOf(tensorShape(parameter, tensor));
  uint64_t major = layout.interleaved_groups();
  uint64_t minor = layout.interleaved_parts();
  if (layout.transposed()) {
    minor = layout.rows();
    major = minor ? total / minor : 0;
  }
  if (major == 0 || minor == 0 || total == 0)
    return;
  uint64_t run = total / major / minor;
  if (change == LayoutChange::ToCheckpoint)
    std::swap(major, minor);
  std::vector<float> before(elements, elements + total);
  for (uint64_t i = 0; i < major; ++i)
    for (uint64_t j = 0; j < minor; ++j)
      std::copy_n(before.data() + (i * minor + j) * run, run,
                  elements + (j * major + i) * run);
}

WeightSource WeightSource::initial(const RunPlan &plan, uint64_t seed) {
  WeightSource source(plan);
  source.seed = seed;
  return source;
}

/// Old exports hold rope's frequencies and attention's masks, which the
/// configuration determines.
static bool isDerived(const std::string &name) {
  static constexpr std::string_view kSuffixes[] = {
      ".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
      ".attention.bias", ".attention.masked_bias"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [&](std::string_view suffix) {
                       return name.size() > suffix.size() &&
                              name.compare(name.size() - suffix.size(),
                                           suffix.size(), suffix) == 0;
                     });
}

/// Whether two tensors of a checkpoint hold the same values.
static bool sameValues(const SafetensorsReader &reader, const std::string &a,
                       const std::string &b) {
  constexpr uint64_t kPiece = 1 << 16;
  uint64_t elements = reader.find(a)->elements;
  if (reader.find(b)->elements != elements)
    return false;
  std::vector<float> left(kPiece), right(kPiece);
  for (uint64_t begin = 0; begin < elements; begin += kPiece) {
    uint64_t count = std::min(kPiece, elements - begin);
    reader.read(a, begin, count, left.data());
    reader.read(b, begin, count, right.data());
    if (std::memcmp(left.data(), right.data(), count * sizeof(float)) != 0)
      return false;
  }
  return true;
}

/// Finds the tensors of `parameter` in the checkpoint. `knownNames` gets each
/// name that the checkpoint may hold, with the plan's name for it.
Status WeightSource::resolve(const pb::Parameter &parameter,
                             std::map<std::string, std::string> &knownNames) {
  for (int i = 0; i < parameter.tensors_size(); ++i) {
    const std::string &name = plan.text(parameter.tensors(i).name());
    std::vector<std::string> names = {name};
    if (parameter.tensors_size() == 1)
      for (uint32_t tied : parameter.tied_names())
        names.push_back(plan.text(tied));
    std::string at;
    for (const std::string &candidate : names) {
      knownNames[candidate] = name;
      if (!reader->find(candidate))
        continue;
      if (at.empty())
        at = candidate;
      else if (!sameValues(*reader, at, candidate))
        return Status::error(
            "tensors '" + at + "' and '" + candidate +
            "' differ, and the plan's model ties them to one weight");
    }
    if (at.empty())
      return Status::error("has no tensor '" + name + "' " +
                           shapeText(tensorShape(parameter, i)) +
                           ", which the plan's model needs");
    const TensorInfo &info = *reader->find(at);
    if (info.shape != tensorShape(parameter, i))
      return Status::error("tensor '" + at + "' has shape " +
                           shapeText(info.shape) + ", expected " +
                           shapeText(tensorShape(parameter, i)))
          .in(reader->fileOf(at));
    stored[name] = at;
  }
  return Status::ok();
}

StatusOr<WeightSource> WeightSource::checkpoint(const RunPlan &plan,
                                                const std::string &path) {
  WeightSource source(plan);
  auto reader = SafetensorsReader::open(path);
  if (!reader.isOk())
    return std::move(reader).status();
  source.reader = std::move(*reader);
  std::map<std::string, std::string> knownNames;
  for (const pb::Parameter &parameter : plan.proto().parameters()) {
    Status status = source.resolve(parameter, knownNames);
    bool namesFile = status.message().rfind(path, 0) == 0;
    if (!status.isOk())
      return namesFile ? std::move(status) : std::move(status).in(path);
  }
  for (const std::string &name : source.reader->names()) {
    if (knownNames.count(name))
      continue;
    if (!isDerived(name))
      return Status::error(
                 "tensor '" + name +
                 "' is not one of the plan's model; is the checkpoint of "
                 "another model?")
          .in(source.reader->fileOf(name));
    source.skippedNames.push_back(name);
  }
  return source;
}

/// Elements [begin, begin + count) of an initial tensor.
static void readInitial(const RunPlan &plan, uint64_t seed,
                        const pb::Parameter &parameter, int tensor,
                        uint64_t begin, uint64_t count, float *destination) {
  if (parameter.init() == pb::Parameter::NORMAL)
    initializeNormal(seed, plan.text(parameter.tensors(tensor).name()),
                     plan.model().initializer_range(), begin, count,
                     destination);
  else
    std::fill_n(destination, count,
                parameter.init() == pb::Parameter::ONES ? 1.0f : 0.0f);
}

bool WeightSource::readsParts(const pb::Parameter &parameter) const {
  return !reader &&
         std::none_of(parameter.tensors().begin(), parameter.tensors().end(),
                      [](const pb::CheckpointTensor &tensor) {
                        return tensor.transposed() ||
                               tensor.interleaved_groups() != 0;
                      });
}

void WeightSource::readPart(const pb::Parameter &parameter, uint64_t begin,
                            uint64_t count, float *destination) const {
  for (int i = 0; i < parameter.tensors_size() && count > 0; ++i) {
    const uint64_t elements = elementsOf(tensorShape(parameter, i));
    if (begin >= elements) {
      begin -= elements;
      continue;
    }
    const uint64_t here = std::min(count, elements - begin);
    readInitial(plan, seed, parameter, i, begin, here, destination);
    destination += here;
    count -= here;
    begin = 0;
  }
}

void WeightSource::read(const pb::Parameter &parameter, int tensor,
                        float *destination) const {
  uint64_t elements = elementsOf(tensorShape(parameter, tensor));
  if (reader)
    reader->read(stored.at(plan.text(parameter.tensors(tensor).name())), 0,
                 elements, destination);
  else
    readInitial(plan, seed, parameter, tensor, 0, elements, destination);
  changeLayout(parameter, tensor, LayoutChange::ToParameter, destination);
}
