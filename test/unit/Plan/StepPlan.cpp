//===- StepPlan.cpp - A small training step as a plan ---------------------===//

#include "PlanBuilder.h"

#include "gtp/Plan/Layout.h"
#include "gtp/Plan/Operand.h"

#include <algorithm>

using namespace gtp::plan;
using namespace gtp::plan::test;

namespace {

constexpr uint64_t vocabulary = 10, hidden = 6, sequence = 4, batch = 2;

/// A parameter and the buffers of one of its uses.
struct Weight {
  int index = 0;
  std::vector<uint64_t> shape, shard;
  uint64_t gathered = 0; ///< rows
  uint32_t compute = 0, master = 0, remainder = 0;
  uint32_t m = 0, v = 0, gradient = 0;
};

class StepBuilder {
public:
  explicit StepBuilder(const StepOptions &options) : o(options) {}
  pb::Plan build();

private:
  Weight parameter(const std::string &name, std::vector<uint64_t> shape,
                   bool sharded, uint32_t uses);
  int gather(const Weight &weight, uint32_t full);
  int reduceMatrix(const Weight &weight, uint32_t full, int after,
                   bool add = false);
  int clearTail(const Weight &weight, uint32_t full);
  void once();
  void body();
  void update();
  pb::Operand microbatch(uint32_t buffer) const;
  uint32_t scratch(const std::string &name, uint64_t size, int over = -1) {
    return b.buffer(name, pb::Buffer::TRANSIENT, size, over);
  }
  void named(const std::string &source) {
    b.last().set_source(b.string(source));
  }

