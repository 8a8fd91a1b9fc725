//===- OptionsTest.cpp ----------------------------------------------------===//

#include "gtp-rt/Options.h"

#include <gtest/gtest.h>

using namespace gtp;
using namespace gtp::rt;

static StatusOr<CommandLine> parse(std::vector<const char *> arguments) {
  arguments.insert(arguments.begin(), "gtp-run");
  return parseCommandLine(int(arguments.size()), arguments.data());
}

static std::string error(const std::vector<const char *> &arguments) {
  auto line = parse(arguments);
  return line.isOk() ? "" : line.message();
}

TEST(Options, DefaultsAreTheDocumentedOnes) {
  auto line = parse({"p", "--data=d"});
  ASSERT_TRUE(line.isOk()) << line.message();
  const RunOptions &options = line->options;
  EXPECT_EQ(options.plan, "p");
  ASSERT_EQ(options.data.size(), 1u);
  EXPECT_EQ(options.data[0].path, "d");
  EXPECT_EQ(options.data[0].weight, 1);
  EXPECT_EQ(options.tokenBits, 8u);
  EXPECT_EQ(options.steps, 1u);
  EXPECT_EQ(options.hyper.learningRate, 1e-3);
  EXPECT_EQ(options.hyper.weightDecay, 0);
  EXPECT_EQ(options.hyper.beta1, 0.9);
  EXPECT_EQ(options.hyper.beta2, 0.95);
  EXPECT_EQ(options.hyper.epsilon, 1e-8);
  EXPECT_EQ(options.schedule.decay, Schedule::Decay::None);
  EXPECT_EQ(options.schedule.warmup, 0u);
  EXPECT_EQ(options.maxNonFinite, 3u);
  EXPECT_EQ(options.seed, 0u);
  EXPECT_FALSE(options.hostJitter);
  EXPECT_FALSE(options.verifyOnly);
  EXPECT_FALSE(options.unchecked);
  EXPECT_FALSE(line->text);
}

TEST(Options, EveryOptionIsRead) {
  auto line = parse({"--data",
                     "d",
                     "p",
                     "--token-bits=16",
                     "--labels=l",
                     "--weights=w",
                     "--steps=7",
                     "--lr=0",
                     "--lr-schedule=cosine:5,0",
                     "--max-nonfinite=2",
                     "--weight-decay=0.1",
                     "--betas=0,0.5",
                     "--eps=1e-6",
                     "--seed=18446744073709551615",
                     "--backend=host",
                     "--host-jitter=3",
                     "--eager",
                     "--metrics=m",
                     "--tensorboard=t",
                     "--dump-grads=g",
                     "--dump-weights=x",
                     "--rank-plan=1:a:b",
                     "--rank-plan=0:c"});
  ASSERT_TRUE(line.isOk()) << line.message();
  const RunOptions &options = line->options;
  EXPECT_EQ(options.tokenBits, 16u);
  EXPECT_EQ(options.labels, std::vector<std::string>{"l"});
  EXPECT_EQ(options.weights, "w");
  EXPECT_EQ(options.steps, 7u);
  EXPECT_EQ(options.hyper.learningRate, 0);
  EXPECT_EQ(options.schedule.decay, Schedule::Decay::Cosine);
  EXPECT_EQ(options.schedule.warmup, 5u);
  EXPECT_EQ(options.maxNonFinite, 2u);
  EXPECT_EQ(options.hyper.weightDecay, 0.1);
  EXPECT_EQ(options.hyper.beta1, 0);
  EXPECT_EQ(options.hyper.beta2, 0.5);
  EXPECT_EQ(options.hyper.epsilon, 1e-6);
  EXPECT_EQ(options.seed, UINT64_MAX);
  EXPECT_EQ(options.hostJitter, 3u);
  EXPECT_EQ(options.metrics, "m");
  EXPECT_EQ(options.tensorboard, "t");
  EXPECT_EQ(options.dumpGrads, "g");
  EXPECT_EQ(options.dumpWeights, "x");
  ASSERT_EQ(options.rankPlans.size(), 2u);
  EXPECT_EQ(options.rankPlans[0], std::pair(uint64_t(1), std::string("a:b")));
}

