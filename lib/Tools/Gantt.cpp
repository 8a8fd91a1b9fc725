//===- Gantt.cpp - A schedule as text -------------------------------------===//

#include "SchedulePictures.h"

#include "gtp/Analysis/FitReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace gtp;
using namespace gtp::plan;
using llvm::StringRef;

namespace {

constexpr int64_t kColumns = 100;
constexpr size_t kLabel = 9;
/// Stalls that are worth a line each.
constexpr size_t kStalls = 5;

/// "12.3 us".
std::string formatTime(int64_t ns) {
  static constexpr const char *kUnits[] = {"ns", "us", "ms", "s"};
  double value = static_cast<double>(ns);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1000;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::format(unit == 0 || value >= 99.95 ? "%.0f "
                         : value >= 9.995            ? "%.1f "
                                                     : "%.2f ",
                         value)
         << kUnits[unit];
  return text;
}

/// A part of a run that is drawn on all columns.
struct Window {
  int64_t start, end;

  int64_t column(int64_t time) const {
    int64_t length = std::max<int64_t>(end - start, 1);
    return static_cast<int64_t>(static_cast<double>(time - start) /
                                static_cast<double>(length) * kColumns);
  }
  int64_t timeOf(int64_t column) const {
    return start + static_cast<int64_t>(static_cast<double>(end - start) *
                                        static_cast<double>(column) / kColumns);
  }
};

/// A layer, or another named part: all up to the first number, "model.layers.3"
/// of "model.layers.3.mlp.down", else at most two components.
StringRef partOf(StringRef source) {
  size_t dots = 0, second = source.size();
  for (size_t begin = 0; begin < source.size();) {
    size_t end = std::min(source.find('.', begin), source.size());
    unsigned number;
    if (begin > 0 && !source.slice(begin, end).getAsInteger(10, number))
      return source.take_front(end);
    if (++dots == 2)
      second = end;
    begin = end + 1;
  }
  return source.take_front(second);
}

/// The number of a part that repeats; none for others.
std::optional<unsigned> numberOf(StringRef part) {
  unsigned number;
  StringRef last = part.rsplit('.').second;
  return last.empty() || last.getAsInteger(10, number) ? std::nullopt
                                                       : std::optional(number);
}

/// Consecutive kernels of one part.
struct Section {
  StringRef part;
  int64_t start, end;
};

class Drawing {
public:
  Drawing(const pb::Plan &plan, const PlanTimeline &timeline,
          llvm::raw_ostream &stream)
      : plan(plan), timeline(timeline), out(stream) {}
  void draw();

private:
  const pb::Operation &operation(const PlanTimeline::Run &run,
                                 uint32_t index) const {
    return plan.programs(0)
        .regions(static_cast<int>(run.region))
        .operations(static_cast<int>(index));
  }
  bool isCompute(const pb::Operation &op) const {
    return plan.streams(static_cast<int>(op.stream())).kind() ==
           pb::Stream::COMPUTE;
  }
  void row(StringRef label, const std::string &text) {
    std::string line = label.str();
    line.resize(std::max(kLabel, line.size()), ' ');
    out << StringRef(line += text).rtrim() << "\n";
  }
  /// A name without what those of all layers begin with ("model.").
  StringRef shortName(StringRef name) const {
    name.consume_front(prefix);
    return name;
  }
  void findPrefix();
  void summary();
  void ruler(Window window);
  void parts(Window window, const std::vector<Section> &sections);
  void load(const PlanTimeline::Run &run, int stream, Window window);
  void memory(Window window);
  void closeUp(const PlanTimeline::Run &run, const Section &section,
               StringRef what);
  void boxes(const PlanTimeline::Run &run, int stream, Window window,
             StringRef part);
  void stalls(const PlanTimeline::Run &run);
  std::vector<Section> sectionsOf(const PlanTimeline::Run &run) const;
  std::string describe(const pb::Operation &op) const;
  void drawRun(const PlanTimeline::Run &run);

  const pb::Plan &plan;
  const PlanTimeline &timeline;
  llvm::raw_ostream &out;
  std::string prefix;
};

} // namespace

