//===- MemoryText.cpp - Text form of memory problems ----------------------===//

#include "TextForm.h"

#include "gtp/Planning/Memory.h"

#include <sstream>

namespace gtp::planning {

std::string MemoryProblem::print(const Solution *solution) const {
  std::string text = "memory\n";
  for (size_t i = 0; i < regions.size(); ++i) {
    text += "region " + std::to_string(i) +
            " streams=" + std::to_string(regions[i].order.numStreams()) +
            (regions[i].repeated ? " repeated=1" : "") + "\n";
    text += printOps(regions[i].order);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const MemoryBuffer &buffer = buffers[i];
    std::string accesses;
    for (const MemoryAccess &access : buffer.accesses)
      accesses += (accesses.empty() ? "" : ";") +
                  std::to_string(access.region) + ":" + joinList(access.ops);
    text += "buffer " + std::to_string(i) +
            " size=" + std::to_string(buffer.size) + textField("at", accesses) +
            textField("persistent", buffer.persistent ? "1" : "") +
            textField("in", buffer.liveIn ? "1" : "") +
            textField("out", buffer.liveOut ? "1" : "") +
            textField("carried", buffer.carried ? "1" : "") +
            textField("name", buffer.name) + "\n";
  }
  if (!solution)
    return text;
  text += "solution arena=" + std::to_string(solution->arenaBytes) +
          " max_live=" + std::to_string(solution->maxLiveBytes) +
          textField("set", joinList(solution->maxLiveSet)) + "\n";
  for (size_t i = 0; i < solution->offsets.size(); ++i)
    text += "offset " + std::to_string(i) + " " +
            std::to_string(solution->offsets[i]) + "\n";
  return text;
}

/// "0:1,5;2:0".
static std::vector<MemoryAccess> parseAccesses(TextLine &line) {
  std::vector<MemoryAccess> accesses;
  std::istringstream stream(line.text("at"));
  std::string part;
  auto number = [&](const std::string &text) -> uint32_t {
    if (text.empty() || text.size() > 9 ||
        text.find_first_not_of("0123456789") != std::string::npos) {
      line.fail("'" + text + "' in 'at=' is not an operation or region");
      return 0;
    }
    return static_cast<uint32_t>(std::stoul(text));
  };
  while (std::getline(stream, part, ';')) {
    size_t colon = part.find(':');
    MemoryAccess access;
    access.region = number(part.substr(0, colon));
    std::istringstream ops(colon == std::string::npos ? ""
                                                      : part.substr(colon + 1));
    std::string op;
    while (std::getline(ops, op, ','))
      access.ops.push_back(number(op));
    accesses.push_back(std::move(access));
  }
  return accesses;
}

StatusOr<ParsedMemoryProblem> parseMemoryProblem(const std::string &text) {
  ParsedMemoryProblem parsed;
  MemoryProblem &problem = parsed.problem;
  bool started = false;
  for (TextLine &line : splitLines(text)) {
    const std::string &word = line.keyword();
    if (word == "memory" && !started) {
      started = true;
      GTP_RETURN_IF_ERROR(line.finish());
    } else if (word == "region" && started && !parsed.solved) {
      line.expectPosition(problem.regions.size());
      int64_t streams = line.integer("streams", 1);
      if (streams > 1024)
        line.fail("at most 1024 streams");
      bool repeated = line.integerOr("repeated", 0) != 0;
      GTP_RETURN_IF_ERROR(line.finish());
      problem.regions.push_back(
          {OrderGraph(static_cast<unsigned>(streams)), repeated});
    } else if (word == "op" && !problem.regions.empty() && !parsed.solved) {
      GTP_RETURN_IF_ERROR(parseOp(line, problem.regions.back().order));
    } else if (word == "buffer" && started && !parsed.solved) {
      line.expectPosition(problem.buffers.size());
      MemoryBuffer buffer;
      buffer.size = line.integer("size");
      buffer.accesses = parseAccesses(line);
      buffer.persistent = line.integerOr("persistent", 0) != 0;
      buffer.liveIn = line.integerOr("in", 0) != 0;
      buffer.liveOut = line.integerOr("out", 0) != 0;
      buffer.carried = line.integerOr("carried", 0) != 0;
      buffer.name = line.text("name");
      GTP_RETURN_IF_ERROR(line.finish());
      problem.buffers.push_back(std::move(buffer));
    } else if (word == "solution" && started && !parsed.solved) {
      parsed.solved = true;
      parsed.solution.arenaBytes = line.integer("arena");
      parsed.solution.maxLiveBytes = line.integer("max_live");
      parsed.solution.maxLiveSet = line.list("set");
      GTP_RETURN_IF_ERROR(line.finish());
    } else if (word == "offset" && parsed.solved) {
      line.expectPosition(parsed.solution.offsets.size());
      int64_t offset = line.position(1);
      if (offset < 0)
        line.fail("offset " + std::to_string(offset) + " is negative");
      GTP_RETURN_IF_ERROR(line.finish());
      parsed.solution.offsets.push_back(offset);
    } else {
      line.fail("'" + word + "' is not expected here");
      GTP_RETURN_IF_ERROR(line.finish());
    }
  }
  if (!started)
    return Status::error("expected 'memory' first");
  return parsed;
}

} // namespace gtp::planning