TEST(Options, DataIsRepeatedWithWeights) {
  auto line = parse({"p", "--data=a:b:0.25", "--data", "c:2",
                     "--data=d:", "--labels=l", "--labels=m", "--labels=n"});
  ASSERT_TRUE(line.isOk()) << line.message();
  const std::vector<DataFile> &data = line->options.data;
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[0].path, "a:b");
  EXPECT_EQ(data[0].weight, 0.25);
  EXPECT_EQ(data[1].path, "c");
  EXPECT_EQ(data[1].weight, 2);
  EXPECT_EQ(data[2].path, "d:");
  EXPECT_EQ(data[2].weight, 1);
  EXPECT_EQ(line->options.labels, (std::vector<std::string>{"l", "m", "n"}));
  for (const char *value : {"--data=a:0", "--data=a:-1", "--data=a:inf",
                            "--data=a:nan", "--data=:2"})
    EXPECT_EQ(error({"p", value}),
              std::string(value) +
                  ": expected FILE or FILE:WEIGHT with a finite weight above "
                  "0");
  EXPECT_EQ(error({"p", "--data=a.idx", "--metrics=a.bin"}),
            "--metrics=a.bin: is also --data; an output needs a file of its "
            "own");
  EXPECT_EQ(error({"p", "--data=a:1e308", "--data=b:1e308"}),
            "--data: the sum of the weights is infinite");
  EXPECT_EQ(error({"p", "--data=a.idx", "--token-bits=16"}),
            "--token-bits=16: the index a.idx says how wide ids are; leave the "
            "option out");
  EXPECT_EQ(error({"p", "--data=a.idx", "--data=b", "--token-bits=16"}), "");
  EXPECT_EQ(
      error({"p", "--data=a", "--data=b", "--labels=l"}),
      "--labels: got 1 for 2 files of --data; give one for each, in the same "
      "order");
  EXPECT_EQ(error({"p", "--data=a", "--data=b:2", "--metrics=b"}),
            "--metrics=b: is also --data; an output needs a file of its own");
}

TEST(Options, HeldOutTextIsATextOfItsOwn) {
  auto line = parse({"p", "--data=d", "--eval-data=e.idx", "--eval-labels=l",
                     "--eval-every=3", "--eval-steps=2"});
  ASSERT_TRUE(line.isOk()) << line.message();
  EXPECT_EQ(line->options.evalData, "e.idx");
  EXPECT_EQ(line->options.evalLabels, "l");
  EXPECT_EQ(line->options.evalEvery, 3u);
  EXPECT_EQ(line->options.evalSteps, 2u);
  EXPECT_EQ(error({"p", "--steps=0", "--eval-data=e"}), "");
  EXPECT_EQ(error({"p", "--data=d.idx", "--eval-data=e", "--token-bits=16"}),
            "");
  for (const char *option :
       {"--eval-labels=l", "--eval-every=3", "--eval-steps=2"})
    EXPECT_EQ(error({"p", "--data=d", option}),
              std::string(option) +
                  ": needs --eval-data, the text to evaluate on");
  for (const char *option : {"--eval-every=0", "--eval-every=x",
                             "--eval-steps=0", "--eval-steps=-1"})
    EXPECT_EQ(error({"p", "--data=d", "--eval-data=e", option}),
              std::string(option) + ": expected an integer, 1 or more");
  EXPECT_EQ(error({"p", "--steps=0", "--eval-data=e", "--eval-every=2"}),
            "--eval-every=2: there are no steps with --steps=0, which "
            "evaluates once; leave the option out");
  EXPECT_EQ(error({"p", "--steps=0", "--eval-data=e.idx", "--token-bits=16"}),
            "--token-bits=16: the index e.idx says how wide ids are; leave the "
            "option out");
  EXPECT_EQ(error({"p", "--data=d", "--eval-data=e.idx", "--metrics=e.bin"}),
            "--metrics=e.bin: is also --eval-data; an output needs a file of "
            "its own");
  EXPECT_EQ(error({"p", "--data=d", "--eval-data=e", "--dump-weights=e"}),
            "--dump-weights=e: is also --eval-data; an output needs a file of "
            "its own");
}

TEST(Options, HelpAndVersionPrint) {
  auto help = parse({"--help"});
  ASSERT_TRUE(help.isOk()) << help.message();
  for (const char *option :
       {"--data", "--rank-plan", "--resume", "--host-jitter"})
    EXPECT_NE(help->text->find(option), std::string::npos) << option;
  auto version = parse({"--version"});
  ASSERT_TRUE(version.isOk()) << version.message();
  EXPECT_EQ(version->text->rfind("gtp-run ", 0), 0u);
}

