//===- Sites.cpp - Places in a plan and what to do there ------------------===//

#include "Sites.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/PlanFile.h"
#include "gtp/Support/RoundUp.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::mutate;

pb::Region &mutate::regionAt(pb::Plan &plan, const Site &site) {
  return *plan.mutable_programs(0)->mutable_regions(site.region);
}
const pb::Region &mutate::regionAt(const pb::Plan &plan, const Site &site) {
  return plan.programs(0).regions(site.region);
}
pb::Operation &mutate::at(pb::Plan &plan, const Site &site) {
  return *regionAt(plan, site).mutable_operations(site.operation);
}
const pb::Operation &mutate::at(const pb::Plan &plan, const Site &site) {
  return regionAt(plan, site).operations(site.operation);
}
pb::Operand &mutate::operandAt(pb::Plan &plan, const Site &site) {
  return *at(plan, site).mutable_kernel()->mutable_operands(site.part);
}
const pb::Operand &mutate::operandAt(const pb::Plan &plan, const Site &site) {
  return at(plan, site).kernel().operands(site.part);
}

std::vector<Site> mutate::sitesOf(const pb::Plan &plan,
                                  const OperationTest &test) {
  std::vector<Site> sites;
  for (int r = 0; r < plan.programs(0).regions_size(); ++r) {
    const pb::Region &region = plan.programs(0).regions(r);
    for (int i = 0; i < region.operations_size(); ++i)
      if (test(region.operations(i)))
        sites.push_back({r, i, 0});
  }
  return sites;
}

std::vector<Site> mutate::waitsOf(const pb::Plan &plan) {
  std::vector<Site> sites;
  for (Site site : sitesOf(plan, [](const pb::Operation &) { return true; }))
    for (int w = 0; w < at(plan, site).waits_size(); ++w) {
      site.part = w;
      sites.push_back(site);
    }
  return sites;
}

std::vector<Site> mutate::operandsOf(
    const pb::Plan &plan,
    const std::function<bool(const pb::Operation &, const OperandSpec &,
                             const pb::Operand &)> &test) {
  std::vector<Site> sites;
  for (Site site :
       sitesOf(plan, [](const pb::Operation &op) { return op.has_kernel(); })) {
    const pb::Operation &operation = at(plan, site);
    const KernelSpec *spec = kernelOf(plan, operation);
    int count = operation.kernel().operands_size();
    for (int i = 0; spec && i < count; ++i) {
      site.part = i;
      const OperandSpec *operand = operandSpec(*spec, static_cast<size_t>(i),
                                               static_cast<size_t>(count));
      if (operand && test(operation, *operand, operation.kernel().operands(i)))
        sites.push_back(site);
    }
  }
  return sites;
}

std::vector<pb::Plan>
mutate::mutateAt(const pb::Plan &plan, const std::vector<Site> &sites,
                 const std::function<bool(pb::Plan &, const Site &)> &change) {
  std::vector<pb::Plan> mutants;
  // Far apart first: the ends, the middle, and so on.
  size_t step = std::max<size_t>(1, sites.size() / kMaxMutants);
  for (size_t start = 0; start < step; ++start)
    for (size_t i = start; i < sites.size(); i += step) {
      if (mutants.size() == kMaxMutants)
        return mutants;
      pb::Plan mutant = plan;
      if (!change(mutant, sites[i]))
        continue;
      restateClaims(mutant);
      mutants.push_back(std::move(mutant));
    }
  return mutants;
}

std::vector<pb::Plan>
mutate::mutateOnce(const pb::Plan &plan,
                   const std::function<bool(pb::Plan &)> &change) {
  return mutateAt(plan, {Site()},
                  [&](pb::Plan &copy, const Site &) { return change(copy); });
}

uint64_t mutate::arenaEnd(const pb::Plan &plan) {
  uint64_t end = 0;
  for (const pb::Buffer &buffer : plan.buffers())
    if (buffer.memory() == 0)
      end = std::max(end, buffer.offset() + buffer.size());
  return roundUp(end, 256);
}

void mutate::restateClaims(pb::Plan &plan) {
  uint64_t persistent = 0;
  for (const pb::Buffer &buffer : plan.buffers())
    if (buffer.kind() == pb::Buffer::PERSISTENT)
      persistent += roundUp(buffer.size(), 256);
  pb::MemoryRegion &arena = *plan.mutable_memory(0);
  arena.set_size(
      roundUp(arenaEnd(plan), std::max<uint64_t>(arena.alignment(), 1)));
  pb::Claims &claims = *plan.mutable_claims();
  claims.set_persistent_bytes(persistent);
  claims.set_arena_bytes(arena.size());
  CheckReport report;
  (void)checkPlan(plan, &report);
  if (report.operations == 0)
    return; // not well formed
  claims.set_max_live_bytes(report.liveBytes);
  claims.set_gathered_peak_bytes(report.gatheredBytes);
}

