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
  line["model_tflops"] = metrics.modelFlops / metrics.seconds / 1e12;
  line["peak_bytes"] = metrics.peakBytes;
  if (metrics.eval)
    addEval(line, *metrics.eval);
  if (metrics.skipped)
    line["skipped"] = true;
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
