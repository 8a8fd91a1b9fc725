//===- Trace.cpp - A schedule as a Perfetto trace -------------------------===//

#include "SchedulePictures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace gtp;
using namespace gtp::plan;

std::string gtp::streamName(const pb::Plan &plan, int stream) {
  pb::Stream::Kind kind = plan.streams(stream).kind();
  int same = 0;
  for (const pb::Stream &other : plan.streams())
    same += other.kind() == kind;
  std::string name = llvm::StringRef(pb::Stream::Kind_Name(kind)).lower();
  return same > 1 ? name + " " + std::to_string(stream) : name;
}

std::string gtp::runName(const pb::Plan &plan, const PlanTimeline::Run &run) {
  const pb::Region &region =
      plan.programs(0).regions(static_cast<int>(run.region));
  std::string name =
      llvm::StringRef(pb::Region::Kind_Name(region.kind())).lower();
  if (region.kind() != pb::Region::BODY)
    return name;
  if (run.alike == 1)
    return name + ", microbatch " + std::to_string(run.iteration + 1) + " of " +
           std::to_string(region.repeat());
  return name + ", microbatches " + std::to_string(run.iteration + 1) + " to " +
         std::to_string(run.iteration + run.alike) +
         ", which are alike: shown once";
}

int64_t gtp::constantBytes(const pb::Plan &plan) {
  int64_t bytes = 0;
  for (const pb::Buffer &buffer : plan.buffers())
    if (buffer.kind() != pb::Buffer::TRANSIENT)
      bytes += static_cast<int64_t>(buffer.size());
  return bytes;
}

namespace {

class Writer {
public:
  Writer(const pb::Plan &plan, const PlanTimeline &timeline,
         llvm::raw_ostream &stream)
      : plan(plan), timeline(timeline), json(stream, /*IndentSize=*/1) {}
  void write();

private:
  static constexpr int kProcess = 1;
  /// Lanes count from 1, the step's own first.
  static int laneOf(uint32_t stream) { return static_cast<int>(stream) + 2; }
  static constexpr int kStepLane = 1;

  void event(llvm::StringRef phase, llvm::StringRef name, int lane,
             llvm::function_ref<void()> rest);
  /// Microseconds with the nanoseconds behind the point.
  void time(llvm::StringRef key, int64_t ns) {
    json.attributeBegin(key);
    json.rawValue([&](llvm::raw_ostream &os) {
      os << ns / 1000 << llvm::format(".%03d", static_cast<int>(ns % 1000));
    });
    json.attributeEnd();
  }
  void metadata(llvm::StringRef name, int lane, llvm::StringRef value);
  void sortIndex(int lane);
  void run(const PlanTimeline::Run &run);
  void slice(const pb::Operation &op, const PlanTimeline::Span &span);

  const pb::Plan &plan;
  const PlanTimeline &timeline;
  llvm::json::OStream json;
  int64_t flows = 0;
};

} // namespace

void Writer::event(llvm::StringRef phase, llvm::StringRef name, int lane,
                   llvm::function_ref<void()> rest) {
  json.object([&] {
    json.attribute("ph", phase);
    json.attribute("name", name);
    json.attribute("pid", kProcess);
    json.attribute("tid", lane);
    rest();
  });
}

void Writer::metadata(llvm::StringRef name, int lane, llvm::StringRef value) {
  event("M", name, lane, [&] {
    json.attributeObject("args", [&] { json.attribute("name", value); });
  });
}

void Writer::sortIndex(int lane) {
  event("M", "thread_sort_index", lane, [&] {
    json.attributeObject("args", [&] { json.attribute("sort_index", lane); });
  });
}

