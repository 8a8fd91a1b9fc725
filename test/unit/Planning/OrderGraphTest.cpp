//===- OrderGraphTest.cpp - Happens-before and the events it needs --------===//

#include "gtp/Planning/OrderGraph.h"

#include <gtest/gtest.h>

#include <random>

using namespace gtp::planning;

static OrderGraph randomOrder(std::mt19937 &random, unsigned numStreams,
                              unsigned numOps, unsigned edgesInTen) {
  OrderGraph order(numStreams);
  for (OpIndex op = 0; op < numOps; ++op) {
    std::vector<OpIndex> after;
    while (op && random() % 10 < edgesInTen)
      after.push_back(random() % op);
    order.addOp(random() % numStreams, after);
  }
  return order;
}

/// reach[a][b]: a happens before b, by search. `waits` replace the edges.
static std::vector<std::vector<bool>>
closure(const OrderGraph &order,
        const std::vector<std::vector<OpIndex>> *waits = nullptr) {
  std::vector<std::vector<bool>> reach(order.size(),
                                       std::vector<bool>(order.size()));
  for (OpIndex b = 0; b < order.size(); ++b) {
    auto from = [&](OpIndex a) {
      reach[a][b] = true;
      for (OpIndex c = 0; c < b; ++c)
        if (reach[c][a])
          reach[c][b] = true;
    };
    for (OpIndex a = 0; a < b; ++a)
      if (order.stream(a) == order.stream(b))
        from(a);
    for (OpIndex a : waits ? (*waits)[b] : order.after(b))
      from(a);
  }
  return reach;
}

TEST(OrderGraph, HappensBeforeIsReachability) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    OrderGraph order =
        randomOrder(random, 1 + random() % 4, 1 + random() % 30, random() % 6);
    auto reach = closure(order);
    for (OpIndex a = 0; a < order.size(); ++a)
      for (OpIndex b = 0; b < order.size(); ++b)
        ASSERT_EQ(order.happensBefore(a, b), reach[a][b]) << a << " " << b;
  }
}

TEST(EventProblem, WaitsAreTheTransitiveReduction) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    EventProblem problem(
        randomOrder(random, 1 + random() % 4, 1 + random() % 30, random() % 6));
    ASSERT_TRUE(problem.check().isOk());
    EventProblem::Solution solution = problem.solve();
    gtp::Status status = problem.verify(solution);
    ASSERT_TRUE(status.isOk()) << status.message();
    auto reach = closure(problem.order);
    ASSERT_EQ(closure(problem.order, &solution.waits), reach);

    // The reduction of a finite order is unique: an edge is in it exactly when
    // nothing lies between its ends.
    for (OpIndex b = 0; b < problem.order.size(); ++b) {
      std::vector<OpIndex> covers;
      for (OpIndex a = 0; a < b; ++a) {
        bool cover =
            reach[a][b] && problem.order.stream(a) != problem.order.stream(b);
        for (OpIndex c = a + 1; c < b; ++c)
          cover &= !(reach[a][c] && reach[c][b]);
        if (cover)
          covers.push_back(a);
      }
      ASSERT_EQ(solution.waits[b], covers);
    }
    EventProblem::Counts reduced = EventProblem::counts(solution);
    EventProblem::Counts naive = problem.naiveCounts();
    EXPECT_LE(reduced.waits, naive.waits);
    EXPECT_LE(reduced.events, naive.events);
    EXPECT_LE(reduced.events, reduced.waits);
  }
}

TEST(EventProblem, DroppingAnyWaitIsRejected) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    EventProblem problem(randomOrder(random, 3, 20, 4));
    EventProblem::Solution solution = problem.solve();
    for (auto &waits : solution.waits) {
      for (size_t i = 0; i < waits.size(); ++i) {
        OpIndex dropped = waits[i];
        waits.erase(waits.begin() + i);
        EXPECT_FALSE(problem.verify(solution).isOk());
        waits.insert(waits.begin() + i, dropped);
      }
    }
    EXPECT_TRUE(problem.verify(solution).isOk());
  }
}

static std::string verifyText(const std::string &text) {
  auto parsed = parseEventProblem(text);
  if (!parsed.isOk())
    return parsed.message();
  return parsed->problem.verify(parsed->solution).message();
}

static const std::string kDiamond = "order streams=3\n"
                                    "op 0 stream=0\n"
                                    "op 1 stream=1 after=0\n"
                                    "op 2 stream=2 after=0,1\n"
                                    "op 3 stream=0 after=1,2\n"
                                    "solution\n";

TEST(EventProblem, WrongSolutionsAreNamed) {
  EXPECT_EQ(verifyText(kDiamond + "waits 1 on=0\nwaits 2 on=1\nwaits 3 on=2\n"),
            "");
  EXPECT_EQ(verifyText(kDiamond + "waits 1 on=0\nwaits 2 on=1\n"),
            "operation 3 must come after operation 1, which its waits do not "
            "imply");
  EXPECT_EQ(
      verifyText(kDiamond + "waits 1 on=0\nwaits 2 on=0,1\nwaits 3 on=2\n"),
      "operation 2 need not wait for operation 0: its other waits imply it");
  EXPECT_EQ(verifyText(kDiamond + "waits 1 on=0\nwaits 2 on=1\nwaits 3 on=0\n"),
            "operation 3 waits for operation 0 of its own stream");
  EXPECT_EQ(verifyText(kDiamond + "waits 1 on=2\n"),
            "operation 1 waits for operation 2, which is not an earlier one");
  EXPECT_EQ(verifyText("order streams=2\nop 0 stream=0\nop 1 stream=1\n"
                       "solution\nwaits 1 on=0\n"),
            "operation 1 waits for operation 0, which no edge orders before "
            "it");
}

TEST(EventProblem, TextRoundTrips) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    EventProblem problem(randomOrder(random, 3, 15, 4));
    EventProblem::Solution solution = problem.solve();
    std::string text = problem.print(&solution);
    auto parsed = parseEventProblem(text);
    ASSERT_TRUE(parsed.isOk()) << parsed.message();
    EXPECT_TRUE(parsed->solved);
    EXPECT_EQ(parsed->problem.print(&parsed->solution), text);
  }
}

TEST(EventProblem, BadTextIsAnError) {
  auto error = [](const std::string &text) {
    return parseEventProblem(text).message();
  };
  EXPECT_EQ(error(""), "expected 'order streams=N' first");
  EXPECT_EQ(error("order streams=0\n"), "line 1: '0' is less than 1");
  EXPECT_EQ(error("order streams=1\nop 0 stream=1\n"), "line 2: stream 1 of 1");
  EXPECT_EQ(error("order streams=1\n\nop 1 stream=0\n"),
            "line 3: 'op' has number 1, expected 0");
  EXPECT_EQ(error("order streams=1\nop 0 stream=0 after=0\n"),
            "line 2: comes after operation 0, which is not an earlier one");
  EXPECT_EQ(error("order streams=1\nop 0 stream=0 color=1\n"),
            "line 2: 'op' does not take 'color='");
  EXPECT_EQ(error("order streams=1\nop 0 stream=x\n"),
            "line 2: 'x' is not an integer");
  EXPECT_EQ(error("order streams=1\nwaits 0 on=0\n"),
            "line 2: 'waits' is not expected here");
}
