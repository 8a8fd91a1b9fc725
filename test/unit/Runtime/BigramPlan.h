//===- BigramPlan.h - A whole training step without the compiler ----------===//

#ifndef GTP_TEST_UNIT_RUNTIME_BIGRAMPLAN_H
#define GTP_TEST_UNIT_RUNTIME_BIGRAMPLAN_H

#include "HostPlan.h"

#include "gtp/Plan/Checker.h"
#include "gtp/Plan/PlanFile.h"

namespace gtp::test {

/// One rank, one stream: logits are the row of a [V, V] table that the token
/// names, trained by SGD over two microbatches.
inline pb::Plan makeBigramPlan() {
  constexpr uint64_t kVocabulary = 128, kSequence = 16, kMicrobatches = 2,
                     kBatch = 4;
  HostPlan test;
  pb::Plan &plan = test.plan;
  plan.mutable_numerics()->set_gradient(pb::F32);
  plan.mutable_numerics()->set_wire(pb::F32);
  plan.mutable_numerics()->set_master(pb::F32);
  plan.mutable_numerics()->set_deterministic(true);
  plan.mutable_provenance()->set_family("bigram");
  pb::Model *model = plan.mutable_model();
  model->set_vocabulary(kVocabulary);
  model->set_sequence(kSequence);
  model->set_micro_batch(kBatch);
  model->set_microbatches(kMicrobatches);
  model->set_global_batch(kBatch * kMicrobatches);
  model->set_max_positions(kSequence);
  model->set_initializer_range(0.02);
  model->set_parameters(kVocabulary * kVocabulary);
  model->set_optimizer("sgd");
  model->set_loss("token-mean");

  constexpr uint64_t kIdBytes = 4 * kMicrobatches * kBatch * kSequence;
  constexpr uint64_t kTableBytes = 4 * kVocabulary * kVocabulary;
  constexpr uint64_t kLogitBytes = 4 * kBatch * kSequence * kVocabulary;
  uint32_t table = test.buffer(kTableBytes, pb::Buffer::PERSISTENT);
  uint32_t tokens = test.buffer(kIdBytes, pb::Buffer::INPUT);
  uint32_t labels = test.buffer(kIdBytes, pb::Buffer::INPUT);
  uint32_t hyper = test.buffer(32, pb::Buffer::INPUT);
  uint32_t loss = test.buffer(4, pb::Buffer::OUTPUT);
  uint32_t norm = test.buffer(4, pb::Buffer::OUTPUT);
  uint32_t count = test.buffer(8, pb::Buffer::OUTPUT);
  uint32_t one = test.buffer(4), scale = test.buffer(4),
           squares = test.buffer(8);
  uint32_t logits = test.buffer(kLogitBytes),
           dlogits = test.buffer(kLogitBytes);
  uint32_t dtable = test.buffer(kTableBytes);
  auto io = [&](pb::Io *io, const char *name, uint32_t buffer) {
    io->set_name(test.string(name));
    io->set_buffer(buffer);
  };
  pb::Program *program = plan.mutable_programs(0);
  io(program->add_inputs(), "tokens", tokens);
  io(program->add_inputs(), "labels", labels);
  io(program->add_inputs(), "hyper", hyper);
  io(program->add_outputs(), "loss", loss);
  io(program->add_outputs(), "grad_norm", norm);
  io(program->add_outputs(), "count", count);

  pb::LayoutDim *dim = plan.add_layouts()->add_dims();
  dim->set_logical(kVocabulary);
  plan.mutable_layouts(0)->add_dims()->set_logical(kVocabulary);
  pb::Parameter *parameter = plan.add_parameters();
  parameter->set_name(test.string("table.weight"));
  parameter->add_shape(kVocabulary);
  parameter->add_shape(kVocabulary);
  parameter->add_tensors()->set_name(parameter->name());
  parameter->mutable_tensors(0)->set_rows(kVocabulary);
  parameter->set_decay(true);
  parameter->set_uses(1);
  parameter->set_compute_buffer(table);
  parameter->set_gradient_buffer_plus1(dtable + 1);

  auto matrix = [&](uint32_t buffer) {
    return operand(buffer, pb::F32, {kVocabulary, kVocabulary});
  };
  auto activation = [&](uint32_t buffer) {
    return operand(buffer, pb::F32, {kBatch, kSequence, kVocabulary});
  };
  auto scalar = [&](uint32_t buffer) { return operand(buffer, pb::F32, {}); };
  auto ids = [&](uint32_t buffer) {
    pb::Operand ids = operand(buffer, pb::I32, {kBatch, kSequence});
    ids.set_iteration_stride(4 * kBatch * kSequence);
    return ids;
  };
  auto added = [](pb::Operand operand) {
    operand.set_accumulate(true);
    return operand;
  };
  pb::Operand counted = operand(count, pb::I64, {});
  pb::Operand sum = operand(squares, pb::F64, {});

  pb::Region *once = test.region(pb::Region::ONCE);
  test.kernel(
      once, 0, "count_labels",
      {operand(labels, pb::I32, {kMicrobatches, kBatch, kSequence}), counted});
  test.attribute(test.kernel(once, 0, "full", {scalar(one)}), "value")
      ->set_f(1);
  pb::Region *body = test.region(pb::Region::BODY, kMicrobatches);
  test.kernel(body, 0, "embedding",
              {ids(tokens), matrix(table), activation(logits)})
      ->set_parameter_plus1(1);
  test.kernel(body, 0, "cross_entropy",
              {activation(logits), ids(labels), counted, added(scalar(loss))});
  test.kernel(body, 0, "cross_entropy_grad",
              {activation(logits), ids(labels), counted, scalar(one),
               activation(dlogits)});
  test.kernel(body, 0, "embedding_grad",
              {activation(dlogits), ids(tokens), added(matrix(dtable))})
      ->set_parameter_plus1(1);
  pb::Region *update = test.region(pb::Region::UPDATE);
  test.kernel(update, 0, "sum_squares", {matrix(dtable), sum});
  test.attribute(test.kernel(update, 0, "clip_scale",
                             {sum, scalar(norm), scalar(scale)}),
                 "max_norm")
      ->set_f(0);
  pb::Kernel *sgd = test.kernel(update, 0, "sgd",
                                {matrix(table), matrix(dtable),
                                 operand(hyper, pb::F32, {8}), scalar(scale)});
  sgd->set_parameter_plus1(1);
  test.attribute(sgd, "decay")->set_i(1);

  pb::Claims *claims = plan.mutable_claims();
  claims->set_persistent_bytes(kTableBytes);
  claims->set_arena_bytes(plan.memory(0).size());
  plan.set_schema_version(plan::kSchemaVersion);
  plan::CheckReport report;
  (void)plan::checkPlan(plan, &report); // counts what is claimed next
  claims->set_max_live_bytes(report.liveBytes);
  claims->set_gathered_peak_bytes(report.gatheredBytes);
  return plan;
}

} // namespace gtp::test

#endif // GTP_TEST_UNIT_RUNTIME_BIGRAMPLAN_H
