//===- MutantTest.cpp -----------------------------------------------------===//
//
// Damaged and hostile plans: an error or a legal plan, never a crash or a hang.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

/// The same everywhere: no distribution of the standard library is used.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  uint64_t below(uint64_t bound) { return engine() % bound; }

private:
  std::mt19937_64 engine;
};

uint64_t extreme(Random &random) {
  const uint64_t values[] = {0,
                             1,
                             2,
                             7,
                             255,
                             UINT32_MAX,
                             uint64_t(UINT32_MAX) + 1,
                             uint64_t(1) << 44,
                             uint64_t(1) << 61,
                             uint64_t(INT64_MAX),
                             uint64_t(1) << 63,
                             UINT64_MAX};
  return values[random.below(sizeof(values) / sizeof(values[0]))];
}

void setScalar(Message &message, const FieldDescriptor &field, Random &random) {
  const Reflection &r = *message.GetReflection();
  int size = field.is_repeated() ? r.FieldSize(message, &field) : 0;
  if (field.is_repeated() && size == 0)
    return;
  int index =
      size ? static_cast<int>(random.below(static_cast<uint64_t>(size))) : 0;
  uint64_t value = extreme(random);
  bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
  case FieldDescriptor::CPPTYPE_UINT32:
    repeated ? r.SetRepeatedUInt32(&message, &field, index,
                                   static_cast<uint32_t>(value))
             : r.SetUInt32(&message, &field, static_cast<uint32_t>(value));
    break;
  case FieldDescriptor::CPPTYPE_INT32:
    r.SetInt32(&message, &field, static_cast<int32_t>(value));
    break;
  case FieldDescriptor::CPPTYPE_UINT64:
    repeated ? r.SetRepeatedUInt64(&message, &field, index, value)
             : r.SetUInt64(&message, &field, value);
    break;
  case FieldDescriptor::CPPTYPE_INT64:
    r.SetInt64(&message, &field, static_cast<int64_t>(value));
    break;
  case FieldDescriptor::CPPTYPE_DOUBLE: {
    double real = value == 0 ? -1e308 : value == 1 ? NAN : 1e308;
    repeated ? r.SetRepeatedDouble(&message, &field, index, real)
             : r.SetDouble(&message, &field, real);
    break;
  }
  case FieldDescriptor::CPPTYPE_BOOL:
    r.SetBool(&message, &field, !r.GetBool(message, &field));
    break;
  case FieldDescriptor::CPPTYPE_ENUM:
    r.SetEnumValue(&message, &field, static_cast<int>(random.below(9)) - 1);
    break;
  case FieldDescriptor::CPPTYPE_STRING:
    repeated ? r.SetRepeatedString(&message, &field, index, "")
             : r.SetString(&message, &field, "");
    break;
  default:
    break;
  }
}

/// Changes one thing somewhere below `message`: a number, the order of a list,
/// an element more or less.
void mutate(Message &message, Random &random) {
  const Reflection &r = *message.GetReflection();
  std::vector<const FieldDescriptor *> fields;
  r.ListFields(message, &fields);
  if (fields.empty()) {
    const google::protobuf::Descriptor &type = *message.GetDescriptor();
    const FieldDescriptor &field = *type.field(static_cast<int>(
        random.below(static_cast<uint64_t>(type.field_count()))));
    if (!field.is_repeated() &&
        field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      setScalar(message, field, random);
    return;
  }
  const FieldDescriptor &field = *fields[random.below(fields.size())];
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return setScalar(message, field, random);
  if (!field.is_repeated())
    return mutate(*r.MutableMessage(&message, &field), random);
  int size = r.FieldSize(message, &field);
  int index = static_cast<int>(random.below(static_cast<uint64_t>(size)));
  switch (random.below(10)) {
  case 0:
    r.SwapElements(&message, &field, index, size - 1);
    r.RemoveLast(&message, &field);
    break;
  case 1:
    r.SwapElements(&message, &field, index,
                   static_cast<int>(random.below(static_cast<uint64_t>(size))));
    break;
  case 2: {
    Message *added = r.AddMessage(&message, &field);
    added->CopyFrom(r.GetRepeatedMessage(message, &field, index));
    break;
  }
  default:
    mutate(*r.MutableRepeatedMessage(&message, &field, index), random);
    break;
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> bytes;
  for (uint64_t microbatches : {1, 3})
    for (bool tied : {false, true}) {
      StepOptions options;
      options.dp = 2;
      options.gtp = 3;
      options.microbatches = microbatches;
      options.tied = tied;
      pb::Plan plan = buildStep(options);
      sealPlan(plan);
      bytes.push_back(serializePlan(plan));
    }
  return bytes;
}

/// Everything that reads plans of others reads this one.
bool survives(const std::string &bytes) {
  StatusOr<pb::Plan> plan = parsePlan(bytes);
  if (!plan.isOk()) {
    EXPECT_FALSE(plan.message().empty());
    return false;
  }
  EXPECT_FALSE(planToText(*plan).empty());
  CheckReport report;
  Status status = checkPlan(*plan, &report);
  EXPECT_EQ(status.isOk(), report.findings.empty());
  EXPECT_LE(report.findings.size(), kMaxFindings);
  return status.isOk();
}

} // namespace

TEST(Mutants, DamagedBytesAreRefused) {
  std::vector<std::string> all = seeds();
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const std::string &original = all[random.below(all.size())];
    std::string bytes = original;
    if (i % 4 == 0) {
      bytes.resize(random.below(bytes.size()));
    } else {
      uint64_t flips = 1 + random.below(8);
      for (uint64_t k = 0; k < flips; ++k) {
        char &byte = bytes[random.below(bytes.size())];
        byte = static_cast<char>(byte ^ (1 << random.below(8)));
      }
    }
    // A few spellings, such as 3 for true, mean the plan that was written.
    if (survives(bytes))
      EXPECT_EQ(serializePlan(*parsePlan(bytes)), original);
  }
}

