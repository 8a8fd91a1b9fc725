//===- CppProgramTest.cpp -------------------------------------------------===//
//
// Which layers become a class, what its fields are, and what text they give.
//
//===----------------------------------------------------------------------===//

#include "CppProgram.h"
#include "CppText.h"

#include <gtest/gtest.h>

#include <ctime>

using namespace gtp;
namespace pb = gtp::plan::pb;

namespace {

/// A plan whose body has layers of three copies.
class CppProgramTest : public testing::Test {
protected:
  uint32_t text(const std::string &name) {
    for (int i = 0; i < plan.strings_size(); ++i)
      if (plan.strings(i) == name)
        return uint32_t(i);
    plan.add_strings(name);
    return uint32_t(plan.strings_size() - 1);
  }
  uint32_t buffer(const std::string &name, uint64_t offset) {
    pb::Buffer *out = plan.add_buffers();
    out->set_name(text(name));
    out->set_size(64);
    out->set_offset(offset);
    return uint32_t(plan.buffers_size() - 1);
  }
  pb::Operation &copy(uint32_t from, uint32_t to, const std::string &source,
                      uint64_t elements = 16) {
    pb::Operation *out = region->add_operations();
    out->set_source(text(source));
    for (auto [buffer, operand] :
         {std::pair(from, out->mutable_copy()->mutable_source()),
          std::pair(to, out->mutable_copy()->mutable_destination())}) {
      operand->set_buffer(buffer);
      operand->set_dtype(pb::F32);
      operand->add_dims(elements);
    }
    return *out;
  }
  CppProgramTest() {
    text("");
    plan.add_streams();
    region = plan.add_programs()->add_regions();
    region->set_kind(pb::Region::BODY);
    region->set_repeat(1);
  }
  /// "layers.N.in" to "layers.N.mid" to "layers.N+1.in".
  void addLayers(int layers) {
    uint32_t x = buffer("tokens", 0);
    for (int n = 0; n < layers; ++n) {
      std::string name = "layers." + std::to_string(n);
      uint32_t mid = buffer(name + ".mid", uint64_t(n) * 512 + 256);
      uint32_t out = buffer(name + ".out", uint64_t(n) * 512 + 512);
      copy(x, mid, name + ".first");
      copy(mid, out, name + ".second", 8);
      copy(out, mid, name + ".third", 4);
      x = out;
    }
  }
  CppProgram program() {
    auto items = itemsOf(plan, {plan.buffers_size()});
    EXPECT_TRUE(items.isOk()) << items.message();
    return cppProgramOf(plan, *items);
  }
  static const CppClass *find(const CppProgram &program,
                              const std::string &name) {
    for (const CppClass &layer : program.classes)
      if (layer.name == name)
        return &layer;
    return nullptr;
  }
  static std::string fields(const CppClass &layer) {
    std::string result;
    for (const CppField &field : layer.fields)
      result += field.type + " " + field.name + ";";
    return result;
  }
  static std::string row(const CppProgram &program, const std::string &type,
                         size_t index) {
    std::string result;
    for (const CppTable &table : program.tables)
      if (table.type == type && index < table.rows.size())
        for (const std::string &cell : table.rows[index])
          result += cell + ";";
    return result;
  }

  pb::Plan plan;
  pb::Region *region = nullptr;
};

} // namespace

TEST_F(CppProgramTest, LayersShareAFunctionWithTheirBuffersAsFields) {
  addLayers(3);
  CppProgram found = program();
  const CppClass *layer = find(found, "Layer1");
  ASSERT_NE(layer, nullptr);
  // The first layer reads another buffer; the name is what the others read.
  EXPECT_EQ(fields(*layer),
            "Buffer out;Buffer mid;const char* layer;Buffer out_2;");
  EXPECT_EQ(row(found, "Layer1", 0), "0;1;\"0\";2;");
  EXPECT_EQ(row(found, "Layer1", 2), "4;5;\"2\";6;");
  ASSERT_EQ(layer->calls.size(), 3u);
  EXPECT_EQ(layer->calls[0].callee, "plan.copy");
  EXPECT_EQ(layer->calls[0].arguments,
            (std::vector<std::string>{
                "f32(out, {16})", "f32(mid, {16})",
                "on(compute_stream).at(named(\"layers.*.first\", layer))"}));
}