const KernelSpec *mutate::kernelOf(const pb::Plan &plan,
                                   const pb::Operation &operation) {
  return operation.has_kernel()
             ? lookupKernel(kernelName(plan, operation.kernel()))
             : nullptr;
}

bool mutate::isKernel(const pb::Plan &plan, const pb::Operation &operation,
                      std::string_view name) {
  return operation.has_kernel() && kernelName(plan, operation.kernel()) == name;
}

bool mutate::isCollective(const pb::Operation &operation,
                          pb::Collective::Kind kind) {
  return operation.has_collective() && operation.collective().kind() == kind;
}

bool mutate::isWeightGather(const pb::Operation &operation) {
  return isCollective(operation, pb::Collective::ALL_GATHER) &&
         operation.collective().parameter_plus1() != 0;
}

bool mutate::isGradientReduction(const pb::Operation &operation,
                                 pb::Collective::Kind kind) {
  return isCollective(operation, kind) &&
         operation.collective().parameter_plus1() != 0;
}

int mutate::parameterOf(const pb::Operation &operation) {
  uint32_t plus1 = operation.has_kernel() ? operation.kernel().parameter_plus1()
                   : operation.has_collective()
                       ? operation.collective().parameter_plus1()
                       : 0;
  return static_cast<int>(plus1) - 1;
}

bool mutate::updates(const pb::Plan &plan, const pb::Operation &operation) {
  const KernelSpec *spec = kernelOf(plan, operation);
  return spec && std::any_of(spec->operands.begin(), spec->operands.end(),
                             [](const OperandSpec &operand) {
                               return operand.role == Role::Master;
                             });
}

std::optional<Site> mutate::ownCopyOf(const pb::Plan &plan,
                                      const Site &gather) {
  const pb::Operand &source = at(plan, gather).collective().sources(0);
  if (source.rank_strides().empty())
    return std::nullopt;
  Site site = gather;
  while (site.operation-- > 0)
    if (at(plan, site).has_copy() &&
        at(plan, site).copy().destination().buffer() == source.buffer())
      return site;
  return std::nullopt;
}

pb::Operand &mutate::shardOf(pb::Plan &plan, const Site &gather) {
  if (std::optional<Site> copy = ownCopyOf(plan, gather))
    return *at(plan, *copy).mutable_copy()->mutable_source();
  return *at(plan, gather).mutable_collective()->mutable_sources(0);
}

std::vector<pb::Operand *> mutate::gatherOperands(pb::Plan &plan,
                                                  const Site &gather) {
  std::vector<pb::Operand *> operands = mutableOperands(at(plan, gather));
  if (std::optional<Site> copy = ownCopyOf(plan, gather))
    for (pb::Operand *operand : mutableOperands(at(plan, *copy)))
      operands.push_back(operand);
  return operands;
}

void mutate::moveByHost(pb::Operation &operation) {
  pb::Collective &collective = *operation.mutable_collective();
  collective.set_transport(pb::Collective::HOST);
  collective.set_ctas(0);
  collective.clear_scratch();
}

std::vector<Use> mutate::usesOf(const pb::Plan &plan,
                                const pb::Operation &operation) {
  std::vector<Use> uses;
  switch (operation.body_case()) {
  case pb::Operation::kKernel: {
    const KernelSpec &spec = *kernelOf(plan, operation);
    size_t count = static_cast<size_t>(operation.kernel().operands_size());
    for (size_t i = 0; i < count; ++i) {
      const OperandSpec &operand = *operandSpec(spec, i, count);
      // What was in scratch before is nobody's.
      bool reads =
          operand.access != Access::Write && operand.role != Role::Scratch;
      uses.push_back({&operation.kernel().operands(static_cast<int>(i)), reads,
                      operand.access != Access::Read});
    }
    break;
  }
  case pb::Operation::kCollective:
    for (const pb::Operand &operand : operation.collective().sources())
      uses.push_back({&operand, true, false});
    for (const pb::Operand &operand : operation.collective().destinations())
      uses.push_back({&operand, operand.accumulate(), true});
    if (operation.collective().has_scratch())
      uses.push_back({&operation.collective().scratch(), false, true});
    break;
  case pb::Operation::kCopy:
    uses.push_back({&operation.copy().source(), true, false});
    uses.push_back({&operation.copy().destination(), false, true});
    break;
  case pb::Operation::kFill:
    uses.push_back({&operation.fill().destination(), false, true});
    break;
  case pb::Operation::BODY_NOT_SET:
    break;
  }
  return uses;
}

