//===- Collectives.cpp - The order of collectives -------------------------===//
//
// Every rank runs the same list, so the ranks of a communicator agree on the
// sequence of its collectives exactly when their order on one rank is total.
// For ranks with different plans `checkRanks` compares the sequences.
//
// Collectives of different communicators may overlap. Those that occupy SMs
// could then each hold some of what another needs; this cannot happen while all
// that may run together fit `Claims.collective_ctas`. At most one a stream runs
// at a time, so the sum over streams of the largest bounds them.
//
//===----------------------------------------------------------------------===//

#include "Order.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Plan/Transport.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::check;

/// CTAs that hold SMs while the collective waits for its peers.
static uint64_t residentCtas(const pb::Collective &collective) {
  return holdsMultiprocessors(collective.transport()) ? collective.ctas() : 0;
}

static void checkCtas(Context &c, const RegionInfo &region,
                      const HappensBefore &order,
                      const std::vector<size_t> &collectives) {
  uint64_t limit = c.plan.claims().collective_ctas();
  if (limit == 0)
    return;
  for (size_t i : collectives) {
    const pb::Operation &operation = *region.operations[i].operation;
    if (!holdsMultiprocessors(operation.collective().transport()))
      continue;
    uint64_t own = residentCtas(operation.collective());
    if (own == 0)
      return c.failAt(
          "collective-ctas", region.place(i),
          " may take as many CTAs as the library likes, and the plan has a "
          "limit of " +
              std::to_string(limit) + "; expected communicator " +
              std::to_string(operation.collective().communicator()) +
              " to have a max_ctas");
    std::array<uint64_t, kMaxStreams> largest{};
    largest[operation.stream()] = own;
    if (!c.spend(collectives.size()))
      return;
    for (size_t k : collectives) {
      const pb::Operation &other = *region.operations[k].operation;
      bool ordered = k < i ? order.before(k, i) : order.before(i, k);
      if (k != i && !ordered)
        largest[other.stream()] =
            std::max(largest[other.stream()], residentCtas(other.collective()));
    }
    uint64_t sum = 0;
    for (uint64_t ctas : largest)
      sum += ctas;
    if (sum > limit)
      return c.failAt("collective-ctas", region.place(i),
                      " and the collectives that may run beside it take " +
                          std::to_string(sum) +
                          " CTAs, above the plan's limit of " +
                          std::to_string(limit));
  }
}

void check::checkCollectives(Context &c, const RegionInfo &region,
                             const HappensBefore &order) {
  std::vector<size_t> collectives;
  std::map<uint32_t, size_t> last;
  for (size_t i = 0; i < region.operations.size(); ++i) {
    const pb::Operation &operation = *region.operations[i].operation;
    if (!operation.has_collective() || !order.runs(i))
      continue;
    collectives.push_back(i);
    uint32_t communicator = operation.collective().communicator();
    auto [previous, first] = last.emplace(communicator, i);
    if (!first && !order.before(previous->second, i))
      c.failAt("collective-order", region.place(i),
               " and " + c.where(region.place(previous->second)) +
                   " use communicator " + std::to_string(communicator) +
                   " in an order that ranks may not agree on: no wait orders "
                   "the two",
               region.place(previous->second));
    previous->second = i;
  }
  checkCtas(c, region, order, collectives);
}

