//===- RunToolTest.cpp ----------------------------------------------------===//
//
// The command line from end to end, in process, on a backend that computes
// nothing; `--unchecked` lets it take plans without a training step in them.
//
//===----------------------------------------------------------------------===//

#include "gtp-rt/RunTool.h"
#include "TemporaryFolder.h"
#include "TestPlan.h"
#include "gtp-rt/RunPlan.h"
#include "gtp-rt/Safetensors.h"
#include "gtp-rt/TuningCache.h"
#include "gtp/Plan/PlanFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sys/stat.h>

using namespace gtp;
using namespace gtp::rt;
using namespace gtp::test;

namespace {

class RunToolTest : public testing::Test {
protected:
  RunToolTest() : test({{"gtp", 2}}) {
    test.parameter({{"w", 5}}, {2}, 4);
    plan = folder.path("p.gtpplan");
    save();
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += char('a' + i % 26);
    data = folder.write("text", text);
  }

  void save() {
    Status saved = plan::savePlan(test.plan, plan);
    ASSERT_TRUE(saved.isOk()) << saved.message();
  }

  /// Runs `gtp-run PLAN --unchecked arguments...`; fills `out` and `err`.
  int run(std::vector<std::string> arguments) {
    if (built)
      arguments.insert(arguments.begin(), {"out/llama", "--unchecked"});
    else
      arguments.insert(arguments.begin(), {"gtp-run", plan, "--unchecked"});
    std::vector<const char *> argv;
    for (const std::string &argument : arguments)
      argv.push_back(argument.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = runTool(
        int(argv.size()), argv.data(),
        [this](const plan::pb::Plan &proto, const BackendOptions &) {
          auto backend = std::make_unique<MemoryBackend>(proto);
          uint32_t loss = RunPlan::create(proto)->loss, norm = loss + 1;
          MemoryBackend *raw = backend.get();
          raw->onStep = [this, raw, loss, norm] {
            (void)raw->writeBuffer(0, loss, 0, &lossValue, 4);
            (void)raw->writeBuffer(0, norm, 0, &lossValue, 4);
          };
          return StatusOr<std::unique_ptr<Backend>>(std::move(backend));
        },
        gpus, built);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return code;
  }

  /// The error of a command line that must fail.
  std::string error(const std::vector<std::string> &arguments) {
    EXPECT_EQ(run(arguments), 1);
    std::string prefix = "[unchecked] gtp-run: error: ";
    EXPECT_EQ(err.rfind(prefix, 0), 0u) << err;
    EXPECT_EQ(err.back(), '\n');
    return err.substr(prefix.size(), err.size() - prefix.size() - 1);
  }

  TemporaryFolder folder;
  TestPlan test;
  std::string plan, data, out, err;
  float lossValue = 2.5f;
  const GpuSupport *gpus = nullptr;
  const BuiltPlan *built = nullptr;
};

} // namespace

TEST_F(RunToolTest, ARunPrintsMeasuresAndDumps) {
  ASSERT_EQ(run({"--data=" + data, "--steps=3", "--metrics=" + folder.path("m"),
                 "--dump-weights=" + folder.path("w"),
                 "--dump-grads=" + folder.path("g")}),
            0)
      << err;
  EXPECT_EQ(err, "");
  for (const char *text : {"gtp=2", "memory", "loss", "2.5"})
    EXPECT_NE(out.find(text), std::string::npos) << out;
  // Every line says that the plan was not checked.
  for (size_t at = 0; at < out.size(); at = out.find('\n', at) + 1)
    EXPECT_EQ(out.compare(at, 12, "[unchecked] "), 0) << out.substr(at);
  std::string metrics = TemporaryFolder::read(folder.path("m"));
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
  EXPECT_TRUE(SafetensorsReader::open(folder.path("w")).isOk());
  EXPECT_TRUE(SafetensorsReader::open(folder.path("g")).isOk());
}

TEST_F(RunToolTest, NoStepsDumpTheInitialWeights) {
  ASSERT_EQ(run({"--steps=0", "--dump-weights=" + folder.path("a")}), 0) << err;
  ASSERT_EQ(run({"--steps=0", "--weights=" + folder.path("a"),
                 "--dump-weights=" + folder.path("b")}),
            0)
      << err;
  EXPECT_EQ(TemporaryFolder::read(folder.path("a")),
            TemporaryFolder::read(folder.path("b")));
}

TEST_F(RunToolTest, ALossThatIsNotFiniteLeavesNoDump) {
  lossValue = NAN;
  size_t before = folder.count();
  EXPECT_EQ(error({"--data=" + data, "--dump-weights=" + folder.path("w"),
                   "--dump-grads=" + folder.path("g")})
                .substr(0, 88),
            "step 1: the loss is not a number; 1 of 1 gradients are not "
            "finite, first that of 'w'; a ");
  EXPECT_EQ(folder.count(), before);
}

TEST_F(RunToolTest, EveryWrongFileIsOneMessageAndNothingIsWritten) {
  std::string wide =
      folder.write("wide", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  std::string small = folder.write("small", "abcd");
  size_t before = folder.count();
  std::string dump = "--dump-weights=" + folder.path("w");
  std::string metrics = "--metrics=" + folder.path("m");
  EXPECT_EQ(error({dump, metrics, "--data=" + folder.path("absent")}),
            folder.path("absent") + ": cannot open: No such file or directory");
  EXPECT_EQ(
      error({dump, metrics, "--data=" + small}),
      small +
          ": has 4 tokens; a sequence of 4 and its last label need at least 5");
  EXPECT_EQ(error({dump, metrics, "--data=" + wide, "--token-bits=16"}),
            wide + ": token 0 (byte offset 0) is 65535, outside the "
                   "vocabulary: expected "
                   "0 to 256");
  EXPECT_EQ(error({dump, metrics, "--data=" + data, "--labels=" + small}),
            small + ": has 4 bytes; one int32 for each of the 100 tokens of " +
                data + " makes 400");
  EXPECT_EQ(error({dump, metrics, "--data=" + data, "--weights=" + small}),
            small + ": has 4 bytes; a safetensors file has at least 8");
  EXPECT_EQ(error({dump, metrics, "--data=" + data, "--dump-grads=/nowhere/g"}),
            "/nowhere/g: cannot write: folder '/nowhere/': No such file or "
            "directory");
  EXPECT_EQ(error({dump, "--data=" + data, "--metrics=" + folder.path("")}),
            folder.path("") + ": is a folder; name a file");
  // A pipe is not waited for.
  std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error({dump, metrics, "--data=" + pipe}),
            pipe + ": is not a regular file; a file that can be mapped is "
                   "needed");
  // Nor does an output go where an input is mapped, by any name.
  std::string link = folder.path("link");
  std::filesystem::create_symlink(data, link);
  EXPECT_EQ(run({"--data=" + data, "--metrics=" + link}), 1);
  EXPECT_EQ(err, "gtp-run: error: --metrics=" + link +
                     ": is also --data; an output needs a file of its own\n");
  EXPECT_EQ(folder.count(), before + 2);
}

TEST_F(RunToolTest, AnOutputIsNoFileOfTheCheckpoint) {
  std::string checkpoint = folder.path("checkpoint");
  std::filesystem::create_directory(checkpoint);
  std::string shard = checkpoint + "/model-1.safetensors";
  std::string index = checkpoint + "/model.safetensors.index.json";
  ASSERT_EQ(run({"--steps=0", "--dump-weights=" + shard}), 0) << err;
  folder.write("checkpoint/model.safetensors.index.json",
               R"({"weight_map": {"w": "model-1.safetensors"}})");
  std::string bytes = TemporaryFolder::read(shard);
  for (const std::string &file : {shard, index})
    for (const char *option : {"--metrics=", "--dump-grads=", "--dump-weights=",
                               "--profile=", "--trace="})
      EXPECT_EQ(error({"--data=" + data, "--steps=4", "--weights=" + checkpoint,
                       option + file}),
                option + file + ": is also " + file +
                    " of --weights; an output needs a file of its own");
  EXPECT_EQ(TemporaryFolder::read(shard), bytes);
}

TEST_F(RunToolTest, ALinkStaysOne) {
  std::string file = folder.write("file", "old"), link = folder.path("link");
  std::filesystem::create_symlink(file, link);
  ASSERT_EQ(run({"--steps=0", "--dump-weights=" + link}), 0) << err;
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_NE(TemporaryFolder::read(file), "old");
  // So does one to a file that is not there yet, and is then its other name.
  std::string next = folder.path("next"), before = folder.path("before");
  std::filesystem::create_symlink("next", before);
  auto expectOne = [&](const std::string &profile, const std::string &trace) {
    EXPECT_EQ(run({"--data=" + data, "--steps=4", "--profile=" + profile,
                   "--trace=" + trace}),
              1);
    EXPECT_EQ(err, "gtp-run: error: --trace=" + trace +
                       ": is also --profile; an output needs a file of its "
                       "own\n");
  };
  expectOne(before, next);
  expectOne(next, before);
  ASSERT_EQ(run({"--steps=0", "--dump-weights=" + before}), 0) << err;
  EXPECT_TRUE(std::filesystem::is_symlink(before));
  EXPECT_FALSE(std::filesystem::is_symlink(next));
  EXPECT_NE(TemporaryFolder::read(next), "");
  // One that leads to itself is nobody's.
  std::string round = folder.path("round");
  std::filesystem::create_symlink("round", round);
  expectOne(round, round);
  EXPECT_EQ(error({"--steps=0", "--dump-weights=" + round}),
            round + ": cannot write: Too many levels of symbolic links");
  EXPECT_TRUE(std::filesystem::is_symlink(round));
}

TEST_F(RunToolTest, PlansOfRanksAreCheckedNotRun) {
  std::string same = folder.path("same"), other = folder.path("other");
  ASSERT_TRUE(plan::savePlan(test.plan, same).isOk());
  test.plan.mutable_claims()->set_step_ns(1);
  ASSERT_TRUE(plan::savePlan(test.plan, other).isOk());
  EXPECT_EQ(run({"--data=" + data, "--rank-plan=1:" + same}), 0) << err;
  EXPECT_EQ(error({"--data=" + data, "--rank-plan=1:" + other}),
            "--rank-plan=1:" + other +
                ": the host backend runs one plan on all ranks; "
                "--verify-only checks different ones together");
  EXPECT_EQ(error({"--data=" + data, "--rank-plan=2:" + same}),
            "--rank-plan=2:" + same + ": the mesh of " + plan +
                " has ranks 0 to 1");
}

TEST_F(RunToolTest, AWrongPlanIsNamed) {
  test.plan.mutable_model()->set_global_batch(7);
  save();
  EXPECT_EQ(
      error({"--data=" + data}),
      plan + ": global batch 7 is not 3 microbatches of 2 sequences on 2 data "
             "ranks");
  folder.write("p.gtpplan", "not a plan");
  EXPECT_EQ(error({"--data=" + data}).rfind(plan + ": ", 0), 0u);
}

TEST_F(RunToolTest, CudaIsRefusedWhereThereIsNone) {
  EXPECT_EQ(error({"--data=" + data, "--backend=cuda"}),
            plan + ": --backend=cuda: this gtp-run was built without CUDA; "
                   "build it with -DGTP_ENABLE_CUDA=ON, or run the plan on "
                   "CPU threads with --backend=host");
  GpuSupport none;
  none.count = [] { return 0; };
  gpus = &none;
  EXPECT_EQ(error({"--data=" + data, "--backend=cuda"}),
            plan + ": --backend=cuda: this process sees no GPU; "
                   "--backend=host runs the plan on CPU threads");
  // Without being asked for, it is not missed.
  EXPECT_EQ(run({"--data=" + data}), 0) << err;
  EXPECT_NE(out.find("threads of the host backend"), std::string::npos) << out;
  EXPECT_EQ(
      error({"--data=" + data, "--steps=2", "--without-collectives=1"}),
      plan + ": --without-collectives=1: times kernels on GPUs, and this run "
             "has none");
  // What is of GPUs only is not ignored.
  for (const char *cache : {"--tuning-cache=t", "--tuning-cache=off"})
    EXPECT_EQ(error({"--data=" + data, cache}),
              plan + ": " + cache +
                  ": is of matrix products on GPUs, and this run has none; "
                  "leave it out");
}

TEST_F(RunToolTest, ATuningCacheIsReadBeforeAnythingStarts) {
  std::string bad = folder.write("bad", "{");
  GpuSupport two;
  two.count = [] { return 2; };
  gpus = &two;
  EXPECT_EQ(error({"--data=" + data, "--tuning-cache=" + bad}),
            bad + ": not valid JSON at byte 2; remove the file, or run with "
                  "--tuning-cache=off");
}

TEST_F(RunToolTest, WhatABackendMeasuresIsSaid) {
  test = TestPlan({});
  test.parameter({{"w", 5}}, {1}, 4);
  save();
  GpuSupport one;
  one.count = [] { return 1; };
  one.describe = [](int) { return StatusOr<std::string>("a GPU"); };
  bool hadCache = false;
  one.create = [&](const plan::pb::Plan &proto, const BackendOptions &options,
                   const CudaPlace &) {
    hadCache = options.tuningCache != nullptr;
    if (hadCache)
      options.tuningCache->add({"library", "gpu"}, "product", {});
    return StatusOr<std::unique_ptr<Backend>>(
        std::make_unique<MemoryBackend>(proto));
  };
  gpus = &one;
  std::string file = folder.path("tuning");
  ASSERT_EQ(run({"--steps=0", "--tuning-cache=" + file}), 0) << err;
  EXPECT_TRUE(hadCache);
  EXPECT_NE(out.find("tuning    " + file +
                     ": 1 matrix products, 1 of them measured now"),
            std::string::npos)
      << out;
  ASSERT_EQ(run({"--steps=0", "--tuning-cache=off"}), 0) << err;
  EXPECT_FALSE(hadCache);
  EXPECT_NE(out.find("tuning    off"), std::string::npos) << out;
}

TEST_F(RunToolTest, AProgramBringsItsPlan) {
  plan::sealPlan(test.plan);
  BuiltPlan own{&test.plan, ""};
  built = &own;
  EXPECT_EQ(run({"--data=" + data}), 0) << err;
  EXPECT_NE(out.find("plan      llama: "), std::string::npos) << out;
  std::string copy = folder.path("copy.gtpplan");
  EXPECT_EQ(run({"--emit-plan=" + copy}), 0) << err;
  auto loaded = plan::loadPlan(copy);
  ASSERT_TRUE(loaded.isOk()) << loaded.message();
  EXPECT_EQ(plan::serializePlan(*loaded), plan::serializePlan(test.plan));
  // A program that builds another plan than it was written for.
  own.hash = std::string(32, '0');
  std::string refused = error({"--data=" + data});
  EXPECT_EQ(refused.rfind("llama: builds a plan with hash ", 0), 0u) << refused;
  EXPECT_NE(refused.find(", and gtp-opt wrote it for " + own.hash +
                         "; build it with the runtime of that gtp-opt, or, if "
                         "the program was changed, leave the hash at its end "
                         "empty"),
            std::string::npos)
      << refused;
}

TEST_F(RunToolTest, HelpComesWithoutAPlan) {
  testing::internal::CaptureStdout();
  const char *argv[] = {"gtp-run", "--help"};
  EXPECT_EQ(runTool(2, argv, nullptr), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("--verify-only"),
            std::string::npos);
}

TEST(RunTool, TooLittleMemoryIsAnError) {
  TemporaryFolder folder;
  TestPlan test({});
  std::string plan = folder.path("p.gtpplan");
  ASSERT_TRUE(plan::savePlan(test.plan, plan).isOk());
  const char *argv[] = {"gtp-run", plan.c_str(), "--unchecked", "--steps=0"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(runTool(4, argv,
                    [](const plan::pb::Plan &, const BackendOptions &)
                        -> StatusOr<std::unique_ptr<Backend>> {
                      throw std::bad_alloc();
                    }),
            1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                plan + ": not enough memory for the run\n"),
            std::string::npos);
}