std::vector<pb::Operand *> mutate::mutableOperands(pb::Operation &operation) {
  std::vector<pb::Operand *> operands;
  if (operation.has_kernel())
    for (pb::Operand &operand : *operation.mutable_kernel()->mutable_operands())
      operands.push_back(&operand);
  if (operation.has_collective()) {
    pb::Collective &collective = *operation.mutable_collective();
    for (pb::Operand &operand : *collective.mutable_sources())
      operands.push_back(&operand);
    for (pb::Operand &operand : *collective.mutable_destinations())
      operands.push_back(&operand);
    if (collective.has_scratch())
      operands.push_back(collective.mutable_scratch());
  }
  if (operation.has_copy())
    operands = {operation.mutable_copy()->mutable_source(),
                operation.mutable_copy()->mutable_destination()};
  if (operation.has_fill())
    operands = {operation.mutable_fill()->mutable_destination()};
  return operands;
}

int mutate::neighbour(const pb::Plan &plan, int parameter) {
  const pb::Parameter &p = plan.parameters(parameter);
  for (int i = 0; i < plan.parameters_size(); ++i) {
    const pb::Parameter &other = plan.parameters(i);
    if (i != parameter && other.frozen() == p.frozen() &&
        other.shape_size() == p.shape_size() &&
        std::equal(p.shape().begin(), p.shape().end(), other.shape().begin()) &&
        plan.layouts(static_cast<int>(other.layout())).SerializeAsString() ==
            plan.layouts(static_cast<int>(p.layout())).SerializeAsString())
      return i;
  }
  return -1;
}

uint32_t mutate::eventOf(pb::Region &region, int index) {
  pb::Operation &operation = *region.mutable_operations(index);
  if (operation.event_plus1() == 0) {
    region.set_events(region.events() + 1);
    operation.set_event_plus1(region.events());
  }
  return operation.event_plus1() - 1;
}

void mutate::eraseOperation(pb::Plan &plan, const Site &site) {
  pb::Region &region = regionAt(plan, site);
  pb::Operation removed = region.operations(site.operation);
  for (int i = site.operation + 1; i < region.operations_size(); ++i) {
    if (region.operations(i).stream() != removed.stream())
      continue;
    region.mutable_operations(i)->mutable_waits()->MergeFrom(removed.waits());
    break;
  }
  if (removed.event_plus1()) {
    std::optional<uint32_t> instead;
    for (int i = site.operation - 1; i >= 0 && !instead; --i)
      if (region.operations(i).stream() == removed.stream())
        instead = eventOf(region, i);
    for (pb::Operation &operation : *region.mutable_operations()) {
      auto &waits = *operation.mutable_waits();
      for (int w = waits.size() - 1; w >= 0; --w) {
        if (waits[w].event() != removed.event_plus1() - 1)
          continue;
        if (instead)
          waits[w].set_event(*instead);
        else
          waits.DeleteSubrange(w, 1);
      }
    }
    // Events are numbered without gaps.
    uint32_t last = region.events() - 1;
    for (pb::Operation &operation : *region.mutable_operations()) {
      if (operation.event_plus1() == last + 1)
        operation.set_event_plus1(removed.event_plus1());
      for (pb::Wait &wait : *operation.mutable_waits())
        if (wait.event() == last)
          wait.set_event(removed.event_plus1() - 1);
    }
    region.set_events(last);
  }
  region.mutable_operations()->DeleteSubrange(site.operation, 1);
}

void mutate::insertBehind(pb::Plan &plan, const Site &site,
                          pb::Operation operation) {
  pb::Region &region = regionAt(plan, site);
  operation.set_event_plus1(0);
  operation.clear_waits();
  operation.set_stream(region.operations(site.operation).stream());
  *region.add_operations() = std::move(operation);
  for (int i = region.operations_size() - 1; i > site.operation + 1; --i)
    region.mutable_operations()->SwapElements(i, i - 1);
}

uint32_t mutate::stringIndex(pb::Plan &plan, const std::string &text) {
  auto it = std::find(plan.strings().begin(), plan.strings().end(), text);
  uint32_t index = static_cast<uint32_t>(it - plan.strings().begin());
  if (it == plan.strings().end())
    plan.add_strings(text);
  return index;
}

std::optional<uint32_t> mutate::ioBuffer(const pb::Plan &plan,
                                         std::string_view name) {
  for (const auto *list :
       {&plan.programs(0).inputs(), &plan.programs(0).outputs()})
    for (const pb::Io &io : *list)
      if (plan.strings(static_cast<int>(io.name())) == name)
        return io.buffer();
  return std::nullopt;
}

uint32_t mutate::addBuffer(pb::Plan &plan, uint64_t size) {
  uint64_t offset = arenaEnd(plan);
  pb::Buffer *buffer = plan.add_buffers();
  buffer->set_kind(pb::Buffer::TRANSIENT);
  buffer->set_offset(offset);
  buffer->set_size(size);
  return static_cast<uint32_t>(plan.buffers_size() - 1);
}
