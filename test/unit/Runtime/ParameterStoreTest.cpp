//===- ParameterStoreTest.cpp ---------------------------------------------===//

#include "gtp-rt/ParameterStore.h"
#include "TemporaryFolder.h"
#include "TestPlan.h"
#include "gtp-rt/Initializer.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

namespace {

/// A packed parameter, a norm and a tied embedding on a mesh.
struct Fixture {
  explicit Fixture(const Axes &axes, plan::pb::DType compute = plan::pb::F32)
      : test(axes, compute) {
    test.parameter({{"q", 4}, {"k", 2}, {"v", 1}}, {3}, 2);
    test.parameter({{"norm", 3}}, {}, 0).set_init(plan::pb::Parameter::ONES);
    plan::pb::Parameter &embedding = test.parameter({{"embed", 5}}, {2}, 4);
    embedding.add_tied_names(test.string("head"));
    plan = std::make_unique<RunPlan>(*RunPlan::create(test.plan));
    store = std::make_unique<ParameterStore>(*ParameterStore::create(*plan));
    backend = std::make_unique<MemoryBackend>(test.plan);
  }

  /// A dump's bytes.
  std::string
  dump(ParameterStore::Plane plane = ParameterStore::Plane::Weights) {
    SafetensorsWriter writer;
    std::string path = folder.path("dump");
    Status status = store->gather(*backend, plane, path, writer);
    EXPECT_TRUE(status.isOk()) << status.message();
    status = writer.commit();
    EXPECT_TRUE(status.isOk()) << status.message();
    return TemporaryFolder::read(path);
  }

  TestPlan test;
  TemporaryFolder folder;
  std::unique_ptr<RunPlan> plan;
  std::unique_ptr<ParameterStore> store;
  std::unique_ptr<MemoryBackend> backend;
};

} // namespace

TEST(ParameterStore, CheckpointLayoutsAreUndoneAndRedone) {
  plan::pb::Parameter parameter;
  parameter.add_shape(12);
  parameter.add_shape(2);
  plan::pb::CheckpointTensor *tensor = parameter.add_tensors();
  tensor->set_rows(12);
  std::vector<float> there(24);
  for (size_t i = 0; i < there.size(); ++i)
    there[i] = static_cast<float>(i);

  tensor->set_transposed(true);
  EXPECT_EQ(tensorShape(parameter, 0), (std::vector<uint64_t>{2, 12}));
  std::vector<float> here = there;
  changeLayout(parameter, 0, LayoutChange::ToParameter, here.data());
  for (size_t row = 0; row < 12; ++row)
    for (size_t column = 0; column < 2; ++column)
      EXPECT_EQ(here[row * 2 + column], there[column * 12 + row]);
  changeLayout(parameter, 0, LayoutChange::ToCheckpoint, here.data());
  EXPECT_EQ(here, there);

  // Two heads of q, k and v of two rows each.
  tensor->set_transposed(false);
  tensor->set_interleaved_groups(2);
  tensor->set_interleaved_parts(3);
  EXPECT_EQ(tensorShape(parameter, 0), (std::vector<uint64_t>{12, 2}));
  changeLayout(parameter, 0, LayoutChange::ToParameter, here.data());
  for (size_t part = 0; part < 3; ++part)
    for (size_t head = 0; head < 2; ++head)
      for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(here[(part * 2 + head) * 4 + i],
                  there[(head * 3 + part) * 4 + i]);
  changeLayout(parameter, 0, LayoutChange::ToCheckpoint, here.data());
  EXPECT_EQ(here, there);
}

TEST(ParameterStore, AnyMeshGetsAndGivesBackTheSameWeights) {
  std::string expected;
  for (const Axes &axes :
       {Axes{}, Axes{{"gtp", 2}}, Axes{{"dp", 2}, {"gtp", 3}},
        Axes{{"gtp", 5}, {"dp", 2}}}) {
    Fixture fixture(axes);
    Status status = fixture.store->initialize(
        *fixture.backend, WeightSource::initial(*fixture.plan, 7));
    ASSERT_TRUE(status.isOk()) << status.message();
    std::string dump = fixture.dump();
    if (expected.empty())
      expected = dump;
    EXPECT_EQ(dump, expected);
  }
}