void Writer::slice(const pb::Operation &op, const PlanTimeline::Span &span) {
  std::string parameter = operationParameter(plan, op);
  std::string name = operationName(plan, op);
  const std::string &source = operationSource(plan, op);
  std::string title = name;
  if (op.has_collective() && !parameter.empty())
    title += " " + parameter;
  else if (!source.empty())
    title += " " + source;
  event("X", title, laneOf(op.stream()), [&] {
    json.attribute("cat", op.has_collective() ? "collective" : "kernel");
    time("ts", span.start);
    time("dur", span.end - span.start);
    json.attributeObject("args", [&] {
      json.attribute("operation", span.operation);
      json.attribute("kind", name);
      if (!source.empty())
        json.attribute("source", source);
      if (!parameter.empty())
        json.attribute("parameter", parameter);
      if (op.has_collective())
        json.attribute("transport", pb::Collective::Transport_Name(
                                        op.collective().transport()));
      json.attribute("alone_ns", op.duration());
      if (span.idle > 0)
        json.attribute("stream_idle_before_ns", span.idle);
    });
  });
}

void Writer::run(const PlanTimeline::Run &run) {
  const pb::Region &region =
      plan.programs(0).regions(static_cast<int>(run.region));
  event("X", runName(plan, run), kStepLane, [&] {
    json.attribute("cat", "region");
    time("ts", run.start);
    time("dur", run.end - run.start);
  });
  struct Recorded {
    int64_t time;
    uint32_t stream;
  };
  std::vector<std::optional<Recorded>> events(region.events());
  auto operationOf =
      [&](const PlanTimeline::Span &span) -> const pb::Operation & {
    return region.operations(static_cast<int>(span.operation));
  };
  for (const PlanTimeline::Span &span : run.spans) {
    const pb::Operation &op = operationOf(span);
    slice(op, span);
    // An arrow starts inside of the slice that it leaves.
    if (op.event_plus1())
      events[op.event_plus1() - 1] =
          Recorded{std::max(span.start, span.end - 1), op.stream()};
  }
  for (const PlanTimeline::Span &span : run.spans) {
    const pb::Operation &op = operationOf(span);
    for (const pb::Wait &wait : op.waits()) {
      if (wait.distance() || !events[wait.event()])
        continue;
      const Recorded &from = *events[wait.event()];
      auto arrow = [&](llvm::StringRef phase, uint32_t stream, int64_t at) {
        event(phase, "wait", laneOf(stream), [&] {
          json.attribute("cat", "wait");
          json.attribute("id", flows);
          if (phase == "f")
            json.attribute("bp", "e"); // the slice around it, not the next
          time("ts", at);
        });
      };
      arrow("s", from.stream, from.time);
      arrow("f", op.stream(), span.start);
      ++flows;
    }
  }
}

void Writer::write() {
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeObject("otherData", [&] {
      json.attribute("source", plan.provenance().source());
      json.attribute("target", plan.provenance().target());
      json.attribute("predicted_step_ns", timeline.stepNs);
    });
    json.attributeArray("traceEvents", [&] {
      metadata("process_name", 0, "a rank, as predicted");
      metadata("thread_name", kStepLane, "step");
      sortIndex(kStepLane);
      for (int i = 0; i < plan.streams_size(); ++i) {
        int lane = laneOf(static_cast<uint32_t>(i));
        metadata("thread_name", lane, streamName(plan, i));
        sortIndex(lane);
      }
      for (const PlanTimeline::Run &each : timeline.runs)
        run(each);
      int64_t constant = constantBytes(plan);
      auto counter = [&](int64_t at, int64_t bytes) {
        event("C", "live bytes", 0, [&] {
          time("ts", at);
          json.attributeObject("args", [&] { json.attribute("bytes", bytes); });
        });
      };
      if (timeline.memory.empty() || timeline.memory.front().time > 0)
        counter(0, constant);
      for (const PlanTimeline::Level &level : timeline.memory)
        counter(level.time, constant + level.bytes);
    });
  });
}

void gtp::printTrace(const pb::Plan &plan, const PlanTimeline &timeline,
                     llvm::raw_ostream &stream) {
  Writer(plan, timeline, stream).write();
  stream << "\n";
}
