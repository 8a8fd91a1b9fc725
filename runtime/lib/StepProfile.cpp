//===- StepProfile.cpp - Measured times of a plan's operations ------------===//

#include "gtp-rt/StepProfile.h"
#include "gtp-rt/File.h"
#include "gtp/Plan/Iteration.h"
#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/KernelRegistry.h"
#include "gtp/Plan/KernelSignature.h"
#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"
#include "gtp/Support/LowerCase.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace gtp;
using namespace gtp::rt;
namespace pb = gtp::plan::pb;

/// Behind the base in the name of a profile.
static constexpr const char kMeasured[] = ", measured";

/// 0 of none.
static int64_t median(std::vector<int64_t> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

static int64_t mean(const std::vector<int64_t> &values) {
  return std::accumulate(values.begin(), values.end(), int64_t(0)) /
         std::max<int64_t>(1, int64_t(values.size()));
}

StepProfile::Key StepProfile::keyOf(const pb::Operation &operation) const {
  Key key;
  if (operation.has_kernel()) {
    key.name = plan.text(operation.kernel().name());
    if (const plan::KernelSpec *spec = plan::lookupKernel(key.name)) {
      key.signature = plan::signatureOf(*spec, operation.kernel());
      // Priced apart: docs/target-profiles.md.
      if (plan::isFast(plan.proto(), operation.kernel(), *spec))
        key.name += ".fast";
    }
  } else if (operation.has_collective()) {
    const pb::Collective &collective = operation.collective();
    key.name = lowerCase(pb::Collective::Kind_Name(collective.kind()));
    key.transport = collective.transport();
    key.ranks = plan::groupSize(
        plan.proto().mesh(),
        plan.proto().communicators(int(collective.communicator())));
    const auto &longSide = collective.kind() == pb::Collective::ALL_GATHER
                               ? collective.destinations()
                               : collective.sources();
    for (const pb::Operand &operand : longSide)
      key.bytes += plan::elementCount(operand).value_or(0) *
                   plan::dtypeSize(operand.dtype());
  }
  return key;
}

StepProfile::StepProfile(const RunPlan &runPlan) : plan(runPlan) {
  for (const pb::Region &region : plan.proto().programs(0).regions()) {
    classes.emplace_back();
    for (const pb::Operation &operation : region.operations()) {
      const bool isNamed = operation.has_kernel() || operation.has_collective();
      classes.back().push_back(isNamed ? &samples[keyOf(operation)] : nullptr);
      if (isNamed)
        classes.back().back()->calls +=
            plan::runCount(operation.when(), region.repeat());
    }
  }
}

const pb::Operation *StepProfile::find(const OperationTime &time) const {
  if (time.region >= classes.size() ||
      time.operation >= classes[time.region].size())
    return nullptr;
  return &plan.proto()
              .programs(0)
              .regions(int(time.region))
              .operations(int(time.operation));
}

bool StepProfile::isCompute(const pb::Operation &operation) const {
  return plan.proto().streams(int(operation.stream())).kind() ==
         pb::Stream::COMPUTE;
}

static Status unknownOperation() {
  return Status::error("the backend timed an operation that the plan does not "
                       "have");
}

Status StepProfile::add(Timing timing,
                        const std::vector<OperationTime> &times) {
  int64_t first = INT64_MAX, last = 0, compute = 0;
  for (const OperationTime &time : times) {
    const pb::Operation *operation = find(time);
    if (!operation)
      return unknownOperation();
    const int64_t length = time.endNs - time.startNs;
    first = std::min(first, time.startNs);
    last = std::max(last, time.endNs);
    if (isCompute(*operation))
      compute += length;
    if (Samples *found = classes[time.region][time.operation])
      (timing == Timing::OneByOne ? found->alone : found->beside)
          .push_back(length);
  }
  if (times.empty())
    return Status::ok();
  if (timing == Timing::OneByOne) {
    computeAlone.push_back(compute);
  } else {
    computeBeside.push_back(compute);
    steps.push_back(last - first);
    addOverlaps(times);
  }
  return Status::ok();
}

Status StepProfile::addSustained(const std::vector<OperationTime> &times) {
  for (const OperationTime &time : times) {
    if (!find(time))
      return unknownOperation();
    if (Samples *found = classes[time.region][time.operation])
      found->sustained.push_back(time.endNs - time.startNs);
  }
  return Status::ok();
}

void StepProfile::addWhole(int64_t ns, bool isWithoutCollectives) {
  if (ns > 0)
    (isWithoutCollectives ? withoutCollectives : untimed).push_back(ns);
}

namespace {
/// When some operation of a set is at work: intervals apart from each other.
class BusyTimes {
public:
  void add(const OperationTime &time) {
    if (time.endNs > time.startNs)
      intervals.emplace_back(time.startNs, time.endNs);
  }
  /// Before the first look.
  void join() {
    std::sort(intervals.begin(), intervals.end());
    size_t kept = 0;
    for (const auto &[start, end] : intervals)
      if (kept && start <= intervals[kept - 1].second)
        intervals[kept - 1].second = std::max(intervals[kept - 1].second, end);
      else
        intervals[kept++] = {start, end};
    intervals.resize(kept);
  }
  int64_t within(const OperationTime &time) const {
    int64_t sum = 0;
    auto next = std::lower_bound(
        intervals.begin(), intervals.end(), time.startNs,
        [](const auto &interval, int64_t ns) { return interval.second <= ns; });
    for (; next != intervals.end() && next->first < time.endNs; ++next)
      sum += std::min(next->second, time.endNs) -
             std::max(next->first, time.startNs);
    return sum;
  }

private:
  std::vector<std::pair<int64_t, int64_t>> intervals;
};
} // namespace

void StepProfile::addOverlaps(const std::vector<OperationTime> &times) {
  BusyTimes gathers, reductions;
  for (const OperationTime &time : times) {
    const pb::Operation &operation = *find(time);
    if (operation.has_collective())
      (operation.collective().kind() == pb::Collective::ALL_GATHER ? gathers
                                                                   : reductions)
          .add(time);
  }
  gathers.join();
  reductions.join();
  for (const OperationTime &time : times) {
    Samples *found = classes[time.region][time.operation];
    if (!found || !isCompute(*find(time)))
      continue;
    found->besideGathers += gathers.within(time);
    found->besideReductions += reductions.within(time);
  }
}

StepProfile::Step StepProfile::step() const {
  Step found;
  found.steps = steps.size();
  found.stepNs = median(steps);
  found.aloneNs = median(computeAlone);
  found.besideNs = median(computeBeside);
  found.untimedNs = median(untimed);
  found.withoutCollectivesNs = median(withoutCollectives);
  return found;
}

std::string StepProfile::summary() const {
  const Step found = step();
  auto ms = [](int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f ms", double(ns) / 1e6);
    return std::string(text);
  };
  return "compute " + ms(found.aloneNs) + " alone, contention " +
         ms(found.contentionNs()) + ", stall " + ms(found.stallNs()) +
         ", step " + ms(found.stepNs) + " (median of " +
         std::to_string(found.steps) + ")";
}

Status StepProfile::write(const std::string &path, const std::string &machine,
                          bool isHost) const {
  using Json = nlohmann::ordered_json;
  const pb::Provenance &provenance = plan.proto().provenance();
  // A plan made with a profile like this one has its base.
  const std::string base =
      provenance.target().substr(0, provenance.target().find(kMeasured));
  Json measured;
  measured["source"] =
      machine + ": " + std::to_string(steps.size()) + " steps as planned and " +
      std::to_string(computeAlone.size()) + " with operations one by one, of " +
      provenance.source() + " on " + plan.meshText();
  const Step whole = step();
  measured["step"] = {{"step_ns", whole.stepNs},
                      {"compute_ns", whole.aloneNs},
                      {"contention_ns", whole.contentionNs()},
                      {"stall_ns", whole.stallNs()}};
  if (whole.untimedNs)
    measured["step"]["untimed_ns"] = whole.untimedNs;
  if (whole.withoutCollectivesNs)
    measured["step"]["without_collectives_ns"] = whole.withoutCollectivesNs;
  measured["kernels"] = Json::array();
  measured["collectives"] = Json::array();
  for (const auto &[key, times] : samples) {
    if (times.alone.empty() || times.beside.empty())
      continue;
    Json entry;
    const bool isCollective = key.ranks != 0;
    if (isCollective) {
      auto transport = pb::Collective::Transport(key.transport);
      entry["collective"] = key.name;
      entry["transport"] =
          transport == pb::Collective::AUTO ? (isHost ? "host" : "ring")
          : transport == pb::Collective::RING_TRANSPORT
              ? "ring"
              : lowerCase(pb::Collective::Transport_Name(transport));
      entry["ranks"] = key.ranks;
      entry["bytes"] = key.bytes;
    } else {
      entry["kernel"] = key.name;
      entry["operands"] = key.signature;
    }
    entry["calls"] = times.calls;
    entry["alone_ns"] = median(times.alone);
    entry["beside_ns"] = median(times.beside);
    entry["beside_mean_ns"] = mean(times.beside);
    if (!isCollective) {
      if (!times.sustained.empty())
        entry["sustained_ns"] = median(times.sustained);
      const auto count = int64_t(times.beside.size());
      entry["beside_gathers_ns"] = times.besideGathers / count;
      entry["beside_reductions_ns"] = times.besideReductions / count;
    }
    measured[isCollective ? "collectives" : "kernels"].push_back(entry);
  }
  Json profile = {
      {"name", base + kMeasured}, {"base", base}, {"measured", measured}};
  const std::string text = profile.dump(1) + "\n";
  GTP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  GTP_RETURN_IF_ERROR(file.write(text.data(), text.size()));
  return file.commit();
}
