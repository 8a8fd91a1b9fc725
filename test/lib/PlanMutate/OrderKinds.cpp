//===- OrderKinds.cpp - Waits, events, streams and collectives ------------===//

#include "Mutations.h"
#include "Sites.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

static std::vector<pb::Plan> dropWait(const pb::Plan &plan) {
  return mutateAt(plan, waitsOf(plan), [](pb::Plan &mutant, const Site &site) {
    at(mutant, site).mutable_waits()->DeleteSubrange(site.part, 1);
    return true;
  });
}

/// The wait names the first event of the region that any operation records.
static std::vector<pb::Plan> waitForEarlier(const pb::Plan &plan) {
  return mutateAt(plan, waitsOf(plan), [](pb::Plan &mutant, const Site &site) {
    for (const pb::Operation &operation : regionAt(mutant, site).operations()) {
      if (!operation.event_plus1())
        continue;
      pb::Wait &wait = *at(mutant, site).mutable_waits(site.part);
      bool other = wait.event() != operation.event_plus1() - 1;
      wait.set_event(operation.event_plus1() - 1);
      return other;
    }
    return false;
  });
}

static std::vector<Site> recorders(const pb::Plan &plan) {
  return sitesOf(plan,
                 [](const pb::Operation &op) { return op.event_plus1() != 0; });
}

static std::vector<pb::Plan> recordEarlier(const pb::Plan &plan) {
  return mutateAt(
      plan, recorders(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Region &region = regionAt(mutant, site);
        pb::Operation &recorder = at(mutant, site);
        for (int i = site.operation - 1; i >= 0; --i) {
          pb::Operation &earlier = *region.mutable_operations(i);
          if (earlier.stream() != recorder.stream())
            continue;
          if (earlier.event_plus1() || earlier.when() != recorder.when())
            return false;
          earlier.set_event_plus1(recorder.event_plus1());
          recorder.set_event_plus1(0);
          return true;
        }
        return false;
      });
}

static std::vector<pb::Plan> otherStream(const pb::Plan &plan,
                                         const OperationTest &test) {
  return mutateAt(
      plan, sitesOf(plan, test), [](pb::Plan &mutant, const Site &site) {
        uint32_t streams = static_cast<uint32_t>(mutant.streams_size());
        pb::Operation &operation = at(mutant, site);
        operation.set_stream((operation.stream() + 1) % streams);
        return streams > 1;
      });
}

static std::vector<pb::Plan> kernelOnOtherStream(const pb::Plan &plan) {
  return otherStream(plan,
                     [](const pb::Operation &op) { return op.has_kernel(); });
}

static std::vector<pb::Plan> collectiveOnOtherStream(const pb::Plan &plan) {
  return otherStream(
      plan, [](const pb::Operation &op) { return op.has_collective(); });
}

static std::vector<pb::Plan> waitForLater(const pb::Plan &plan) {
  return mutateAt(plan, recorders(plan),
                  [](pb::Plan &mutant, const Site &site) {
                    if (site.operation == 0)
                      return false;
                    regionAt(mutant, site)
                        .mutable_operations(site.operation - 1)
                        ->add_waits()
                        ->set_event(at(mutant, site).event_plus1() - 1);
                    return true;
                  });
}

static std::vector<pb::Plan> waitAcrossIterations(const pb::Plan &plan) {
  return mutateAt(plan, waitsOf(plan), [](pb::Plan &mutant, const Site &site) {
    at(mutant, site).mutable_waits(site.part)->set_distance(1);
    return true;
  });
}

/// Collectives of which another one of the same communicator comes later in the
/// region; `part` is that one.
static std::vector<Site> collectivePairs(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (Site site : sitesOf(
           plan, [](const pb::Operation &op) { return op.has_collective(); })) {
    const pb::Region &region = regionAt(plan, site);
    const pb::Collective &first = at(plan, site).collective();
    for (int i = site.operation + 1; i < region.operations_size(); ++i) {
      const pb::Operation &other = region.operations(i);
      if (!other.has_collective() ||
          other.collective().communicator() != first.communicator())
        continue;
      bool same = other.collective().kind() == first.kind() &&
                  other.collective().sources(0).dims_size() ==
                      first.sources(0).dims_size() &&
                  std::equal(first.sources(0).dims().begin(),
                             first.sources(0).dims().end(),
                             other.collective().sources(0).dims().begin());
      site.part = i;
      if (!same)
        sites.push_back(site);
      break;
    }
  }
  return sites;
}

static std::vector<pb::Plan> swapCollectives(const pb::Plan &plan) {
  return mutateAt(
      plan, collectivePairs(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Region &region = regionAt(mutant, site);
        region.mutable_operations(site.operation)
            ->mutable_collective()
            ->Swap(region.mutable_operations(site.part)->mutable_collective());
        return true;
      });
}

static std::vector<pb::Plan> skipCollective(const pb::Plan &plan) {
  return mutateAt(
      plan,
      sitesOf(plan,
              [](const pb::Operation &op) { return op.has_collective(); }),
      [](pb::Plan &mutant, const Site &site) {
        eraseOperation(mutant, site);
        return true;
      });
}

static std::vector<pb::Plan> otherWire(const pb::Plan &plan) {
  return mutateAt(plan,
                  sitesOf(plan,
                          [](const pb::Operation &op) {
                            return op.has_collective() &&
                                   op.collective().kind() !=
                                       pb::Collective::ALL_GATHER &&
                                   op.collective().wire() == pb::F32;
                          }),
                  [](pb::Plan &mutant, const Site &site) {
                    at(mutant, site).mutable_collective()->set_wire(pb::BF16);
                    return true;
                  });
}

std::vector<Kind> mutate::orderKinds() {
  return {
      {"drop-wait",
       "a wait is not there",
       Expect::Either,
       {"race", "collective-order"},
       dropWait},
      {"wait-for-earlier",
       "a wait is for an event before the right one",
       Expect::Either,
       {"race", "collective-order"},
       waitForEarlier},
      {"record-earlier",
       "the operation before records the event",
       Expect::Either,
       {"race", "collective-order"},
       recordEarlier},
      {"kernel-other-stream",
       "a kernel runs on the next stream",
       Expect::Either,
       {"race"},
       kernelOnOtherStream},
      {"collective-other-stream",
       "a collective runs on the next stream",
       Expect::Either,
       {"race", "collective-order"},
       collectiveOnOtherStream},
      {"wait-for-later",
       "an operation waits for one behind it",
       Expect::Refused,
       {"structure"},
       waitForLater},
      {"wait-distance",
       "a wait is for the iteration before",
       Expect::Refused,
       {"unsupported"},
       waitAcrossIterations},
      {"rank-swaps-collectives",
       "one rank exchanges two collectives",
       Expect::RanksDiffer,
       {"collective-order"},
       swapCollectives},
      {"rank-skips-collective",
       "one rank leaves a collective out",
       Expect::RanksDiffer,
       {"collective-order"},
       skipCollective},
      {"rank-other-wire",
       "one rank sends another type",
       Expect::RanksDiffer,
       {"collective-order"},
       otherWire},
  };
}