std::string Drawing::describe(const pb::Operation &op) const {
  std::string text = operationName(plan, op);
  std::string about = operationParameter(plan, op);
  if (!op.has_collective() || about.empty())
    about = operationSource(plan, op);
  return about.empty() ? text : text + " " + shortName(about).str();
}

void Drawing::findPrefix() {
  for (const pb::Region &region : plan.programs(0).regions())
    for (const pb::Operation &op : region.operations()) {
      StringRef part = partOf(operationSource(plan, op));
      if (!numberOf(part))
        continue;
      // "model.layers.3": all but the last two.
      size_t layer = part.rsplit('.').first.rfind('.');
      if (layer != StringRef::npos)
        prefix = part.take_front(layer + 1).str();
      return;
    }
}

//===----------------------------------------------------------------------===//
// The whole run
//===----------------------------------------------------------------------===//

void Drawing::ruler(Window window) {
  constexpr int64_t kStep = 20;
  std::string text;
  for (int64_t column = 0; column < kColumns; column += kStep) {
    text.resize(static_cast<size_t>(column), ' ');
    text += "|" + formatTime(window.timeOf(column) - window.start);
  }
  row("", text);
}

std::vector<Section> Drawing::sectionsOf(const PlanTimeline::Run &run) const {
  std::vector<Section> sections;
  for (const PlanTimeline::Span &span : run.spans) {
    const pb::Operation &op = operation(run, span.operation);
    if (!isCompute(op))
      continue;
    StringRef part = partOf(operationSource(plan, op));
    if (sections.empty() || sections.back().part != part)
      sections.push_back({part, span.start, span.end});
    else
      sections.back().end = span.end;
  }
  return sections;
}

/// A line of parts; layers that are too narrow share a label.
void Drawing::parts(Window window, const std::vector<Section> &sections) {
  std::string text;
  for (size_t i = 0; i < sections.size();) {
    int64_t begin = window.column(sections[i].start);
    std::optional<unsigned> first = numberOf(sections[i].part);
    auto taken = static_cast<int64_t>(text.size());
    if (begin < taken) {
      if (!first || window.column(sections[i].end) <= taken) {
        ++i;
        continue;
      }
      begin = taken;
    }
    std::string label =
        first ? std::to_string(*first) : shortName(sections[i].part).str();
    size_t last = i;
    auto width = [&] { return window.column(sections[last].end) - begin; };
    while (first && width() < static_cast<int64_t>(label.size()) + 2 &&
           last + 1 < sections.size() && numberOf(sections[last + 1].part)) {
      ++last;
      label = std::to_string(*first) + "-" +
              std::to_string(*numberOf(sections[last].part));
    }
    text.resize(static_cast<size_t>(begin), ' ');
    auto room = static_cast<size_t>(std::max<int64_t>(width(), 1));
    text += ("|" + label).substr(0, room);
    text.resize(static_cast<size_t>(begin) + room, ' ');
    i = last + 1;
  }
  row("layer", text);
}

/// How busy a stream is, a column a share of the window.
void Drawing::load(const PlanTimeline::Run &run, int stream, Window window) {
  std::vector<double> busy(kColumns);
  for (const PlanTimeline::Span &span : run.spans) {
    if (static_cast<int>(operation(run, span.operation).stream()) != stream)
      continue;
    for (int64_t c = std::max<int64_t>(window.column(span.start), 0);
         c < kColumns && window.timeOf(c) < span.end; ++c) {
      int64_t low = window.timeOf(c), high = window.timeOf(c + 1);
      int64_t shared = std::min(high, span.end) - std::max(low, span.start);
      if (shared > 0)
        busy[static_cast<size_t>(c)] +=
            static_cast<double>(shared) / static_cast<double>(high - low);
    }
  }
  std::string text;
  bool computes = plan.streams(stream).kind() == pb::Stream::COMPUTE;
  for (double share : busy)
    text += share > 0.95   ? "\u2588"
            : share > 0.6  ? "\u2593"
            : share > 0.3  ? "\u2592"
            : share > 0.01 ? "\u2591"
            : computes     ? "."
                           : " ";
  row(streamName(plan, stream), text);
}