TEST(Mutants, ForgedPlansDoNotCrash) {
  std::vector<std::string> all = seeds();
  Random random(2);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    pb::Plan plan;
    std::string bytes = all[random.below(all.size())];
    if (i % 5 == 0) {
      char &byte = bytes[random.below(bytes.size())];
      byte = static_cast<char>(byte ^ (1 << random.below(8)));
      if (!plan.ParseFromString(bytes))
        continue;
    } else {
      ASSERT_TRUE(plan.ParseFromString(bytes));
      uint64_t changes = 1 + random.below(3);
      for (uint64_t k = 0; k < changes; ++k)
        mutate(plan, random);
    }
    sealPlan(plan);
    refused += !survives(serializePlan(plan));
  }
  // Some change only what means nothing, such as a name.
  EXPECT_GT(refused, 250);
}

TEST(Mutants, DeepNestingIsRefused) {
  // A group inside a group inside a group, unknown to the schema.
  std::string bytes(100000, '\x7b');
  EXPECT_FALSE(survives(bytes));
}

TEST(Mutants, ManyOverlappingAccessesEndInTime) {
  // Operations that each write a byte, and others that each read them all.
  pb::Plan plan = buildStep();
  pb::Region *once = plan.mutable_programs(0)->mutable_regions(0);
  constexpr uint64_t bytes = 1 << 12;
  uint32_t buffer = static_cast<uint32_t>(plan.buffers_size());
  for (uint64_t i = 0; i < 2; ++i) {
    pb::Buffer *added = plan.add_buffers();
    added->set_size(bytes);
    added->set_offset(plan.memory(0).size());
    plan.mutable_memory(0)->set_size(plan.memory(0).size() + bytes);
  }
  plan.mutable_claims()->set_arena_bytes(plan.memory(0).size());
  plan.mutable_claims()->set_max_live_bytes(plan.memory(0).size());
  auto operand = [](uint32_t index, uint64_t offset, uint64_t size) {
    pb::Operand result;
    result.set_buffer(index);
    result.set_offset(offset);
    result.set_dtype(pb::U8);
    result.add_dims(size);
    return result;
  };
  for (uint64_t i = 0; i < bytes; ++i) {
    pb::Fill *fill = once->add_operations()->mutable_fill();
    *fill->mutable_destination() = operand(buffer, i, 1);
    fill->set_byte_value(static_cast<uint32_t>(1 + i % 2));
  }
  for (uint64_t i = 0; i < 10000; ++i) {
    pb::Copy *copy = once->add_operations()->mutable_copy();
    *copy->mutable_source() = operand(buffer, 0, bytes);
    *copy->mutable_destination() = operand(buffer + 1, 0, bytes);
  }
  CheckReport report;
  EXPECT_FALSE(checkPlan(plan, &report).isOk());
  EXPECT_NE(report.findings.front().message.find("too complex"),
            std::string::npos);
}