  StepOptions o;
  PlanBuilder b;
  uint32_t dpAxis = 0, gtpAxis = 0;
  uint32_t compute = 0, gathers = 0, reduces = 0;
  uint32_t gatherComm = 0, scatterComm = 0, dpComm = 0, allComm = 0,
           gtpScalarComm = 0;
  uint32_t tokens = 0, labels = 0, hyper = 0, loss = 0, norm = 0, count = 0;
  uint32_t dloss = 0, lossSum = 0;
  pb::DType type = pb::F32;
  Weight table, gain, head;
};

Weight StepBuilder::parameter(const std::string &name,
                              std::vector<uint64_t> shape, bool sharded,
                              uint32_t uses) {
  Weight weight;
  weight.index = b.plan.parameters_size();
  weight.shape = shape;
  pb::Parameter *p = b.plan.add_parameters();
  p->set_name(b.string(name));
  p->mutable_shape()->Add(shape.begin(), shape.end());
  p->set_uses(uses);
  p->set_layout(static_cast<uint32_t>(b.plan.layouts_size()));
  pb::Layout *layout = b.plan.add_layouts();
  for (size_t i = 0; i < shape.size(); ++i) {
    pb::LayoutDim *dim = layout->add_dims();
    dim->set_logical(shape[i]);
    if (i == 0 && sharded) {
      dim->add_storage_axes(gtpAxis);
      dim->set_granule(2);
    }
  }
  pb::CheckpointTensor *tensor = p->add_tensors();
  tensor->set_name(b.string(name));
  tensor->set_rows(shape[0]);
  weight.shard = shardShape(b.plan.mesh(), *layout);
  weight.gathered = gatheredSize(b.plan.mesh(), layout->dims(0));
  uint64_t elements = 1;
  for (uint64_t size : weight.shard)
    elements *= size;
  auto persistent = [&](const char *what, pb::DType dtype) {
    return b.buffer(name + what, pb::Buffer::PERSISTENT,
                    elements * dtypeSize(dtype));
  };
  weight.compute = persistent(".compute", type);
  weight.master = weight.compute;
  p->set_compute_buffer(weight.compute);
  if (o.split) {
    weight.remainder = persistent(".remainder", pb::I16);
    p->set_remainder_buffer_plus1(weight.remainder + 1);
  } else if (o.bf16) {
    weight.master = persistent(".master", pb::F32);
    p->set_master_buffer_plus1(weight.master + 1);
  }
  weight.m = persistent(".m", pb::F32);
  weight.v = persistent(".v", pb::F32);
  p->add_state_buffers(weight.m);
  p->add_state_buffers(weight.v);
  weight.gradient = scratch(name + ".gradient", elements * 4);
  p->set_gradient_buffer_plus1(weight.gradient + 1);
  return weight;
}

pb::Operand StepBuilder::microbatch(uint32_t buffer) const {
  pb::Operand operand = b.operand(buffer, pb::I32, {batch, sequence});
  operand.set_iteration_stride(batch * sequence * 4);
  return operand;
}

int StepBuilder::gather(const Weight &weight, uint32_t full) {
  return b.collective(gathers, pb::Collective::ALL_GATHER, gatherComm,
                      b.operand(weight.compute, type, weight.shard),
                      b.operand(full, type, {weight.gathered, hidden}),
                      weight.index);
}

int StepBuilder::clearTail(const Weight &weight, uint32_t full) {
  if (weight.gathered == weight.shape[0])
    return -1;
  return b.fill(compute, b.operand(full, pb::F32,
                                   {weight.gathered - weight.shape[0], hidden},
                                   weight.shape[0] * hidden * 4));
}

/// Scatters over gtp, then sums over dp; the last of the two accumulates.
int StepBuilder::reduceMatrix(const Weight &weight, uint32_t full, int after,
                              bool add) {
  std::string name =
      b.plan.strings(static_cast<int>(b.plan.parameters(weight.index).name())) +
      (add ? ".second" : "");
  pb::Operand sum = b.operand(weight.gradient, pb::F32, weight.shard);
  pb::Operand source = b.operand(full, pb::F32, {weight.gathered, hidden});
  sum.set_accumulate(o.microbatches > 1 && !o.tied);
  bool direct = o.dp == 1 && !o.tied;
  pb::Operand scattered = direct
                              ? sum
                              : b.operand(scratch(name + ".scattered",
                                                  weight.shard[0] * hidden * 4),
                                          pb::F32, weight.shard);
  int scatter = b.collective(reduces, pb::Collective::REDUCE_SCATTER,
                             scatterComm, source, scattered, weight.index);
  named(name + ".scatter");
  b.wait(after);
  if (o.dp > 1) {
    pb::Operand target = o.tied ? scattered : sum;
    b.collective(reduces, pb::Collective::ALL_REDUCE, dpComm, scattered, target,
                 weight.index);
    named(name + ".reduce");
  }
  return scatter;
}

void StepBuilder::once() {
  b.region(pb::Region::ONCE, 1);
  uint64_t k = o.microbatches;
  uint32_t mine = scratch("count.mine", 8);
  int counted = b.kernel(compute, "count_labels",
                         {b.operand(labels, pb::I32, {k, batch, sequence}),
                          b.operand(mine, pb::I64, {})});
  b.collective(reduces, pb::Collective::ALL_REDUCE, allComm,
               b.operand(mine, pb::I64, {}), b.operand(count, pb::I64, {}));
  named("count.reduce");
  b.wait(counted);
  dloss = scratch("dloss", 4);
  b.kernel(compute, "full", {b.operand(dloss, pb::F32, {})});
  b.attribute("value", 1.0);
  lossSum = scratch("loss.sum", 4);
}

void StepBuilder::body() {
  b.region(pb::Region::BODY, o.microbatches);
  std::vector<uint64_t> rows = {batch, sequence, hidden};
  std::vector<uint64_t> wide = {batch, sequence, vocabulary};
  uint64_t size = dtypeSize(type), n = batch * sequence;
  auto activation = [&](const std::string &name) {
    return scratch(name, n * hidden * size);
  };
  uint64_t fullBytes = table.gathered * hidden;
  uint32_t tableFull = scratch("table.full", fullBytes * size);
  uint32_t headFull = o.tied
                          ? tableFull
                          : scratch("head.full", fullBytes * size,
                                    o.reuse ? static_cast<int>(tableFull) : -1);
  uint32_t x = activation("x"), y = activation("y"), dx = activation("dx"),
           dy = activation("dy");
  uint32_t logits = scratch("logits", n * vocabulary * size);
  uint32_t dlogits = scratch("dlogits", n * vocabulary * size);
  uint32_t dhead = scratch("head.dfull", fullBytes * 4);
  uint32_t dtable = scratch("table.dfull", fullBytes * 4,
                            o.reuse ? static_cast<int>(dhead) : -1);
  uint32_t dgain = scratch("gain.partial", hidden * 4);

  auto weightOperand = [&](uint32_t buffer) {
    return b.operand(buffer, type, {vocabulary, hidden});
  };
  int gathered = gather(table, tableFull);
  named("table.gather");
  int embedded = b.kernel(
      compute, "embedding",
      {microbatch(tokens), weightOperand(tableFull), b.operand(x, type, rows)},
      table.index);
  b.wait(gathered);
  b.kernel(compute, "rms_norm",
           {b.operand(x, type, rows), b.operand(gain.compute, type, {hidden}),
            b.operand(y, type, rows)},
           gain.index);
  b.attribute("eps", 1e-5);
  // A long body: every sum in a buffer of its own, laid over an older one, and
  // every fourth on another stream.
  std::vector<uint32_t> ring;
  std::vector<int> done;
  for (int i = 0; i < o.chain; ++i) {
    constexpr int slots = 16;
    std::string name = "chain" + std::to_string(i);
    uint32_t out = scratch(
        name, n * hidden * size,
        i < slots ? -1
                  : static_cast<int>(ring[static_cast<size_t>(i - slots)]));
    auto input = [&](int back) {
      return b.operand(i < back ? x : ring[static_cast<size_t>(i - back)], type,
                       rows);
    };
    uint32_t on = i % 4 == 3 ? gathers : compute;
    done.push_back(
        b.kernel(on, "add", {input(1), input(2), b.operand(out, type, rows)}));
    if (i > 0 && (i % 4 == 3 || i % 4 == 0))
      b.wait(done[static_cast<size_t>(i - 1)]);
    else if (i == 0)
      b.wait(embedded);
    ring.push_back(out);
  }
  const Weight &last = o.tied ? table : head;
  if (!o.tied) {
    // The gather is behind the norm in the list: it waits for the embedding.
    int headGathered = gather(head, headFull);
    named("head.gather");
    if (o.reuse)
      b.wait(embedded);
    b.kernel(compute, "linear",
             {b.operand(y, type, rows), weightOperand(headFull),
              b.operand(logits, type, wide)},
             last.index);
    b.wait(headGathered);
  } else {
    b.kernel(compute, "linear",
             {b.operand(y, type, rows), weightOperand(headFull),
              b.operand(logits, type, wide)},
             last.index);
  }
  pb::Operand lossOut = b.operand(lossSum, pb::F32, {});
  lossOut.set_accumulate(o.microbatches > 1);
  b.kernel(compute, "cross_entropy",
           {b.operand(logits, type, wide), microbatch(labels),
            b.operand(count, pb::I64, {}), lossOut});
  b.kernel(compute, "cross_entropy_grad",
           {b.operand(logits, type, wide), microbatch(labels),
            b.operand(count, pb::I64, {}), b.operand(dloss, pb::F32, {}),
            b.operand(dlogits, type, wide)});
  b.kernel(compute, "linear_dgrad",
           {b.operand(dlogits, type, wide), weightOperand(headFull),
            b.operand(dy, type, rows)},
           last.index);
  int headDone =
      b.kernel(compute, "linear_wgrad",
               {b.operand(dlogits, type, wide), b.operand(y, type, rows),
                b.operand(dhead, pb::F32, {vocabulary, hidden})},
               last.index);
  headDone = std::max(headDone, clearTail(last, dhead));
  int headScattered = reduceMatrix(last, dhead, headDone);
  b.kernel(compute, "rms_norm_grad",
           {b.operand(dy, type, rows), b.operand(x, type, rows),
            b.operand(gain.compute, type, {hidden}), b.operand(dx, type, rows),
            b.operand(dgain, pb::F32, {hidden})},
           gain.index);
  b.attribute("eps", 1e-5);
  int gainDone = b.lastRegion().operations_size() - 1;
  pb::Operand gainSum = b.operand(gain.gradient, pb::F32, {hidden});
  gainSum.set_accumulate(o.microbatches > 1);
  b.collective(reduces, pb::Collective::ALL_REDUCE, allComm,
               b.operand(dgain, pb::F32, {hidden}), gainSum, gain.index);
  named("gain.reduce");
  b.wait(gainDone);
  int tableDone = b.kernel(compute, "embedding_grad",
                           {b.operand(dx, type, rows), microbatch(tokens),
                            b.operand(dtable, pb::F32, {vocabulary, hidden})},
                           table.index);
  if (o.reuse)
    b.wait(headScattered);
  tableDone = std::max(tableDone, clearTail(table, dtable));
  reduceMatrix(table, dtable, tableDone, /*add=*/true);
  if (o.tied) {
    // The two contributions of the microbatch, then what came before.
    int reduced = b.lastRegion().operations_size() - 1;
    int other = reduced;
    while (b.plan.strings(
               static_cast<int>(b.lastRegion().operations(other).source())) !=
           (o.dp > 1 ? "table.reduce" : "table.scatter"))
      --other;
    auto result = [&](int index) {
      return b.lastRegion().operations(index).collective().destinations(0);
    };
    pb::Operand sum = b.operand(table.gradient, pb::F32, table.shard);
    sum.set_accumulate(o.microbatches > 1);
    b.kernel(compute, "add", {result(other), result(reduced), sum});
    b.wait(reduced);
  }
}

void StepBuilder::update() {
  b.region(pb::Region::UPDATE, 1);
  b.collective(reduces, pb::Collective::ALL_REDUCE, allComm,
               b.operand(lossSum, pb::F32, {}), b.operand(loss, pb::F32, {}));
  named("loss.reduce");
  std::vector<Weight> weights = {table, gain};
  if (!o.tied)
    weights.push_back(head);
  std::vector<pb::Operand> squares;
  for (const Weight &weight : weights) {
    pb::Operand square = b.operand(
        scratch("square" + std::to_string(weight.index), 8), pb::F64, {});
    b.kernel(compute, "sum_squares",
             {b.operand(weight.gradient, pb::F32, weight.shard), square});
    if (weight.index == gain.index) {
      pb::Operand first = b.operand(scratch("square.first", 8), pb::F64, {});
      b.kernel(compute, "keep_first", {square, first});
      b.attribute("axes_mask", static_cast<int64_t>(1) << gtpAxis);
      square = first;
    }
    squares.push_back(square);
  }
  uint32_t mine = scratch("square.mine", 8), all = scratch("square.all", 8);
  squares.push_back(b.operand(mine, pb::F64, {}));
  int added = b.kernel(compute, "add", squares);
  named("norm.add");
  int reduced =
      b.collective(reduces, pb::Collective::ALL_REDUCE, gtpScalarComm,
                   b.operand(mine, pb::F64, {}), b.operand(all, pb::F64, {}));
  named("norm.reduce");
  b.wait(added);
  uint32_t scale = scratch("scale", 4);
  b.kernel(compute, "clip_scale",
           {b.operand(all, pb::F64, {}), b.operand(norm, pb::F32, {}),
            b.operand(scale, pb::F32, {})});
  b.attribute("max_norm", 1.0);
  b.wait(reduced);
  for (const Weight &weight : weights) {
    auto f32 = [&](uint32_t buffer) {
      return b.operand(buffer, pb::F32, weight.shard);
    };
    std::vector<pb::Operand> operands = {f32(weight.master)};
    if (o.split)
      operands = {b.operand(weight.compute, type, weight.shard),
                  b.operand(weight.remainder, pb::I16, weight.shard)};
    operands.insert(operands.end(),
                    {f32(weight.m), f32(weight.v), f32(weight.gradient),
                     b.operand(hyper, pb::F32, {8}),
                     b.operand(scale, pb::F32, {})});
    if (o.bf16 && !o.split)
      operands.push_back(b.operand(weight.compute, type, weight.shard));
    b.kernel(compute, o.split ? "adamw_split" : "adamw", operands,
             weight.index);
    named("adamw." + std::to_string(weight.index));
    b.attribute("decay", static_cast<int64_t>(weight.shape.size() > 1));
  }
}

pb::Plan StepBuilder::build() {
  dpAxis = b.axis("dp", o.dp);
  gtpAxis = b.axis("gtp", o.gtp);
  type = o.bf16 ? pb::BF16 : pb::F32;
  pb::Numerics *numerics = b.plan.mutable_numerics();
  numerics->set_compute(type);
  numerics->set_gradient(pb::F32);
  numerics->set_wire(pb::F32);
  numerics->set_master(pb::F32);
  numerics->set_deterministic(true);
  pb::Model *model = b.plan.mutable_model();
  model->set_vocabulary(vocabulary);
  model->set_sequence(sequence);
  model->set_micro_batch(batch);
  model->set_microbatches(o.microbatches);
  model->set_global_batch(batch * o.microbatches * o.dp * o.gtp);
  model->set_optimizer("adamw");
  model->set_clip_norm(1);

  compute = b.stream(pb::Stream::COMPUTE);
  gathers = b.stream(pb::Stream::GATHER);
  reduces = b.stream(pb::Stream::REDUCE);
  gatherComm = b.communicator({gtpAxis}, pb::Communicator::GATHER);
  scatterComm = b.communicator({gtpAxis}, pb::Communicator::REDUCE);
  dpComm = b.communicator({dpAxis}, pb::Communicator::REDUCE);
  allComm = b.communicator({dpAxis, gtpAxis}, pb::Communicator::SCALAR);
  gtpScalarComm = b.communicator({gtpAxis}, pb::Communicator::SCALAR);

  table = parameter("table", {vocabulary, hidden}, true, o.tied ? 2 : 1);
  gain = parameter("gain", {hidden}, false, 1);
  if (!o.tied)
    head = parameter("head", {vocabulary, hidden}, true, 1);
  uint64_t ids = o.microbatches * batch * sequence * 4;
  tokens = b.buffer("tokens", pb::Buffer::INPUT, ids);
  labels = b.buffer("labels", pb::Buffer::INPUT, ids);
  hyper = b.buffer("hyper", pb::Buffer::INPUT, 32);
  loss = b.buffer("loss", pb::Buffer::OUTPUT, 4);
  norm = b.buffer("grad_norm", pb::Buffer::OUTPUT, 4);
  count = b.buffer("count", pb::Buffer::OUTPUT, 8);
  pb::Program *program = b.plan.mutable_programs(0);
  for (uint32_t input : {tokens, labels, hyper}) {
    pb::Io *io = program->add_inputs();
    io->set_buffer(input);
    io->set_name(b.plan.buffers(static_cast<int>(input)).name());
  }
  for (uint32_t output : {loss, norm, count}) {
    pb::Io *io = program->add_outputs();
    io->set_buffer(output);
    io->set_name(b.plan.buffers(static_cast<int>(output)).name());
  }
  once();
  body();
  update();
  return b.finish();
}

} // namespace

pb::Plan gtp::plan::test::buildStep(const StepOptions &options) {
  return StepBuilder(options).build();
}