void Drawing::memory(Window window) {
  int64_t constant = constantBytes(plan), peak = 1;
  for (const PlanTimeline::Level &level : timeline.memory)
    peak = std::max(peak, level.bytes);
  static constexpr const char *kBars[] = {" ",      "\u2581", "\u2582",
                                          "\u2583", "\u2584", "\u2585",
                                          "\u2586", "\u2587", "\u2588"};
  std::string text;
  size_t next = 0;
  int64_t current = 0;
  for (int64_t c = 0; c < kColumns; ++c) {
    int64_t most = 0;
    // What holds at the start of the column counts as much as what comes in it.
    while (next < timeline.memory.size() &&
           timeline.memory[next].time <= window.timeOf(c))
      current = timeline.memory[next++].bytes;
    most = current;
    while (next < timeline.memory.size() &&
           timeline.memory[next].time < window.timeOf(c + 1)) {
      current = timeline.memory[next++].bytes;
      most = std::max(most, current);
    }
    auto bar = static_cast<size_t>(
        (static_cast<double>(most) / static_cast<double>(peak)) * 8 + 0.5);
    text += kBars[std::min<size_t>(bar, 8)];
  }
  row("memory", text);
  out << llvm::left_justify("", kLabel) << "(a full bar is "
      << formatBytes(peak) << ", above the " << formatBytes(constant)
      << " that always hold)\n";
}

//===----------------------------------------------------------------------===//
// One layer
//===----------------------------------------------------------------------===//

/// Each operation of a stream as a box with as much of its name as fits.
void Drawing::boxes(const PlanTimeline::Run &run, int stream, Window window,
                    StringRef part) {
  std::string text;
  for (const PlanTimeline::Span &span : run.spans) {
    const pb::Operation &op = operation(run, span.operation);
    if (static_cast<int>(op.stream()) != stream || span.end <= window.start ||
        span.start >= window.end || span.end == span.start)
      continue;
    auto begin = static_cast<size_t>(std::max<int64_t>(
        window.column(std::max(span.start, window.start)), 0));
    auto end = static_cast<size_t>(
        std::min<int64_t>(window.column(span.end), kColumns));
    if (begin < text.size())
      begin = text.size(); // the box before it takes at least one column
    if (begin >= kColumns || (end <= begin && begin > 0 && text.size() > begin))
      continue;
    text.resize(begin, ' ');
    std::string label = operationName(plan, op);
    std::string parameter = operationParameter(plan, op);
    if (op.has_collective() && !parameter.empty()) {
      // Of the layer itself without its number, of another one with it.
      StringRef rest = parameter;
      if (rest.consume_front(part) && rest.consume_front("."))
        label = rest.str();
      else
        label = shortName(parameter).str();
    }
    size_t room = end > begin ? end - begin : 1;
    text += ("|" + label).substr(0, room);
    text.resize(begin + room, '-');
  }
  row(streamName(plan, stream), text);
}

void Drawing::closeUp(const PlanTimeline::Run &run, const Section &section,
                      StringRef what) {
  Window window{section.start, section.end};
  out << "\n"
      << shortName(section.part) << ", " << what << ": "
      << formatTime(section.end - section.start) << ", from "
      << formatTime(section.start - run.start) << "\n";
  ruler(window);
  for (int stream = 0; stream < plan.streams_size(); ++stream)
    boxes(run, stream, window, section.part);
}

//===----------------------------------------------------------------------===//
// Stalls
//===----------------------------------------------------------------------===//

