//===- ReuseNetworkTest.cpp - The most live bytes, against all prefixes ---===//
//
// Planner and checker both take the peak from this network, so what it finds is
// compared here with every state that an execution can be in.
//
//===----------------------------------------------------------------------===//

#include "gtp/Support/ReuseNetwork.h"

#include <gtest/gtest.h>

#include <random>

using namespace gtp;

namespace {

struct Random {
  ReuseNetwork network;
  std::vector<uint32_t> before; ///< of each node, a mask of the ones before it
  std::vector<int64_t> change;  ///< bytes acquired less bytes released
  int64_t acquired = 0;

  Random(std::mt19937 &random, uint32_t nodes, uint32_t arcsInTen) {
    before.resize(nodes);
    change.resize(nodes);
    for (uint32_t node = 0; node < nodes; ++node) {
      network.addNode();
      while (node && random() % 10 < arcsInTen) {
        uint32_t to = random() % node;
        network.addArc(node, to);
        before[node] |= 1U << to;
      }
    }
    // Nodes that only acquire and nodes that only release leave the network
    // choices that a greedy pass gets wrong.
    for (uint32_t node = 0; node < nodes; ++node) {
      int64_t bytes = 1 + random() % 9;
      if (random() % 2) {
        network.acquire(node, bytes);
        change[node] += bytes;
        acquired += bytes;
      }
      if (random() % 2) {
        network.release(node, bytes);
        change[node] -= bytes;
      }
    }
  }

  bool canBe(uint32_t happened) const {
    for (uint32_t node = 0; node < before.size(); ++node)
      if ((happened >> node & 1) && (before[node] & ~happened))
        return false;
    return true;
  }
  int64_t live(uint32_t happened) const {
    int64_t bytes = 0;
    for (uint32_t node = 0; node < change.size(); ++node)
      if (happened >> node & 1)
        bytes += change[node];
    return bytes;
  }
  int64_t mostLive() const {
    int64_t most = 0;
    for (uint32_t state = 0; state < (1U << change.size()); ++state)
      if (canBe(state))
        most = std::max(most, live(state));
    return most;
  }
};

} // namespace

TEST(ReuseNetwork, FindsTheMostOfAllStates) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    Random test(random, 2 + random() % 11, random() % 9);
    std::optional<uint64_t> reused = test.network.solve();
    ASSERT_TRUE(reused);
    ASSERT_EQ(test.acquired - static_cast<int64_t>(*reused), test.mostLive())
        << "round " << round;
    // What it says has happened then is such a state.
    uint32_t state = 0;
    for (uint32_t node = 0; node < test.before.size(); ++node)
      state |= static_cast<uint32_t>(test.network.reached(node)) << node;
    ASSERT_TRUE(test.canBe(state)) << "round " << round;
    ASSERT_EQ(test.live(state), test.mostLive()) << "round " << round;
  }
}

TEST(ReuseNetwork, GivesUpWhereItIsToldTo) {
  std::mt19937 random(3);
  Random test(random, 12, 8);
  EXPECT_FALSE(test.network.solve(1));
}
