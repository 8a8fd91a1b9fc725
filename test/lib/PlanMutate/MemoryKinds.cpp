//===- MemoryKinds.cpp - Offsets, sizes and lifetimes of buffers ----------===//

#include "Mutations.h"
#include "Sites.h"

#include <algorithm>
#include <set>

using namespace gtp::plan;
using namespace gtp::plan::mutate;

namespace {

/// Where a region's operations touch a buffer.
struct Life {
  int first = -1, last = -1; ///< operations; -1: none
  int lastRead = -1;         ///< of its first byte
};

/// Lives in one region of the buffers that no other region touches.
std::vector<Life> livesIn(const pb::Plan &plan, int region) {
  std::vector<Life> lives(static_cast<size_t>(plan.buffers_size()));
  std::vector<bool> elsewhere(lives.size());
  for (int r = 0; r < plan.programs(0).regions_size(); ++r) {
    const pb::Region &body = plan.programs(0).regions(r);
    for (int i = 0; i < body.operations_size(); ++i)
      for (const Use &use : usesOf(plan, body.operations(i))) {
        Life &life = lives[use.operand->buffer()];
        if (r != region || use.operand->accumulate()) {
          elsewhere[use.operand->buffer()] = true;
          continue;
        }
        if (life.first < 0)
          life.first = i;
        life.last = i;
        if (use.reads && use.operand->offset() == 0)
          life.lastRead = i;
      }
  }
  for (size_t i = 0; i < lives.size(); ++i)
    if (elsewhere[i] ||
        plan.buffers(static_cast<int>(i)).kind() != pb::Buffer::TRANSIENT)
      lives[i] = Life();
  return lives;
}

int bodyRegion(const pb::Plan &plan) {
  for (int r = 0; r < plan.programs(0).regions_size(); ++r)
    if (plan.programs(0).regions(r).kind() == pb::Region::BODY)
      return r;
  return 0;
}

/// Sites whose operation is a buffer and whose part is another one.
std::vector<Site> transientBuffers(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (int i = 0; i < plan.buffers_size(); ++i)
    if (plan.buffers(i).kind() == pb::Buffer::TRANSIENT)
      sites.push_back({0, i, 0});
  return sites;
}

std::vector<pb::Plan> shiftOffset(const pb::Plan &plan) {
  return mutateAt(
      plan, transientBuffers(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Buffer &buffer = *mutant.mutable_buffers(site.operation);
        buffer.set_offset(buffer.offset() + 256);
        return true;
      });
}

/// Puts buffer `part` where buffer `operation` is.
bool layOver(pb::Plan &mutant, const Site &site) {
  mutant.mutable_buffers(site.part)->set_offset(
      mutant.buffers(site.operation).offset());
  return true;
}

std::vector<pb::Plan> shortenLifetime(const pb::Plan &plan) {
  std::vector<Life> lives = livesIn(plan, bodyRegion(plan));
  std::vector<Site> sites;
  for (size_t a = 0; a < lives.size(); ++a)
    for (size_t b = 0; b < lives.size(); ++b)
      if (a != b && lives[a].first >= 0 && lives[b].first > lives[a].first &&
          lives[b].first < lives[a].lastRead) {
        sites.push_back({0, static_cast<int>(a), static_cast<int>(b)});
        break;
      }
  return mutateAt(plan, sites, layOver);
}

std::vector<pb::Plan> aliasOperands(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (const Site &site :
       sitesOf(plan, [](const pb::Operation &op) { return op.has_kernel(); })) {
    std::vector<Use> uses = usesOf(plan, at(plan, site));
    for (const Use &out : uses)
      for (const Use &in : uses) {
        int from = static_cast<int>(in.operand->buffer());
        int to = static_cast<int>(out.operand->buffer());
        if (out.writes && in.reads && from != to &&
            plan.buffers(from).kind() == pb::Buffer::TRANSIENT &&
            plan.buffers(to).kind() == pb::Buffer::TRANSIENT &&
            in.operand->offset() == 0 && out.operand->offset() == 0)
          sites.push_back({0, from, to});
      }
  }
  return mutateAt(plan, sites, layOver);
}

/// A gather gets the bytes of one whose weight is still to be read.
std::vector<pb::Plan> reuseGatherEarly(const pb::Plan &plan) {
  int body = bodyRegion(plan);
  std::vector<Life> lives = livesIn(plan, body);
  std::vector<Site> sites;
  for (const Site &site : sitesOf(plan, isWeightGather)) {
    if (site.region != body)
      continue;
    uint32_t b = at(plan, site).collective().destinations(0).buffer();
    for (const Site &other : sitesOf(plan, isWeightGather)) {
      uint32_t a = at(plan, other).collective().destinations(0).buffer();
      if (other.region == body && other.operation < site.operation && a != b &&
          lives[a].lastRead > site.operation) {
        sites.push_back({0, static_cast<int>(a), static_cast<int>(b)});
        break;
      }
    }
  }
  return mutateAt(plan, sites, layOver);
}

std::vector<Site> persistentBuffers(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (int i = 1; i < plan.buffers_size(); ++i)
    if (plan.buffers(i).kind() == pb::Buffer::PERSISTENT &&
        plan.buffers(i - 1).kind() == pb::Buffer::PERSISTENT)
      sites.push_back({0, i - 1, i});
  return sites;
}

std::vector<pb::Plan> aliasPersistent(const pb::Plan &plan) {
  return mutateAt(plan, persistentBuffers(plan), layOver);
}

/// What the step needs now lies over what must outlive it.
/// Over what the update reads: what it publishes beside a master nobody needs
/// between its last gather and the update.
std::vector<pb::Plan> overPersistent(const pb::Plan &plan) {
  std::vector<Site> fixed = persistentBuffers(plan);
  std::set<int> published;
  for (const pb::Parameter &parameter : plan.parameters())
    if (parameter.master_buffer_plus1())
      published.insert(static_cast<int>(parameter.compute_buffer()));
  fixed.erase(std::remove_if(fixed.begin(), fixed.end(),
                             [&](const Site &site) {
                               return published.count(site.operation) != 0;
                             }),
              fixed.end());
  std::vector<Site> sites;
  for (const Site &site : transientBuffers(plan))
    sites.push_back(
        {0, fixed[sites.size() % fixed.size()].operation, site.operation});
  return mutateAt(plan, sites, layOver);
}

std::vector<pb::Plan> overInput(const pb::Plan &plan) {
  std::vector<Life> lives = livesIn(plan, bodyRegion(plan));
  std::optional<uint32_t> hyper = ioBuffer(plan, "hyper");
  std::vector<Site> sites;
  for (size_t b = 0; b < lives.size(); ++b)
    if (hyper && lives[b].first >= 0)
      sites.push_back({0, static_cast<int>(*hyper), static_cast<int>(b)});
  return mutateAt(plan, sites, layOver);
}

std::vector<pb::Plan> shrinkBuffer(const pb::Plan &plan) {
  return mutateAt(
      plan, transientBuffers(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Buffer &buffer = *mutant.mutable_buffers(site.operation);
        buffer.set_size(buffer.size() - 1);
        return true;
      });
}

std::vector<pb::Plan> misalign(const pb::Plan &plan) {
  return mutateAt(
      plan, transientBuffers(plan), [](pb::Plan &mutant, const Site &site) {
        pb::Buffer &buffer = *mutant.mutable_buffers(site.operation);
        buffer.set_offset(buffer.offset() + 16);
        return true;
      });
}

} // namespace