TEST_F(CppProgramTest, WaitsAndEventsDifferFromLayerToLayer) {
  addLayers(4);
  region->set_events(3);
  auto *operations = region->mutable_operations();
  // The second operation of all layers but the last signals; the first of the
  // last waits for two, of others for one or none.
  for (int n = 0; n < 3; ++n)
    (*operations)[3 * n + 1].set_event_plus1(uint32_t(n) + 1);
  (*operations)[3].add_waits()->set_event(0);
  (*operations)[9].add_waits()->set_event(1);
  (*operations)[9].add_waits()->set_event(2);
  CppProgram found = program();
  const CppClass *layer = find(found, "Layer1");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->calls[0].arguments[2].rfind(
                "on(compute_stream).after(second_waits)", 0),
            0u)
      << layer->calls[0].arguments[2];
  EXPECT_EQ(layer->calls[1].arguments[2].rfind(
                "on(compute_stream).signals(second_done)", 0),
            0u)
      << layer->calls[1].arguments[2];
  EXPECT_NE(row(found, "Layer1", 1).find("{0};"), std::string::npos);
  EXPECT_NE(row(found, "Layer1", 3).find("{1, 2};"), std::string::npos);
  EXPECT_NE(row(found, "Layer1", 3).find("none;"), std::string::npos);
}

TEST_F(CppProgramTest, StructureMakesAClassAndNamesDoNot) {
  addLayers(3);
  // One layer of another shape.
  plan.mutable_programs(0)
      ->mutable_regions(0)
      ->mutable_operations(4)
      ->mutable_copy()
      ->mutable_source()
      ->set_pitch(32);
  EXPECT_EQ(find(program(), "Layer1"), nullptr);
}

TEST_F(CppProgramTest, NamesThatHaveNoPatternAreWholeFields) {
  addLayers(3);
  auto *operations = region->mutable_operations();
  (*operations)[3].set_source(text("elsewhere"));
  CppProgram found = program();
  const CppClass *layer = find(found, "Layer1");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->calls[0].arguments[2], "on(compute_stream).at(name)");
  EXPECT_NE(row(found, "Layer1", 1).find("\"elsewhere\";"), std::string::npos);
}

TEST_F(CppProgramTest, WaitsAcrossIterationsKeepTheirDistance) {
  uint32_t x = buffer("x", 0), y = buffer("y", 256);
  region->set_events(1);
  pb::Operation &operation = copy(x, y, "");
  operation.set_event_plus1(1);
  pb::Wait *wait = operation.add_waits();
  wait->set_event(0);
  wait->set_distance(2);
  CppProgram found = program();
  const CppFunction &body = found.functions.back();
  EXPECT_EQ(body.name, "train_step_body");
  EXPECT_EQ(body.calls.back().arguments.back(),
            "on(compute_stream).after(0, 2).signals(0)");
}

TEST_F(CppProgramTest, TimeGrowsAsABodyOfDifferentOperationsDoes) {
  uint32_t x = buffer("x", 0), y = buffer("y", 256);
  uint64_t elements = 0;
  auto secondsOf = [&](int operations) {
    while (region->operations_size() < operations)
      copy(x, y, "", ++elements);
    std::clock_t begin = std::clock();
    size_t calls = 0;
    for (const CppFunction &function : program().functions)
      calls += function.calls.size();
    EXPECT_GE(calls, size_t(operations));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  secondsOf(1000); // what only the first pays
  // Some 17 times as long; a quadratic search for repeats made it 97.
  double small = secondsOf(4000), large = secondsOf(64000);
  EXPECT_LT(large, 48 * small) << "grew from " << small << " s";
}

TEST(CppText, LiteralsReadAsTheSameValue) {
  EXPECT_EQ(quoted("a\"b\\c\n\xC3"), "\"a\\\"b\\\\c\\012\\303\"");
  EXPECT_EQ(realText(1), "1.0");
  EXPECT_EQ(realText(1e-5), "1e-05");
  EXPECT_EQ(realText(0.1), "0.1");
  EXPECT_EQ(realText(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(integerText(INT64_MIN), "INT64_MIN");
  EXPECT_EQ(identifier("model.layers.0.q|k"), "model_layers_0_q_k");
  EXPECT_EQ(identifier("0..new"), "n0_new");
  EXPECT_EQ(identifier("new"), "new_");
}