TEST(ParameterStore, DumpsHoldLogicalTensorsUnderCheckpointNames) {
  Fixture fixture({{"gtp", 2}});
  ASSERT_TRUE(fixture.store
                  ->initialize(*fixture.backend,
                               WeightSource::initial(*fixture.plan, 7))
                  .isOk());
  fixture.dump();
  auto reader = SafetensorsReader::open(fixture.folder.path("dump"));
  ASSERT_TRUE(reader.isOk()) << reader.message();
  EXPECT_EQ(reader->names(),
            (std::vector<std::string>{"embed", "k", "norm", "q", "v"}));
  EXPECT_EQ(reader->find("k")->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(reader->find("norm")->shape, (std::vector<uint64_t>{3}));
  float found[6], expected[6];
  reader->read("k", 0, 6, found);
  initializeNormal(7, "k", 0.02, 0, 6, expected);
  EXPECT_EQ(std::vector<float>(found, found + 6),
            std::vector<float>(expected, expected + 6));
}

// As many elements as make work for several threads.
TEST(ParameterStore, LargeParametersAreTheSameInPieces) {
  TestPlan test({{"gtp", 2}});
  const plan::pb::Parameter parameter =
      test.parameter({{"q", 300}, {"k", 101}}, {1001}, 2);
  RunPlan plan = *RunPlan::create(test.plan);
  MemoryBackend backend(test.plan);
  ASSERT_TRUE(ParameterStore::create(plan)
                  ->initialize(backend, WeightSource::initial(plan, 7))
                  .isOk());
  std::vector<float> expected(401 * 1001);
  initializeNormal(7, "q", 0.02, 0, 300 * 1001, expected.data());
  initializeNormal(7, "k", 0.02, 0, 101 * 1001, expected.data() + 300 * 1001);
  std::vector<float> found;
  for (uint64_t rank : {0, 1}) {
    std::vector<float> shard = backend.floats(rank, parameter.compute_buffer());
    found.insert(found.end(), shard.begin(), shard.end());
  }
  found.resize(expected.size());
  EXPECT_EQ(found, expected);
}

TEST(ParameterStore, PadsAndStatesAreZero) {
  Fixture fixture({{"gtp", 2}});
  ASSERT_TRUE(fixture.store
                  ->initialize(*fixture.backend,
                               WeightSource::initial(*fixture.plan, 7))
                  .isOk());
  const plan::pb::Parameter &embedding = fixture.test.plan.parameters(2);
  // 5 rows at a granule of 4 are 4 and 1; the other 3 are pads.
  std::vector<float> last =
      fixture.backend->floats(1, embedding.compute_buffer());
  ASSERT_EQ(last.size(), 8u);
  EXPECT_NE(last[1], 0);
  EXPECT_EQ(std::vector<float>(last.begin() + 2, last.end()),
            std::vector<float>(6, 0));
  for (uint32_t state : embedding.state_buffers())
    EXPECT_EQ(fixture.backend->floats(1, state), std::vector<float>(8, 0));
}

TEST(ParameterStore, ComputePrecisionIsRoundedAndTheMasterDumped) {
  Fixture narrow({{"gtp", 2}}, plan::pb::BF16), wide({});
  for (Fixture *fixture : {&narrow, &wide})
    ASSERT_TRUE(fixture->store
                    ->initialize(*fixture->backend,
                                 WeightSource::initial(*fixture->plan, 7))
                    .isOk());
  EXPECT_EQ(narrow.dump(), wide.dump());
  const plan::pb::Parameter &norm = narrow.test.plan.parameters(1);
  EXPECT_EQ(narrow.backend->memory.at({0, norm.compute_buffer()}),
            (std::vector<uint8_t>{0x80, 0x3f, 0x80, 0x3f, 0x80, 0x3f}));
}

/// A master in two halves: the buffer of the whole one holds its remainder.
TEST(ParameterStore, HalvesOfAMasterAreDumpedAsOne) {
  Fixture whole({{"gtp", 2}}, plan::pb::BF16),
      split({{"gtp", 2}}, plan::pb::BF16);
  for (plan::pb::Parameter &parameter : *split.test.plan.mutable_parameters()) {
    parameter.set_remainder_buffer_plus1(parameter.master_buffer_plus1());
    parameter.clear_master_buffer_plus1();
  }
  for (Fixture *fixture : {&whole, &split})
    ASSERT_TRUE(fixture->store
                    ->initialize(*fixture->backend,
                                 WeightSource::initial(*fixture->plan, 7))
                    .isOk());
  EXPECT_EQ(split.dump(), whole.dump());
  for (int i = 0; i < split.test.plan.parameters_size(); ++i) {
    uint32_t buffer = split.test.plan.parameters(i).compute_buffer();
    for (uint64_t rank : {0, 1})
      EXPECT_EQ(split.backend->memory.at({rank, buffer}),
                whole.backend->memory.at({rank, buffer}));
  }
}

TEST(ParameterStore, GradientsOfFrozenParametersAreNotDumped) {
  Fixture fixture({{"gtp", 2}});
  fixture.test.plan.mutable_parameters(0)->set_gradient_buffer_plus1(0);
  fixture.dump(ParameterStore::Plane::Gradients);
  auto reader = SafetensorsReader::open(fixture.folder.path("dump"));
  ASSERT_TRUE(reader.isOk()) << reader.message();
  EXPECT_EQ(reader->names(), (std::vector<std::string>{"embed", "norm"}));
}

TEST(ParameterStore, EveryWrongParameterIsOneMessage) {
  Fixture fixture({{"gtp", 2}});
  auto error = [&](const std::function<void(plan::pb::Plan &)> &change) {
    plan::pb::Plan plan = fixture.test.plan;
    change(plan);
    return ParameterStore::create(*RunPlan::create(plan)).message();
  };
  EXPECT_EQ(error([](plan::pb::Plan &) {}), "");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_parameters(0)->mutable_tensors(0)->set_rows(3);
            }),
            "parameter 'q': has checkpoint tensors of 6 rows, expected 7");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_parameters(0)->mutable_tensors(1)->set_name(1000);
            }),
            "parameter 'q': has checkpoint tensors that are not its rows");
  EXPECT_EQ(
      error([](plan::pb::Plan &plan) {
        plan.mutable_parameters(0)->mutable_tensors(1)->set_name(
            plan.parameters(0).tensors(0).name());
      }),
      "parameter 'q': has checkpoint tensor 'q', which is in the plan already");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_parameters(0)->set_layout(99);
            }),
            "parameter 'q': has no layout");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_parameters(0)->set_shape(1, 4);
            }),
            "parameter 'q': has a layout of another shape");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_parameters(0)->set_compute_buffer(999);
            }),
            "parameter 'q': has a buffer of 0 bytes, its shard needs 48");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_numerics()->set_master(plan::pb::I32);
            }),
            "parameter 'q': is held as i32, expected f32 or bf16");
  EXPECT_EQ(error([](plan::pb::Plan &plan) {
              plan.mutable_parameters(0)->set_remainder_buffer_plus1(1);
            }),
            "parameter 'q': has a remainder, which only a f32 master beside a "
            "bf16 weight has, without a buffer of its own");
}