void Drawing::stalls(const PlanTimeline::Run &run) {
  std::vector<PlanTimeline::Span> found;
  for (const PlanTimeline::Span &span : run.spans)
    if (span.idle > 0 && isCompute(operation(run, span.operation)))
      found.push_back(span);
  // At its end a region waits for what other streams still have to do.
  const PlanTimeline::Span *last = nullptr;
  int64_t computed = run.start, sum = 0;
  for (const PlanTimeline::Span &span : run.spans) {
    if (isCompute(operation(run, span.operation)))
      computed = std::max(computed, span.end);
    if (!last || span.end >= last->end)
      last = &span;
  }
  int64_t tail = run.end - computed;
  if (found.empty() && tail == 0) {
    out << "the compute stream never waits\n";
    return;
  }
  llvm::sort(
      found, [](const PlanTimeline::Span &a, const PlanTimeline::Span &b) {
        return std::tie(b.idle, a.operation) < std::tie(a.idle, b.operation);
      });
  for (const PlanTimeline::Span &span : found)
    sum += span.idle;
  out << "the compute stream waits " << found.size()
      << (found.size() == 1 ? " time, " : " times, ") << formatTime(sum);
  if (tail > 0)
    out << ", and " << formatTime(tail) << " at the end for "
        << describe(operation(run, last->operation));
  out << "\n";
  for (const PlanTimeline::Span &span :
       llvm::ArrayRef(found).take_front(std::min(found.size(), kStalls))) {
    out << "  " << llvm::right_justify(formatTime(span.idle), 8) << " before "
        << describe(operation(run, span.operation));
    if (span.waitedFor)
      out << ", for " << describe(operation(run, *span.waitedFor));
    out << "\n";
  }
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

void Drawing::drawRun(const PlanTimeline::Run &run) {
  out << "\n"
      << runName(plan, run) << ": " << formatTime(run.end - run.start) << "\n";
  if (run.end == run.start)
    return;
  Window window{run.start, run.end};
  std::vector<Section> sections = sectionsOf(run);
  ruler(window);
  parts(window, sections);
  for (int stream = 0; stream < plan.streams_size(); ++stream)
    load(run, stream, window);
  memory(window);
  stalls(run);

  // A layer in the middle of those that repeat most often, forward and back.
  std::map<StringRef, std::vector<size_t>> repeated; // by name without number
  for (size_t i = 0; i < sections.size(); ++i)
    if (numberOf(sections[i].part))
      repeated[sections[i].part.rsplit('.').first].push_back(i);
  const std::vector<size_t> *most = nullptr;
  for (const auto &[name, indices] : repeated)
    if (!most || indices.size() > most->size())
      most = &indices;
  // Outside of the body no section is worth a closer look.
  if (!most || plan.programs(0).regions(static_cast<int>(run.region)).kind() !=
                   pb::Region::BODY)
    return;
  unsigned last = 0;
  for (size_t index : *most)
    last = std::max(last, *numberOf(sections[index].part));
  const Section *forward = nullptr, *backward = nullptr;
  for (size_t index : *most)
    if (*numberOf(sections[index].part) == last / 2) {
      if (!forward)
        forward = &sections[index];
      else
        backward = &sections[index];
    }
  if (forward)
    closeUp(run, *forward, "forward");
  if (backward)
    closeUp(run, *backward, "backward");
}

void Drawing::summary() {
  int64_t kernels = 0, idle = 0, slowed = 0;
  for (const PlanTimeline::Run &run : timeline.runs) {
    auto times = static_cast<int64_t>(run.alike);
    int64_t busy = 0;
    for (const PlanTimeline::Span &span : run.spans) {
      const pb::Operation &op = operation(run, span.operation);
      if (!isCompute(op))
        continue;
      busy += span.end - span.start;
      kernels += op.duration() * times;
      slowed += (span.end - span.start - op.duration()) * times;
    }
    idle += (run.end - run.start - busy) * times;
  }
  out << plan.provenance().source() << ", mesh";
  for (const pb::MeshAxis &axis : plan.mesh().axes())
    out << " " << axis.name() << "=" << axis.degree();
  out << ", target " << plan.provenance().target() << ": a step of "
      << formatTime(timeline.stepNs) << " as predicted\n"
      << "kernels " << formatTime(kernels) << ", compute stream idle "
      << formatTime(idle) << ", kernels slowed by collectives "
      << formatTime(slowed) << "\n";
}

void Drawing::draw() {
  findPrefix();
  summary();
  for (const PlanTimeline::Run &run : timeline.runs)
    drawRun(run);
}

void gtp::printGantt(const pb::Plan &plan, const PlanTimeline &timeline,
                     llvm::raw_ostream &stream) {
  Drawing(plan, timeline, stream).draw();
}
