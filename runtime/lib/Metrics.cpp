//===- Metrics.cpp - What a step is measured by, as lines of JSON ---------===//

#include "gtp-rt/Metrics.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>

using namespace gtp;
using namespace gtp::rt;

StatusOr<MetricsWriter> MetricsWriter::create(const std::string &path,
                                              bool unchecked) {
  MetricsWriter writer;
  writer.path = path;
  writer.unchecked = unchecked;
  writer.file.reset(std::fopen(path.c_str(), "we"));
  if (!writer.file)
    return Status::error(std::string("cannot write: ") + std::strerror(errno))
        .in(path);
  return writer;
}

/// What the backend knows.
static void addReport(nlohmann::ordered_json &line, const StepReport &report) {
  auto add = [&](const char *key, double value) {
    if (value > 0)
      line[key] = value;
  };
  add("device_ms", report.deviceSeconds * 1e3);
  add("launch_ms", report.launchSeconds * 1e3);
  if (report.deviceBytes)
    line["device_bytes"] = report.deviceBytes;
  if (report.graph) {
    line["graph_nodes"] = report.graph->nodes;
    line["capture_ms"] = report.graph->captureSeconds * 1e3;
    line["instantiate_ms"] = report.graph->instantiateSeconds * 1e3;
  }
}

static void addEval(nlohmann::ordered_json &line, const EvalMetrics &metrics) {
  line["eval_loss"] = metrics.loss;
  line["eval_count"] = metrics.count;
}

Status MetricsWriter::write(const StepMetrics &metrics) {
  nlohmann::ordered_json line;
  line["step"] = metrics.step;
  line["loss"] = metrics.loss; // null when it is not a number
  line["grad_norm"] = metrics.gradNorm;
  line["lr"] = metrics.learningRate;
  line["tokens"] = metrics.tokens;
  line["tokens_per_s"] = double(metrics.tokens) / metrics.seconds;
  line["step_ms"] = metrics.seconds * 1e3;
  line["wall_ms"] = metrics.wallSeconds * 1e3;
  line["model_tflops"] = metrics.modelFlops / metrics.seconds / 1e12;
  line["peak_bytes"] = metrics.peakBytes;
  addReport(line, metrics.report);
  if (metrics.eval)
    addEval(line, *metrics.eval);
  if (metrics.skipped)
    line["skipped"] = true;
  if (metrics.timing != Timing::None)
    line["timed"] =
        metrics.timing == Timing::AsPlanned ? "as planned" : "one by one";
  if (metrics.report.withoutCollectives)
    line["without_collectives"] = true;
  if (unchecked)
    line["unchecked"] = true;
  return writeLine(line.dump() + "\n");
}

Status MetricsWriter::write(const EvalMetrics &metrics) {
  nlohmann::ordered_json line;
  line["step"] = 0;
  addEval(line, metrics);
  if (unchecked)
    line["unchecked"] = true;
  return writeLine(line.dump() + "\n");
}

Status MetricsWriter::writeLine(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0)
    return Status::error(std::string("cannot write: ") + std::strerror(errno))
        .in(path);
  return Status::ok();
}