TEST(Options, EveryWrongValueIsOneMessage) {
  struct Case {
    const char *argument, *message;
  } cases[] = {
      {"--lr=nan", "--lr=nan: expected a finite number, 0 or more"},
      {"--lr=inf", "--lr=inf: expected a finite number, 0 or more"},
      {"--lr=-1", "--lr=-1: expected a finite number, 0 or more"},
      {"--lr=1e-3x", "--lr=1e-3x: expected a finite number, 0 or more"},
      {"--lr=1e999", "--lr=1e999: expected a finite number, 0 or more"},
      {"--lr=1e39", "--lr=1e39: expected a finite number in float32"},
      {"--eps=1e39", "--eps=1e39: expected a finite number in float32"},
      {"--weight-decay=-0.5",
       "--weight-decay=-0.5: expected a finite number, 0 or more"},
      {"--betas=0.9",
       "--betas=0.9: expected two numbers with a comma, such as 0.9,0.95"},
      {"--betas=0.9,1", "--betas=1: expected a number from 0 to below 1"},
      {"--betas=0.9,0.99999999999",
       "--betas=0.99999999999: expected a number below 1 in float32"},
      {"--betas=nan,0", "--betas=nan: expected a number from 0 to below 1"},
      {"--eps=0", "--eps=0: expected a number above 0 in float32"},
      {"--eps=1e-60", "--eps=1e-60: expected a number above 0 in float32"},
      {"--lr-schedule=cosine:5",
       "--lr-schedule=cosine:5: expected const, const:WARMUP, "
       "cosine:WARMUP,MIN or linear:WARMUP,MIN, such as cosine:100,1e-5"},
      {"--lr-schedule=const:2",
       "--lr-schedule=const:2: a warm-up of 2 steps does not fit --steps=1"},
      {"--lr-schedule=linear:0,0.1",
       "--lr-schedule=linear:0,0.1: the decay would end above its start, "
       "--lr=1e-3"},
      {"--max-nonfinite=0",
       "--max-nonfinite=0: expected an integer, 1 or more"},
      {"--steps=-1", "--steps=-1: expected an integer, 0 or more"},
      {"--steps=1.5", "--steps=1.5: expected an integer, 0 or more"},
      {"--seed=18446744073709551616",
       "--seed=18446744073709551616: expected an integer, 0 or more"},
      {"--token-bits=8",
       "--token-bits=8: expected 16 or 32; without the option ids are "
       "raw bytes"},
      {"--host-jitter=x", "--host-jitter=x: expected an integer, 0 or more"},
      {"--backend=tpu", "--backend=tpu: expected auto, cuda or host"},
      {"--rank-plan=1",
       "--rank-plan=1: expected RANK:FILE, such as 1:other.gtpplan"},
      {"--rank-plan=x:f",
       "--rank-plan=x:f: expected RANK:FILE, such as 1:other.gtpplan"},
  };
  for (const Case &test : cases)
    EXPECT_EQ(error({"p", "--data=d", test.argument}), test.message);
  EXPECT_EQ(error({"p", "--data=d", "--rank-plan=1:a", "--rank-plan=1:b"}),
            "--rank-plan=1:b: rank 1 already has the plan a");
  EXPECT_EQ(
      error({"p", "--data=d", "--no-such-option"}),
      "unknown argument '--no-such-option'; gtp-run --help lists the options");
  EXPECT_EQ(error({"p", "--data=d", "another"}),
            "unknown argument 'another'; gtp-run --help lists the options");
  EXPECT_NE(error({"p", "--data=d", "--lr"}).find("--lr"), std::string::npos);
}

TEST(Options, WhatIsNotSupportedYetIsRefusedByName) {
  EXPECT_EQ(error({"p", "--data=d", "--resume=x"}),
            "--resume: not supported yet; --weights starts from given weights");
  for (const char *option : {"--save", "--save-every"})
    EXPECT_EQ(error({"p", "--data=d", option, "1"})
                  .rfind(std::string(option) + ": not supported yet; ", 0),
              0u);
}

