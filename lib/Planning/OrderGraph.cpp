//===- OrderGraph.cpp - Vector clocks and the transitive reduction --------===//

#include "gtp/Planning/OrderGraph.h"

#include "TextForm.h"

#include <algorithm>

namespace gtp::planning {

OpIndex OrderGraph::addOp(unsigned stream, const std::vector<OpIndex> &after) {
  assert(stream < numStreams() && "no such stream");
  OpIndex op = size();
  std::vector<OpIndex> &chain = streams[stream];
  OpIndex previous = chain.empty() ? op : chain.back();
  ops.push_back({stream, static_cast<uint32_t>(chain.size()), previous, after});
  chain.push_back(op);

  unsigned width = numStreams();
  clocks.resize(clocks.size() + width);
  uint32_t *row = &clocks[size_t(op) * width];
  auto join = [&](OpIndex earlier) {
    const uint32_t *other = &clocks[size_t(earlier) * width];
    for (unsigned s = 0; s < width; ++s)
      row[s] = std::max(row[s], other[s]);
  };
  if (previous != op)
    join(previous);
  for (OpIndex earlier : after) {
    assert(earlier < op && "edges run from earlier to later operations");
    join(earlier);
  }
  row[stream] = ops[op].position + 1;
  return op;
}

Status EventProblem::check() const {
  for (OpIndex op = 0; op < order.size(); ++op)
    for (OpIndex earlier : order.after(op))
      if (earlier >= op)
        return Status::error(
            "operation " + std::to_string(op) + " comes after operation " +
            std::to_string(earlier) + ", which is not an earlier one");
  return Status::ok();
}

EventProblem::Solution EventProblem::solve() const {
  Solution solution;
  solution.waits.resize(order.size());
  constexpr OpIndex kNone = UINT32_MAX;
  std::vector<OpIndex> latest(order.numStreams());
  for (OpIndex op = 0; op < order.size(); ++op) {
    // Of each stream only the latest operation can matter, and of those the
    // ones that neither the stream's previous operation nor another of them
    // implies.
    std::fill(latest.begin(), latest.end(), kNone);
    bool any = false;
    for (OpIndex earlier : order.after(op)) {
      unsigned s = order.stream(earlier);
      if (s == order.stream(op))
        continue;
      if (latest[s] == kNone || latest[s] < earlier)
        latest[s] = earlier;
      any = true;
    }
    if (!any)
      continue;
    OpIndex previous = order.previous(op);
    for (OpIndex candidate : latest) {
      if (candidate == kNone)
        continue;
      bool implied = previous != op && order.happensBefore(candidate, previous);
      for (OpIndex other : latest)
        implied |= other != kNone && order.happensBefore(candidate, other);
      if (!implied)
        solution.waits[op].push_back(candidate);
    }
    std::sort(solution.waits[op].begin(), solution.waits[op].end());
  }
  return solution;
}

Status EventProblem::verify(const Solution &solution) const {
  if (solution.waits.size() != order.size())
    return Status::error(
        "solution has " + std::to_string(solution.waits.size()) +
        " operations, expected " + std::to_string(order.size()));
  OrderGraph rebuilt(order.numStreams());
  for (OpIndex op = 0; op < order.size(); ++op) {
    const std::vector<OpIndex> &waits = solution.waits[op];
    std::string name = "operation " + std::to_string(op);
    for (size_t i = 0; i < waits.size(); ++i) {
      std::string other = "operation " + std::to_string(waits[i]);
      if (waits[i] >= op)
        return Status::error(name + " waits for " + other +
                             ", which is not an earlier one");
      if (i && waits[i] <= waits[i - 1])
        return Status::error("waits of " + name + " are not ascending");
      if (order.stream(waits[i]) == order.stream(op))
        return Status::error(name + " waits for " + other +
                             " of its own stream");
      if (!order.happensBefore(waits[i], op))
        return Status::error(name + " waits for " + other +
                             ", which no edge orders before it");
    }
    rebuilt.addOp(order.stream(op), waits);
    for (OpIndex earlier : order.after(op))
      if (!rebuilt.happensBefore(earlier, op))
        return Status::error(name + " must come after operation " +
                             std::to_string(earlier) +
                             ", which its waits do not imply");
    for (OpIndex wait : waits) {
      bool implied = rebuilt.previous(op) != op &&
                     rebuilt.happensBefore(wait, rebuilt.previous(op));
      for (OpIndex other : waits)
        implied |= rebuilt.happensBefore(wait, other);
      if (implied)
        return Status::error(name + " need not wait for operation " +
                             std::to_string(wait) +
                             ": its other waits imply it");
    }
  }
  return Status::ok();
}

EventProblem::Counts EventProblem::naiveCounts() const {
  Counts counts;
  std::vector<bool> awaited(order.size());
  for (OpIndex op = 0; op < order.size(); ++op) {
    std::vector<OpIndex> sources = order.after(op);
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    for (OpIndex earlier : sources) {
      if (order.stream(earlier) == order.stream(op))
        continue;
      ++counts.waits;
      awaited[earlier] = true;
    }
  }
  counts.events = std::count(awaited.begin(), awaited.end(), true);
  return counts;
}

EventProblem::Counts EventProblem::counts(const Solution &solution) {
  Counts counts;
  std::vector<bool> awaited(solution.waits.size());
  for (const std::vector<OpIndex> &waits : solution.waits) {
    counts.waits += waits.size();
    for (OpIndex op : waits)
      awaited[op] = true;
  }
  counts.events = std::count(awaited.begin(), awaited.end(), true);
  return counts;
}

std::string EventProblem::print(const Solution *solution) const {
  std::string text =
      "order streams=" + std::to_string(order.numStreams()) + "\n";
  text += printOps(order);
  if (!solution)
    return text;
  text += "solution\n";
  for (size_t op = 0; op < solution->waits.size(); ++op)
    if (!solution->waits[op].empty())
      text += "waits " + std::to_string(op) +
              textField("on", joinList(solution->waits[op])) + "\n";
  return text;
}

StatusOr<ParsedEventProblem> parseEventProblem(const std::string &text) {
  ParsedEventProblem parsed{EventProblem(OrderGraph(1)), false, {}};
  bool started = false;
  for (TextLine &line : splitLines(text)) {
    if (line.keyword() == "order" && !started) {
      started = true;
      int64_t streams = line.integer("streams", 1);
      if (streams > 1024)
        line.fail("at most 1024 streams");
      GTP_RETURN_IF_ERROR(line.finish());
      parsed.problem.order = OrderGraph(static_cast<unsigned>(streams));
    } else if (line.keyword() == "op" && started && !parsed.solved) {
      GTP_RETURN_IF_ERROR(parseOp(line, parsed.problem.order));
    } else if (line.keyword() == "solution" && started && !parsed.solved) {
      parsed.solved = true;
      parsed.solution.waits.resize(parsed.problem.order.size());
      GTP_RETURN_IF_ERROR(line.finish());
    } else if (line.keyword() == "waits" && parsed.solved) {
      int64_t op = line.position(0);
      std::vector<OpIndex> on = line.list("on");
      if (op < 0 || op >= int64_t(parsed.problem.order.size()))
        line.fail("no operation " + std::to_string(op));
      GTP_RETURN_IF_ERROR(line.finish());
      parsed.solution.waits[op] = std::move(on);
    } else {
      line.fail("'" + line.keyword() + "' is not expected here");
      GTP_RETURN_IF_ERROR(line.finish());
    }
  }
  if (!started)
    return Status::error("expected 'order streams=N' first");
  return parsed;
}

} // namespace gtp::planning
