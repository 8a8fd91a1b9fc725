//===- TraceFile.cpp - A step as predicted and as measured, for Perfetto --===//

#include "gtp-rt/TraceFile.h"
#include "gtp-rt/File.h"
#include "gtp/Plan/Iteration.h"
#include "gtp/Support/LowerCase.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace gtp;
using namespace gtp::rt;
namespace pb = gtp::plan::pb;
using Json = nlohmann::ordered_json;

std::vector<OperationTime> gtp::rt::predictTimes(const pb::Plan &plan) {
  std::vector<OperationTime> times;
  int64_t now = 0; // the last join of all streams
  for (int r = 0; r < plan.programs(0).regions_size(); ++r) {
    const pb::Region &region = plan.programs(0).regions(r);
    for (uint64_t iteration = 0; iteration < region.repeat(); ++iteration) {
      std::vector<int64_t> free(size_t(plan.streams_size()), now);
      std::vector<int64_t> recorded(region.events(), now);
      for (int i = 0; i < region.operations_size(); ++i) {
        const pb::Operation &operation = region.operations(i);
        if (!plan::runsIn(operation.when(), iteration, region.repeat()))
          continue;
        int64_t &stream = free[operation.stream()];
        for (const pb::Wait &wait : operation.waits())
          if (wait.distance() == 0)
            stream = std::max(stream, recorded[wait.event()]);
        const int64_t start = stream;
        stream += operation.duration();
        times.push_back({uint32_t(r), uint32_t(i), iteration, start, stream});
        if (operation.event_plus1())
          recorded[operation.event_plus1() - 1] = stream;
      }
      now = *std::max_element(free.begin(), free.end());
    }
  }
  return times;
}

/// What a slice is called: a collective after its parameter, a kernel after
/// where it comes from.
static std::string titleOf(const RunPlan &plan,
                           const pb::Operation &operation) {
  std::string title = operation.has_kernel()
                          ? plan.text(operation.kernel().name())
                      : operation.has_copy() ? "copy"
                                             : "fill";
  uint32_t name = operation.source();
  if (operation.has_collective()) {
    const pb::Collective &collective = operation.collective();
    title = lowerCase(pb::Collective::Kind_Name(collective.kind()));
    if (collective.parameter_plus1())
      name =
          plan.proto().parameters(int(collective.parameter_plus1() - 1)).name();
  }
  const std::string &where = plan.text(name);
  return where.empty() ? title : title + " " + where;
}

static Json metadata(const char *kind, int process, int lane,
                     const std::string &name) {
  return {{"ph", "M"},
          {"name", kind},
          {"pid", process},
          {"tid", lane},
          {"args", {{"name", name}}}};
}

static void addLanes(Json &events, const RunPlan &plan, int process,
                     const std::string &name,
                     const std::vector<OperationTime> &times) {
  const pb::Plan &proto = plan.proto();
  events.push_back(metadata("process_name", process, 0, name));
  for (int stream = 0; stream < proto.streams_size(); ++stream)
    events.push_back(metadata(
        "thread_name", process, stream + 1,
        lowerCase(pb::Stream::Kind_Name(proto.streams(stream).kind())) + " " +
            std::to_string(stream)));
  for (const OperationTime &time : times) {
    const pb::Operation &operation = proto.programs(0)
                                         .regions(int(time.region))
                                         .operations(int(time.operation));
    events.push_back(
        {{"ph", "X"},
         {"name", titleOf(plan, operation)},
         {"cat", operation.has_collective() ? "collective" : "kernel"},
         {"pid", process},
         {"tid", operation.stream() + 1},
         {"ts", double(time.startNs) / 1e3},
         {"dur", double(time.endNs - time.startNs) / 1e3},
         {"args",
          {{"region", time.region},
           {"operation", time.operation},
           {"iteration", time.iteration},
           {"predicted_ns", operation.duration()}}}});
  }
}

Status gtp::rt::writeTrace(const RunPlan &plan,
                           std::vector<OperationTime> measured,
                           const std::string &path) {
  const pb::Program &program = plan.proto().programs(0);
  int64_t first = INT64_MAX;
  for (const OperationTime &time : measured) {
    if (time.region >= uint32_t(program.regions_size()) ||
        time.operation >=
            uint32_t(program.regions(int(time.region)).operations_size()))
      return Status::error("the backend timed an operation that the plan does "
                           "not have");
    first = std::min(first, time.startNs);
  }
  for (OperationTime &time : measured) {
    time.startNs -= first;
    time.endNs -= first;
  }
  Json events = Json::array();
  addLanes(events, plan, 1,
           "predicted: the plan's durations, nothing lost to others",
           predictTimes(plan.proto()));
  addLanes(events, plan, 2, "measured", measured);
  const Json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", events}};
  const std::string text = trace.dump() + "\n";
  GTP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  GTP_RETURN_IF_ERROR(file.write(text.data(), text.size()));
  return file.commit();
}
