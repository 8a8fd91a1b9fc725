//===- Evaluation.cpp - The loss of a text that is not trained on ---------===//

#include "gtp-rt/Evaluation.h"
#include "gtp-rt/TrainLoop.h"

#include <algorithm>

using namespace gtp;
using namespace gtp::rt;

StatusOr<EvalData> EvalData::open(TokenFileOptions options) {
  EvalData data;
  data.sequence = options.sequence;
  options.sequence = 1; // one token and its successor are enough
  GTP_ASSIGN_OR_RETURN(data.text, TokenFile::open(options));
  uint64_t end = data.text.size() - 1;
  while (data.counted < end && data.text.target(data.counted) == kIgnoredLabel)
    ++data.counted;
  if (data.counted == end)
    return Status::error("no token has a successor whose label counts (labels "
                         "of -100 and document separators do not); a loss "
                         "needs one")
        .in(options.labels.empty() ? options.data : options.labels);
  return data;
}

uint64_t EvalData::samples() const {
  // The first token is nobody's successor.
  uint64_t predicted = text.size() - 1;
  return predicted / sequence + (predicted % sequence != 0);
}

void EvalData::readSample(uint64_t index, int32_t *tokens,
                          int32_t *labels) const {
  std::fill_n(tokens, sequence, 0);
  std::fill_n(labels, sequence, kIgnoredLabel);
  if (index >= samples())
    return;
  uint64_t begin = index * sequence;
  uint64_t end = std::min(begin + sequence, text.size() - 1);
  for (uint64_t at = begin; at < end; ++at) {
    tokens[at - begin] = text.token(at);
    labels[at - begin] = text.target(at);
  }
}

StatusOr<uint64_t> gtp::rt::evalBatches(const RunPlan &plan,
                                        const EvalData &data, uint64_t limit) {
  uint64_t batch = plan.model().global_batch();
  uint64_t batches = data.samples() / batch + (data.samples() % batch != 0);
  uint64_t needed = data.firstCountedSample() / batch + 1;
  if (limit != 0 && limit < needed)
    return Status::error("--eval-steps=" + std::to_string(limit) +
                         ": reads no label that counts; the first is in "
                         "global batch " +
                         std::to_string(needed) + " of --eval-data");
  return limit == 0 ? batches : std::min(batches, limit);
}

/// Runs one batch; the plan's loss and count.
static Status runBatch(const RunPlan &plan, Backend &backend,
                       const EvalData &data, uint64_t batch, float &loss,
                       int64_t &count) {
  const RunPlan::Eval &eval = *plan.eval;
  uint64_t first = batch * plan.model().global_batch();
  std::vector<int32_t> tokens, labels;
  uint64_t end = backend.firstRank() + backend.localRanks();
  for (uint64_t rank = backend.firstRank(); rank < end; ++rank) {
    fillBatch(
        plan, plan.dataRank(rank),
        [&](uint64_t sample, int32_t *ids, int32_t *targets) {
          data.readSample(first + sample, ids, targets);
        },
        tokens, labels);
    uint64_t bytes = tokens.size() * sizeof(int32_t);
    GTP_RETURN_IF_ERROR(
        backend.writeBuffer(rank, eval.tokens, 0, tokens.data(), bytes));
    GTP_RETURN_IF_ERROR(
        backend.writeBuffer(rank, eval.labels, 0, labels.data(), bytes));
  }
  GTP_RETURN_IF_ERROR(backend.runStep(eval.program, nullptr));
  uint64_t rank = backend.firstRank();
  GTP_RETURN_IF_ERROR(
      backend.readBuffer(rank, eval.loss, 0, &loss, sizeof loss));
  return backend.readBuffer(rank, eval.count, 0, &count, sizeof count);
}

StatusOr<EvalMetrics> gtp::rt::evaluate(const RunPlan &plan, Backend &backend,
                                        const EvalData &data,
                                        uint64_t batches) {
  EvalMetrics metrics;
  double sum = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    float loss = 0;
    int64_t count = 0;
    Status ran = runBatch(plan, backend, data, batch, loss, count);
    GTP_RETURN_IF_ERROR(
        std::move(ran).in("evaluation, batch " + std::to_string(batch + 1)));
    if (count <= 0)
      continue; // no label of it counts
    sum += double(loss) * double(count);
    metrics.count += uint64_t(count);
  }
  metrics.loss = sum / double(metrics.count);
  return metrics;
}