namespace {

/// What the ranks of a group must agree on, a line a collective of any program,
/// for each communicator of a plan by its axes and purpose.
using Sequences = std::map<std::string, std::vector<std::string>>;

std::string communicatorKey(const pb::Plan &plan, int index) {
  const pb::Communicator &communicator = plan.communicators(index);
  std::string key = pb::Communicator::Purpose_Name(communicator.purpose());
  for (uint32_t axis : communicator.axes())
    key += " " + plan.mesh().axes(static_cast<int>(axis)).name();
  return key;
}

std::string collectiveText(const pb::Program &program, const pb::Region &region,
                           const pb::Operation &operation) {
  const pb::Collective &collective = operation.collective();
  std::string line = pb::Program::Kind_Name(program.kind()) + " " +
                     pb::Region::Kind_Name(region.kind()) + " x " +
                     std::to_string(region.repeat()) + " " +
                     pb::Operation::When_Name(operation.when()) + " " +
                     pb::Collective::Kind_Name(collective.kind()) + " " +
                     pb::Collective::Reduce_Name(collective.reduce()) + " " +
                     dtypeName(collective.wire()) + " " +
                     dtypeName(collective.accumulation()) + " " +
                     pb::Collective::Order_Name(collective.order()) + " " +
                     pb::Collective::Transport_Name(collective.transport()) +
                     " " + std::to_string(collective.ctas()) + " " +
                     std::to_string(collective.chunk_bytes());
  for (const pb::Operand &source : collective.sources())
    line += " " + std::string(dtypeName(source.dtype())) + " x " +
            std::to_string(elementCount(source).value_or(0));
  return line;
}

Sequences sequencesOf(const pb::Plan &plan) {
  Sequences sequences;
  for (int i = 0; i < plan.communicators_size(); ++i)
    sequences[communicatorKey(plan, i)];
  for (const pb::Program &program : plan.programs())
    for (const pb::Region &region : program.regions())
      for (const pb::Operation &operation : region.operations())
        if (operation.has_collective())
          sequences[communicatorKey(plan,
                                    static_cast<int>(
                                        operation.collective().communicator()))]
              .push_back(collectiveText(program, region, operation));
  return sequences;
}

/// "TRAIN_STEP, EVAL".
std::string programsText(const pb::Plan &plan) {
  std::string text;
  for (const pb::Program &program : plan.programs())
    text += (text.empty() ? "" : ", ") + pb::Program::Kind_Name(program.kind());
  return text;
}

Status compareSequences(const std::string &key, uint64_t aRank,
                        const Sequences &a, uint64_t bRank,
                        const Sequences &b) {
  auto mine = a.find(key), others = b.find(key);
  if (mine == a.end() && others == b.end())
    return Status::ok();
  std::string where = "[collective-order] ranks " + std::to_string(aRank) +
                      " and " + std::to_string(bRank) +
                      " disagree on the communicator '" + key + "': ";
  if (mine == a.end() || others == b.end())
    return Status::error(where + "only one of them has it");
  auto [x, y] = std::mismatch(mine->second.begin(), mine->second.end(),
                              others->second.begin(), others->second.end());
  if (x == mine->second.end() && y == others->second.end())
    return Status::ok();
  return Status::error(
      where + "collective " + std::to_string(x - mine->second.begin()) +
      " is '" + (x != mine->second.end() ? *x : "none") + "' on one and '" +
      (y != others->second.end() ? *y : "none") + "' on the other");
}

} // namespace

Status gtp::plan::checkRanks(const std::vector<const pb::Plan *> &plans) {
  if (plans.empty())
    return Status::error("no plan to check");
  const pb::Plan &first = *plans.front();
  std::map<const pb::Plan *, Sequences> sequences;
  std::string mesh = first.mesh().SerializeAsString();
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const pb::Plan &plan = *plans[rank];
    if (sequences.count(&plan))
      continue;
    std::string where =
        "[collective-order] the plan of rank " + std::to_string(rank);
    if (plan.mesh().SerializeAsString() != mesh)
      return Status::error(where + " has another mesh than that of rank 0");
    if (rankCount(plan.mesh()) != plans.size())
      return Status::error(
          where + " is for " + std::to_string(rankCount(plan.mesh())) +
          " ranks, found plans for " + std::to_string(plans.size()));
    if (programsText(plan) != programsText(first))
      return Status::error(where + " has the programs " + programsText(plan) +
                           ", that of rank 0 " + programsText(first));
    sequences[&plan] = sequencesOf(plan);
  }
  if (sequences.size() == 1)
    return Status::ok();

  // Each rank against the first of each of its groups; two plans are compared
  // once for each communicator.
  std::map<std::string, const pb::Communicator *> communicators;
  for (const auto &[plan, sequence] : sequences)
    for (int i = 0; i < plan->communicators_size(); ++i)
      communicators[communicatorKey(*plan, i)] = &plan->communicators(i);
  for (const auto &[key, communicator] : communicators) {
    std::set<std::pair<const pb::Plan *, const pb::Plan *>> equal;
    for (uint64_t rank = 0; rank < plans.size(); ++rank) {
      Coordinates coordinates = coordinatesOf(first.mesh(), rank);
      for (uint32_t axis : communicator->axes())
        coordinates[axis] = 0;
      uint64_t lead = rankOf(first.mesh(), coordinates);
      if (plans[rank] == plans[lead] ||
          !equal.insert({plans[rank], plans[lead]}).second)
        continue;
      GTP_RETURN_IF_ERROR(compareSequences(key, lead, sequences[plans[lead]],
                                           rank, sequences[plans[rank]]));
    }
  }
  return Status::ok();
}