TEST(Options, WhatCannotBeTogetherIsRefused) {
  EXPECT_EQ(error({"p", "--data=d", "--backend=host", "--tuning-cache=t"}),
            "--tuning-cache=t: is of matrix products on GPUs, and "
            "--backend=host has none; leave one of them out");
  EXPECT_EQ(error({"p", "--data=d", "--tuning-cache=d"}),
            "--tuning-cache=d: is also --data; an output needs a file of its "
            "own");
  EXPECT_EQ(error({"p", "--data=off", "--tuning-cache=off"}), "");
  EXPECT_EQ(error({"p", "--data=d", "--backend=cuda", "--host-jitter=1"}),
            "--host-jitter=1: delays the host's threads, and --backend=cuda "
            "has none; leave one of them out");
  EXPECT_EQ(error({}),
            "no plan given; usage: gtp-run PLAN [options], gtp-run --help "
            "lists them");
  EXPECT_EQ(error({"p"}),
            "--data is not given; training reads a file of tokens (--steps=0 "
            "only initializes, and evaluates with --eval-data; --verify-only "
            "only checks)");
  EXPECT_EQ(error({"p", "--steps=0"}), "");
  EXPECT_EQ(error({"p", "--verify-only"}), "");
  EXPECT_EQ(error({"p", "--verify-only", "--lr-schedule=const:9"}), "");
  EXPECT_EQ(
      error({"p", "--verify-only", "--unchecked"}),
      "--unchecked: skips the checker that --verify-only asks for; give one of "
      "them");
  EXPECT_EQ(error({"p", "--steps=0", "--labels=l"}),
            "--labels=l: needs --data, one label a token");
  EXPECT_EQ(
      error({"p", "--data=d", "--steps=0", "--dump-grads=g"}),
      "--dump-grads=g: there is no gradient with --steps=0; at least 1 step is "
      "needed");
  EXPECT_EQ(error({"p", "--steps=0", "--tensorboard=t"}),
            "--tensorboard=t: there is nothing to show with --steps=0; at "
            "least 1 step is needed");
  EXPECT_EQ(error({"p", "--data=d", "--metrics=d"}),
            "--metrics=d: is also --data; an output needs a file of its own");
  EXPECT_EQ(error({"p", "--data=d", "--dump-grads=g", "--dump-weights=g"}),
            "--dump-weights=g: is also --dump-grads; an output needs a file of "
            "its own");
  // However the path is written.
  EXPECT_EQ(error({"p", "--data=d", "--metrics=./d"}),
            "--metrics=./d: is also --data; an output needs a file of its own");
  EXPECT_EQ(error({"p", "--data=d", "--rank-plan=1:q", "--metrics=x/../q"}),
            "--metrics=x/../q: is also --rank-plan; an output needs a file of "
            "its own");
}

TEST(Options, StepsWithoutCollectivesHaveNoResults) {
  auto line = parse({"p", "--data=d", "--steps=9", "--without-collectives=8"});
  ASSERT_TRUE(line.isOk()) << line.message();
  EXPECT_EQ(line->options.withoutCollectivesAfter, 8u);
  for (const char *value : {"0", "9", "x"})
    EXPECT_EQ(error({"p", "--data=d", "--steps=9",
                     (std::string("--without-collectives=") + value).c_str()}),
              std::string("--without-collectives=") + value +
                  ": expected the number of a step before the last of "
                  "--steps=9: those after it have no collectives");
  for (const char *output : {"--dump-grads=o", "--dump-weights=o",
                             "--eval-data=o", "--tensorboard=o"})
    EXPECT_EQ(error({"p", "--data=d", "--steps=9", "--without-collectives=8",
                     output}),
              std::string("--without-collectives=8: steps without collectives "
                          "train nothing, so that there is no result for ") +
                  output + "; leave one of them out");
  EXPECT_EQ(error({"p", "--data=d", "--steps=9", "--without-collectives=8",
                   "--backend=host"}),
            "--without-collectives=8: times kernels on GPUs; the host backend "
            "runs whole steps only");
}

TEST(Options, TimingNeedsSteps) {
  auto line = parse(
      {"p", "--data=d", "--steps=4", "--profile=a.json", "--trace=b.json"});
  ASSERT_TRUE(line.isOk()) << line.message();
  EXPECT_EQ(line->options.profile, "a.json");
  EXPECT_EQ(line->options.trace, "b.json");
  EXPECT_EQ(
      error({"p", "--data=d", "--steps=3", "--profile=a"}),
      "--profile=a: times steps from the third on, and needs --steps=4 or "
      "more; got 3");
  EXPECT_EQ(error({"p", "--data=d", "--steps=2", "--trace=a"}),
            "--trace=a: times steps from the third on, and needs --steps=3 or "
            "more; got 2");
  EXPECT_EQ(
      error({"p", "--data=d", "--steps=4", "--trace=a", "--dump-grads=g"}),
      "--trace=a: --dump-grads stops its step on the way; leave one of them "
      "out");
  EXPECT_EQ(error({"p", "--data=d", "--steps=9", "--profile=a",
                   "--without-collectives=4"}),
            "--profile=a: times steps from the third on, and needs "
            "--without-collectives=5 or more; got 4");
  EXPECT_EQ(error({"p", "--data=d", "--steps=4", "--trace=a", "--profile=a"}),
            "--trace=a: is also --profile; an output needs a file of its own");
}