std::vector<Kind> mutate::memoryKinds() {
  return {
      {"shift-offset",
       "a buffer lies 256 bytes further",
       Expect::Either,
       {"race", "undefined-read", "alias"},
       shiftOffset},
      {"shorten-lifetime",
       "a buffer lies over one that is still to be read",
       Expect::Refused,
       {"undefined-read", "race", "alias"},
       shortenLifetime},
      {"alias-operands",
       "a kernel writes where it reads",
       Expect::Refused,
       {"alias"},
       aliasOperands},
      {"reuse-gather-early",
       "a gather writes over a weight that is still to be read",
       Expect::Refused,
       {"undefined-read", "race"},
       reuseGatherEarly},
      {"alias-persistent",
       "two persistent buffers share their bytes",
       Expect::Refused,
       {"structure"},
       aliasPersistent},
      {"over-persistent",
       "a buffer of the step lies over a persistent one",
       Expect::Refused,
       {"undefined-read", "race"},
       overPersistent},
      {"over-input",
       "a buffer of the body lies over an input of the update",
       Expect::Refused,
       {"undefined-read", "race"},
       overInput},
      {"shrink-buffer",
       "a buffer is a byte too small",
       Expect::Refused,
       {"structure"},
       shrinkBuffer},
      {"misalign",
       "an offset is no multiple of 256",
       Expect::Refused,
       {"structure"},
       misalign},
  };
}