namespace {

/// Checkpoints for the plan of `Fixture`.
class CheckpointTest : public testing::Test {
protected:
  using Tensors = std::vector<SafetensorsWriter::Declaration>;
  Fixture fixture{{{"gtp", 2}}};
  std::string path = fixture.folder.path("in.safetensors");

  /// The message for a checkpoint of these tensors; element i of each is
  /// `first` + i.
  std::string error(const Tensors &tensors, float second = 0) {
    auto writer = SafetensorsWriter::create(path, tensors);
    for (const auto &tensor : tensors) {
      uint64_t elements = 1;
      for (uint64_t size : tensor.shape)
        elements *= size;
      std::vector<float> values(elements, tensor.name == "head" ? second : 0);
      EXPECT_TRUE(writer->append(values.data(), elements).isOk());
    }
    EXPECT_TRUE(writer->commit().isOk());
    auto source = WeightSource::checkpoint(*fixture.plan, path);
    if (source.isOk())
      skipped = source->skipped();
    std::string message = source.message();
    return message.rfind(path + ": ", 0) == 0 ? message.substr(path.size() + 2)
                                              : message;
  }

  std::vector<std::string> skipped;
  Tensors all = {{"q", {4, 3}},
                 {"k", {2, 3}},
                 {"v", {1, 3}},
                 {"norm", {3}},
                 {"embed", {5, 2}}};
};

} // namespace

TEST_F(CheckpointTest, NamesAndShapesAreChecked) {
  EXPECT_EQ(error(all), "");
  Tensors missing(all.begin(), all.end() - 2);
  EXPECT_EQ(error(missing),
            "has no tensor 'norm' [3], which the plan's model needs");
  Tensors transposed = all;
  transposed[4].shape = {2, 5};
  EXPECT_EQ(error(transposed),
            "tensor 'embed' has shape [2, 5], expected [5, 2]");
  Tensors more = all;
  more.push_back({"bias", {3}});
  EXPECT_EQ(error(more), "tensor 'bias' is not one of the plan's model; is the "
                         "checkpoint of another model?");
}

TEST_F(CheckpointTest, RopeFrequenciesAreSkippedAndReported) {
  all.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}});
  EXPECT_EQ(error(all), "");
  EXPECT_EQ(skipped.size(), 1u);
}

TEST_F(CheckpointTest, ATiedWeightMayHaveAnyOfItsNames) {
  Tensors head = all;
  head[4].name = "head";
  EXPECT_EQ(error(head), "");
  head.push_back({"embed", {5, 2}});
  EXPECT_EQ(error(head), "");
  EXPECT_EQ(error(head, 1),
            "tensors 'embed' and 'head' differ, and the plan's model "
            "ties them to one weight");
}

TEST_F(CheckpointTest, ADumpIsACheckpoint) {
  ASSERT_TRUE(fixture.store
                  ->initialize(*fixture.backend,
                               WeightSource::initial(*fixture.plan, 7))
                  .isOk());
  std::string dump = fixture.dump();
  Fixture other({{"dp", 2}, {"gtp", 3}});
  auto source =
      WeightSource::checkpoint(*other.plan, fixture.folder.path("dump"));
  ASSERT_TRUE(source.isOk()) << source.message();
  ASSERT_TRUE(other.store->initialize(*other.backend, *source).isOk());
  EXPECT_EQ(other.dump(), dump);
}
