//===- ScheduleText.cpp - Text form of schedule problems ------------------===//

#include "TextForm.h"

#include "gtp/Planning/Schedule.h"

namespace gtp::planning {

static std::string field(const char *key, int64_t value) {
  return std::string(" ") + key + "=" + std::to_string(value);
}

static std::string costFields(const TransferCost &cost) {
  return field("ns", cost.durationNs) + field("contention", cost.contentionNs) +
         field("slowdown", cost.slowdownPermille) +
         (cost.holdsMultiprocessors ? field("holds", 1) : "");
}

static TransferCost parseCost(TextLine &line) {
  TransferCost cost;
  cost.durationNs = line.integer("ns");
  cost.contentionNs = line.integerOr("contention", 0);
  cost.slowdownPermille = line.integerOr("slowdown", 0);
  cost.holdsMultiprocessors = line.integerOr("holds", 0) != 0;
  return cost;
}

/// The predictions of a `solution` line.
static constexpr struct {
  const char *key;
  int64_t Schedule::*value;
} kPredictions[] = {
    {"step", &Schedule::stepNs},
    {"compute", &Schedule::computeNs},
    {"stall", &Schedule::stallNs},
    {"contention", &Schedule::contentionNs},
    {"lower_bound", &Schedule::lowerBoundNs},
    {"peak", &Schedule::peakBytes},
    {"gathered_peak", &Schedule::gatheredPeakBytes},
    {"gradient_peak", &Schedule::gradientPeakBytes},
};

std::string ScheduleProblem::print(const Schedule *schedule) const {
  std::string text = "schedule";
  if (capBytes != kUnlimited)
    text += field("cap", capBytes);
  text += field("shared_link", sharedLinkPermille) + "\n";
  for (size_t i = 0; i < ops.size(); ++i)
    text += "op " + std::to_string(i) + field("ns", ops[i].durationNs) +
            (ops[i].crowdedPermille ? field("crowded", ops[i].crowdedPermille)
                                    : "") +
            textField("name", ops[i].name) + "\n";
  for (size_t i = 0; i < gathers.size(); ++i)
    text += "gather " + std::to_string(i) + field("bytes", gathers[i].bytes) +
            costFields(gathers[i].cost) + field("first", gathers[i].firstUse) +
            field("last", gathers[i].lastUse) +
            (gathers[i].pinned ? field("pinned", *gathers[i].pinned) : "") +
            (gathers[i].automatic ? field("automatic", 1) : "") +
            textField("name", gathers[i].name) + "\n";
  for (size_t i = 0; i < reductions.size(); ++i)
    text += "reduction " + std::to_string(i) +
            field("bytes", reductions[i].bytes) +
            costFields(reductions[i].cost) +
            field("producer", reductions[i].producer) +
            field("consumer", reductions[i].consumer) +
            textField("name", reductions[i].name) + "\n";
  // The profile where it changes.
  for (size_t i = 0; i < base.points.size(); ++i)
    if (base.points[i] != (i ? base.points[i - 1] : 0))
      text += "base " + std::to_string(i) + " " +
              std::to_string(base.points[i]) + "\n";
  if (!schedule)
    return text;
  text += "solution";
  for (const auto &prediction : kPredictions)
    text += field(prediction.key, schedule->*prediction.value);
  text += "\n";
  for (size_t i = 0; i < schedule->triggers.size(); ++i)
    text += "trigger " + std::to_string(i) + " " +
            std::to_string(schedule->triggers[i]) + "\n";
  for (size_t i = 0; i < schedule->releases.size(); ++i)
    text += "release " + std::to_string(i) + " " +
            std::to_string(schedule->releases[i]) + "\n";
  return text;
}

static uint32_t parseOpIndex(TextLine &line, const char *key) {
  int64_t value = line.integer(key);
  if (value > UINT32_MAX)
    line.fail("operation " + std::to_string(value) + " is too large");
  return static_cast<uint32_t>(value);
}

StatusOr<ParsedScheduleProblem> parseScheduleProblem(const std::string &text) {
  ParsedScheduleProblem parsed;
  ScheduleProblem &problem = parsed.problem;
  Schedule &schedule = parsed.schedule;
  std::vector<std::pair<int64_t, int64_t>> base; // point, bytes from there on
  bool started = false;
  for (TextLine &line : splitLines(text)) {
    const std::string &word = line.keyword();
    bool open = started && !parsed.solved;
    if (word == "schedule" && !started) {
      started = true;
      problem.capBytes = line.integerOr("cap", ScheduleProblem::kUnlimited);
      problem.sharedLinkPermille = line.integerOr("shared_link", 1000);
    } else if (word == "op" && open) {
      line.expectPosition(problem.ops.size());
      problem.ops.push_back({line.integer("ns"), line.text("name"),
                             line.integerOr("crowded", 0)});
    } else if (word == "gather" && open) {
      line.expectPosition(problem.gathers.size());
      Gather gather;
      gather.bytes = line.integer("bytes");
      gather.cost = parseCost(line);
      gather.firstUse = parseOpIndex(line, "first");
      gather.lastUse = parseOpIndex(line, "last");
      gather.name = line.text("name");
      if (line.has("pinned"))
        gather.pinned = line.integer("pinned", -1);
      gather.automatic = line.integerOr("automatic", 0) != 0;
      problem.gathers.push_back(gather);
    } else if (word == "reduction" && open) {
      line.expectPosition(problem.reductions.size());
      Reduction reduction;
      reduction.bytes = line.integer("bytes");
      reduction.cost = parseCost(line);
      reduction.producer = parseOpIndex(line, "producer");
      reduction.consumer = parseOpIndex(line, "consumer");
      reduction.name = line.text("name");
      problem.reductions.push_back(reduction);
    } else if (word == "base" && open) {
      int64_t point = line.position(0);
      if (point < 0 || (!base.empty() && point <= base.back().first))
        line.fail("points are not ascending");
      base.push_back({point, line.position(1)});
    } else if (word == "solution" && open) {
      parsed.solved = true;
      for (const auto &prediction : kPredictions)
        schedule.*prediction.value = line.integer(prediction.key);
    } else if (word == "trigger" && parsed.solved) {
      line.expectPosition(schedule.triggers.size());
      schedule.triggers.push_back(line.position(1));
    } else if (word == "release" && parsed.solved) {
      line.expectPosition(schedule.releases.size());
      schedule.releases.push_back(line.position(1));
    } else {
      line.fail("'" + word + "' is not expected here");
    }
    GTP_RETURN_IF_ERROR(line.finish());
  }
  if (!started)
    return Status::error("expected 'schedule' first");
  problem.base = BaseProfile(problem.ops.size());
  std::vector<int64_t> &points = problem.base.points;
  for (size_t i = 0; i < base.size(); ++i) {
    size_t end = i + 1 < base.size() ? base[i + 1].first : points.size();
    if (size_t(base[i].first) >= points.size())
      return Status::error("base profile has a point " +
                           std::to_string(base[i].first) + ", expected 0 to " +
                           std::to_string(points.size() - 1));
    std::fill(points.begin() + base[i].first,
              points.begin() + std::min(end, points.size()), base[i].second);
  }
  return parsed;
}

} // namespace gtp::planning
