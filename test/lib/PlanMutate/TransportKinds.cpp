//===- TransportKinds.cpp - How bytes move --------------------------------===//

#include "Mutations.h"
#include "Sites.h"

#include "gtp/Plan/Transport.h"

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

std::vector<Site> collectives(const pb::Plan &plan,
                              bool (*test)(const pb::Collective &)) {
  return sitesOf(plan, [&](const pb::Operation &op) {
    return op.has_collective() && test(op.collective());
  });
}

bool holds(const pb::Collective &collective) {
  return holdsMultiprocessors(collective.transport());
}

pb::Communicator &communicatorOf(pb::Plan &plan, const Site &site) {
  return *plan.mutable_communicators(
      static_cast<int>(at(plan, site).collective().communicator()));
}

std::vector<pb::Plan> inChunks(const pb::Plan &plan) {
  return mutateAt(
      plan, collectives(plan, [](const pb::Collective &) { return true; }),
      [](pb::Plan &mutant, const Site &site) {
        at(mutant, site).mutable_collective()->set_chunk_bytes(1 << 20);
        return true;
      });
}

std::vector<pb::Plan> fewerCtas(const pb::Plan &plan) {
  return mutateAt(
      plan, collectives(plan, holds), [](pb::Plan &mutant, const Site &site) {
        pb::Collective &taking = *at(mutant, site).mutable_collective();
        if (taking.ctas() == 0)
          return false;
        taking.set_ctas(taking.ctas() - 1);
        return true;
      });
}

std::vector<pb::Plan> heldByNone(const pb::Plan &plan) {
  return mutateAt(
      plan,
      collectives(plan, [](const pb::Collective &c) { return !holds(c); }),
      [](pb::Plan &mutant, const Site &site) {
        at(mutant, site).mutable_collective()->set_ctas(1);
        return true;
      });
}

std::vector<pb::Plan> tooManyCtas(const pb::Plan &plan) {
  return mutateAt(plan, collectives(plan, holds),
                  [](pb::Plan &mutant, const Site &site) {
                    communicatorOf(mutant, site).set_max_ctas(65);
                    return true;
                  });
}

/// The communicator leaves it to the library, and so do all on it.
std::vector<pb::Plan> anyCtas(const pb::Plan &plan) {
  return mutateAt(
      plan, collectives(plan, holds), [](pb::Plan &mutant, const Site &site) {
        if (mutant.claims().collective_ctas() == 0)
          return false;
        pb::Communicator &communicator = communicatorOf(mutant, site);
        communicator.set_min_ctas(0);
        communicator.set_max_ctas(0);
        for (pb::Program &program : *mutant.mutable_programs())
          for (pb::Region &region : *program.mutable_regions())
            for (pb::Operation &operation : *region.mutable_operations())
              if (operation.has_collective() &&
                  operation.collective().communicator() ==
                      at(mutant, site).collective().communicator())
                operation.mutable_collective()->set_ctas(0);
        return true;
      });
}

std::vector<pb::Plan> noWindow(const pb::Plan &plan) {
  return mutateAt(plan,
                  collectives(plan,
                              [](const pb::Collective &c) {
                                return needsWindow(c.transport());
                              }),
                  [](pb::Plan &mutant, const Site &site) {
                    communicatorOf(mutant, site).set_needs_window(false);
                    return true;
                  });
}

std::vector<Site> scratchSites(const pb::Plan &plan) {
  return collectives(plan,
                     [](const pb::Collective &c) { return c.has_scratch(); });
}

std::vector<pb::Plan> lessScratch(const pb::Plan &plan) {
  return mutateAt(
      plan, scratchSites(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Operand &scratch =
            *at(mutant, site).mutable_collective()->mutable_scratch();
        if (scratch.dims(0) <= 256)
          return false; // none at all is another mutant
        scratch.set_dims(0, scratch.dims(0) - 256);
        return true;
      });
}

/// Where results go before they are whole is where contributions are read.
std::vector<pb::Plan> scratchOverSource(const pb::Plan &plan) {
  return mutateAt(
      plan, scratchSites(plan), [](pb::Plan &mutant, const Site &site) {
        const pb::Collective &collective = at(mutant, site).collective();
        const pb::Operand &source = collective.sources(0);
        pb::Buffer &scratch = *mutant.mutable_buffers(
            static_cast<int>(collective.scratch().buffer()));
        scratch.set_offset(
            mutant.buffers(static_cast<int>(source.buffer())).offset());
        return true;
      });
}

} // namespace

std::vector<Kind> mutate::transportKinds() {
  return {
      {"in-chunks",
       "a collective is sent in chunks, as by no transport",
       Expect::Refused,
       {"transport"},
       inChunks},
      {"fewer-ctas",
       "a collective counts fewer CTAs than its communicator takes",
       Expect::Refused,
       {"transport"},
       fewerCtas},
      {"held-by-none",
       "a transport that holds no multiprocessor has CTAs",
       Expect::Refused,
       {"transport"},
       heldByNone},
      {"too-many-ctas",
       "a communicator takes more CTAs than there are channels",
       Expect::Refused,
       {"structure"},
       tooManyCtas},
      {"any-ctas",
       "a communicator takes as many CTAs as its library likes",
       Expect::Refused,
       {"collective-ctas"},
       anyCtas},
      {"no-window",
       "a transport lacks its window",
       Expect::Refused,
       {"transport"},
       noWindow},
      {"less-scratch",
       "a collective has less scratch than its transport needs",
       Expect::Refused,
       {"transport"},
       lessScratch},
      {"scratch-over-source",
       "a collective's scratch lies over what it reads",
       Expect::Refused,
       {"alias", "race", "undefined-read"},
       scratchOverSource},
  };
}
