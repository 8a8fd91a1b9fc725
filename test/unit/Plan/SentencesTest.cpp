//===- SentencesTest.cpp - What the checker says of broken plans ----------===//
//
// A row a sentence of the rules that a plan breaks by itself: its tables, its
// operations, its claims. CheckerTest.cpp has the rules about what operations
// do to each other.
//
//===----------------------------------------------------------------------===//

#include "CheckerTest.h"

#include "gtp/Plan/KernelCall.h"
#include "gtp/Plan/Layout.h"

using namespace gtp;
using namespace gtp::plan;
using namespace gtp::plan::test;

namespace {

struct Row {
  std::function<void(pb::Plan &)> change;
  const char *rule;
  const char *sentence;
};

void expectRows(const std::vector<Row> &rows) {
  for (const Row &row : rows) {
    SCOPED_TRACE(row.sentence);
    expectBroken(row.change, row.rule, row.sentence);
  }
}

pb::Operation &op(pb::Plan &plan, const char *name) {
  return *findOperation(plan, name);
}

/// The first fill and the first copy: neither is in every step.
pb::Fill &fill(pb::Plan &plan) {
  pb::Operation &operation = op(plan, "head.gather");
  pb::Operand destination = operation.collective().destinations(0);
  *operation.mutable_fill()->mutable_destination() = destination;
  return *operation.mutable_fill();
}
pb::Copy &copy(pb::Plan &plan) {
  skip(plan, "gain.reduce");
  return *op(plan, "gain.reduce").mutable_copy();
}

/// Makes the linear one with a bias, which is the start of its weight.
pb::Kernel &addBias(pb::Plan &plan) {
  pb::Kernel &kernel = *op(plan, "linear").mutable_kernel();
  plan.add_strings("linear_bias");
  kernel.set_name(static_cast<uint32_t>(plan.strings_size() - 1));
  *kernel.add_operands() = kernel.operands(2);
  pb::Operand &bias = *kernel.mutable_operands(2);
  bias = kernel.operands(1);
  bias.mutable_dims()->RemoveLast();
  return kernel;
}

/// Makes an operation a call of attention_grad whose sums have no order.
void makeFast(pb::Plan &plan, const char *name) {
  pb::Kernel &kernel = *op(plan, name).mutable_kernel();
  pb::Operand place = kernel.operands(0);
  kernel.clear_operands();
  kernel.clear_attributes();
  auto string = [&](const char *text) {
    plan.add_strings(text);
    return static_cast<uint32_t>(plan.strings_size() - 1);
  };
  kernel.set_name(string("attention_grad"));
  kernel.set_version(1);
  for (size_t i = 0; i < 10; ++i) {
    pb::Operand *operand = kernel.add_operands();
    *operand = place;
    operand->set_dtype(i == 9 ? pb::U8 : pb::F32);
    operand->clear_dims();
    operand->clear_pitch();
    for (size_t rank = i == 9 ? 1 : 3; rank > 0; --rank)
      operand->add_dims(1);
  }
  for (const char *attribute : {"heads", "kv_heads", "causal", "fast"}) {
    pb::Attribute *value = kernel.add_attributes();
    value->set_name(string(attribute));
    value->set_i(1);
  }
  pb::Attribute *scale = kernel.add_attributes();
  scale->set_name(string("scale"));
  scale->set_f(1);
}

constexpr uint64_t kHuge = uint64_t(1) << 61;

} // namespace

TEST(Sentences, TablesOfThePlan) {
  expectRows({
      {[](pb::Plan &plan) {
         for (int i = 0; i < 70; ++i) {
           pb::MeshAxis *axis = plan.mutable_mesh()->add_axes();
           axis->set_name("axis" + std::to_string(i));
           axis->set_degree(1);
         }
       },
       "structure", "mesh has 72 axes, at most"},
      {[](pb::Plan &plan) {
         plan.mutable_mesh()->mutable_axes(0)->set_name("gtp");
       },
       "structure", "mesh names axis 'gtp' twice"},
      {[](pb::Plan &plan) { plan.mutable_model()->set_global_batch(5); },
       "structure",
       "model: global batch 5 must be data ranks 2 x micro batch 2 x "
       "microbatches 1"},
      {[](pb::Plan &plan) { plan.mutable_model()->set_sequence(0); },
       "structure",
       "model: global batch 4 x 0 tokens must be positive and fit"},
      {[](pb::Plan &plan) { plan.mutable_model()->set_vocabulary(0); },
       "structure", "model: vocabulary 0 must be in 1 .. 2^31-1"},
      {[](pb::Plan &plan) { plan.mutable_memory(0)->set_alignment(255); },
       "structure",
       "memory 0 has alignment 255, expected a power of two in 256 .. 2^32"},
      {[](pb::Plan &plan) {
         for (int i = plan.buffers_size(); i < 1100000; ++i)
           plan.add_buffers();
       },
       "structure", "plan has 1100000 buffers, at most"},
      {[](pb::Plan &plan) { plan.mutable_numerics()->set_compute(pb::BF16); },
       "structure",
       "has no master buffer, but its compute type bf16 is not the master's "
       "f32"},
      {[](pb::Plan &plan) { plan.mutable_parameters(0)->set_shape(0, 11); },
       "structure", "has 11 elements in dimension 0, its layout "},
      {[](pb::Plan &plan) {
         pb::Program *program = plan.mutable_programs(0);
         *program->add_regions() = program->regions(1);
         program->mutable_regions()->SwapElements(2, 3);
       },
       "structure", "program has 2 body regions, expected one"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->mutable_dims(0)->add_compute_axes(7);
       },
       "structure", "layout names axis 7 of a mesh with 2"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->mutable_dims(0)->add_compute_axes(1);
       },
       "structure", "layout uses axis 'gtp' twice"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->mutable_dims(0)->add_segments()->set_size(3);
       },
       "structure",
       "layout dimension of 10 elements has segments that do not add up to it"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->mutable_dims(0)->set_logical(kHuge);
         plan.mutable_layouts(0)->mutable_dims(1)->set_logical(kHuge);
       },
       "structure", "layout is too large"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->set_partial(pb::Layout::SUM);
       },
       "structure", "layout must have partial axes exactly when it is partial"},
  });
}

TEST(Sentences, NumbersOfTheModel) {
  expectRows({
      {[](pb::Plan &plan) { plan.mutable_numerics()->set_wire(pb::I32); },
       "structure", "numerics: wire type is i32, expected a float type"},
      {[](pb::Plan &plan) { plan.mutable_model()->set_clip_norm(-1); },
       "structure",
       "model: clip norm and initializer range must be finite and not "
       "negative"},
      {[](pb::Plan &plan) { plan.clear_memory(); }, "structure",
       "plan has no memory region, expected the arena"},
      {[](pb::Plan &plan) { plan.mutable_buffers(0)->set_name(9999); },
       "structure", "has no valid name"},
      {[](pb::Plan &plan) {
         plan.mutable_buffers(1)->set_offset(plan.buffers(0).offset());
       },
       "structure", "; persistent, input and output buffers must be apart"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->set_partial(
             static_cast<pb::Layout::Partial>(9));
       },
       "structure", "has an unknown kind of partial"},
      {[](pb::Plan &plan) {
         pb::Segment *segment =
             plan.mutable_layouts(0)->mutable_dims(0)->add_segments();
         segment->set_size(10);
         segment->set_name(9999);
       },
       "structure", "has a segment without a valid name"},
  });
}

TEST(Sentences, TablesOfParametersAndStreams) {
  auto parameter = [](pb::Plan &plan) { return plan.mutable_parameters(0); };
  auto dim = [](pb::Plan &plan, int index) {
    return plan.mutable_layouts(0)->mutable_dims(index);
  };
  auto program = [](pb::Plan &plan) { return plan.mutable_programs(0); };
  expectRows({
      {[=](pb::Plan &plan) {
         parameter(plan)->set_init(static_cast<pb::Parameter::Init>(9));
       },
       "structure", "has an unknown initialization"},
      {[=](pb::Plan &plan) { parameter(plan)->add_tied_names(9999); },
       "structure", "has a tied name that is no string"},
      {[=](pb::Plan &plan) { parameter(plan)->clear_gradient_buffer_plus1(); },
       "structure", "is trained but names no gradient buffer"},
      {[=](pb::Plan &plan) { parameter(plan)->set_uses(0); }, "structure",
       "has no use"},
      {[=](pb::Plan &plan) { parameter(plan)->add_shape(1); }, "structure",
       "has 3 dimensions and a layout of 2"},
      {[](pb::Plan &plan) {
         plan.mutable_layouts(0)->set_partial(pb::Layout::SUM);
         plan.mutable_layouts(0)->add_partial_axes(0);
       },
       "structure", "has a partial layout"},
      {[=](pb::Plan &plan) {
         dim(plan, 0)->clear_storage_axes();
         dim(plan, 1)->add_storage_axes(1);
       },
       "unsupported",
       "is stored in pieces of a dimension that is not its first"},
      {[=](pb::Plan &plan) {
         plan.mutable_buffers(
                 static_cast<int>(parameter(plan)->compute_buffer()))
             ->set_kind(pb::Buffer::TRANSIENT);
       },
       "structure", "'table.compute' is of kind TRANSIENT"},
      {[](pb::Plan &plan) {
         plan.mutable_communicators(0)->set_purpose(
             static_cast<pb::Communicator::Purpose>(9));
       },
       "structure", "communicator 0 has an unknown purpose or policy"},
      {[](pb::Plan &plan) { plan.mutable_communicators(0)->add_axes(0); },
       "structure", "communicator 0 must name its axes in mesh order"},
      {[](pb::Plan &plan) { plan.clear_streams(); }, "structure",
       "plan has 0 streams, expected 1 to "},
      {[=](pb::Plan &plan) { program(plan)->set_kind(pb::Program::EVAL); },
       "unsupported", "program 0 must be a training step"},
      {[=](pb::Plan &plan) { program(plan)->set_rotated(true); }, "unsupported",
       "rotated programs are not supported yet"},
      {[=](pb::Plan &plan) {
         program(plan)->mutable_regions(2)->set_kind(pb::Region::DRAIN);
       },
       "unsupported", "region 2: drain regions are not supported yet"},
      {[=](pb::Plan &plan) {
         program(plan)->mutable_regions()->SwapElements(0, 2);
       },
       "structure", ": the order of regions is once, body, update"},
  });
  // Axes of degree 1 cut nothing.
  expectBroken([=](pb::Plan &plan) { dim(plan, 0)->add_compute_axes(0); },
               "unsupported", "is cut by a compute axis", mesh(2, 2));
  expectBroken([=](pb::Plan &plan) { dim(plan, 0)->add_storage_axes(0); },
               "unsupported", "is stored in pieces over several axes",
               mesh(2, 2));
}

TEST(Sentences, OperationsByThemselves) {
  expectRows({
      {[](pb::Plan &plan) { op(plan, "rms_norm").set_source(9999); },
       "structure", "its source is no string of the plan"},
      {[](pb::Plan &plan) {
         op(plan, "rms_norm").set_when(static_cast<pb::Operation::When>(9));
       },
       "structure", "has an unknown condition"},
      {[](pb::Plan &plan) {
         copy(plan).mutable_source()->set_dtype(pb::DTYPE_INVALID);
       },
       "structure", "has no valid type, no elements or too many"},
      {[](pb::Plan &plan) { copy(plan).mutable_source()->set_pitch(1); },
       "structure", "has a pitch below its last dimension"},
      {[](pb::Plan &plan) {
         copy(plan).mutable_source()->add_rank_strides()->set_axis(5);
       },
       "structure", "has a stride of an axis that does not exist"},
      {[](pb::Plan &plan) {
         pb::Operand *source = copy(plan).mutable_source();
         source->add_rank_strides();
         source->add_rank_strides();
       },
       "structure", "has two strides of one axis"},
      {[](pb::Plan &plan) {
         pb::Operand *source = copy(plan).mutable_source();
         source->set_dims(0, 1);
         source->set_offset(2);
       },
       "structure", "is not aligned to its type"},
      {[](pb::Plan &plan) {
         copy(plan).mutable_destination()->set_buffer(
             bufferNamed(plan, "hyper"));
       },
       "structure", "writes input buffer 14 'hyper'"},
      {[](pb::Plan &plan) {
         op(plan, "rms_norm").mutable_kernel()->set_algorithm(9999);
       },
       "structure", "its algorithm is no string of the plan"},
      {[](pb::Plan &plan) {
         op(plan, "rms_norm").mutable_kernel()->clear_parameter_plus1();
       },
       "structure", "kernel rms_norm must name the parameter that it is about"},
      {[](pb::Plan &plan) {
         op(plan, "rms_norm").mutable_kernel()->set_second_parameter_plus1(1);
       },
       "structure",
       "kernel rms_norm names a second parameter, and does not read two "
       "weights"},
      {[](pb::Plan &plan) { addBias(plan); }, "structure",
       "kernel linear_bias must name the parameter of its second weight"},
      {[](pb::Plan &plan) { addBias(plan).set_second_parameter_plus1(99); },
       "structure", "names parameter 98, which does not exist"},
      {[](pb::Plan &plan) { addBias(plan).set_second_parameter_plus1(2); },
       "weight-version", "reads 'bias' in"},
      {[](pb::Plan &plan) {
         collective(plan, "gain.reduce")
             ->set_kind(static_cast<pb::Collective::Kind>(9));
       },
       "structure", "has an unknown kind, reduction, order or transport"},
      {[](pb::Plan &plan) {
         pb::Operand *source =
             collective(plan, "table.gather")->mutable_sources(0);
         source->set_dims(0, 2);
         source->set_pitch(7);
       },
       "structure", "operands of a collective must be dense"},
      {[](pb::Plan &plan) {
         collective(plan, "table.gather")
             ->mutable_destinations(0)
             ->set_accumulate(true);
       },
       "structure", "only the destination of a reduction may accumulate"},
      {[](pb::Plan &plan) {
         collective(plan, "gain.reduce")
             ->mutable_sources(0)
             ->set_dtype(pb::I32);
       },
       "structure", "must have one type"},
      {[](pb::Plan &plan) {
         collective(plan, "gain.reduce")->set_wire(pb::F64);
       },
       "structure",
       "sends f32 as f64 accumulated in f32, which is no combination that "
       "collectives have"},
      {[](pb::Plan &plan) {
         collective(plan, "gain.reduce")->mutable_sources(0)->set_dims(0, 5);
       },
       "structure",
       "in a group of 2: the destination's elements must be the source's"},
      {[](pb::Plan &plan) {
         copy(plan).mutable_destination()->set_accumulate(true);
       },
       "structure", "a copy cannot accumulate"},
      {[](pb::Plan &plan) { copy(plan).mutable_source()->set_dims(0, 5); },
       "structure", "which must have its type and rows"},
      {[](pb::Plan &plan) {
         fill(plan).mutable_destination()->set_accumulate(true);
       },
       "structure",
       "the destination of a fill must be dense and cannot accumulate"},
      {[](pb::Plan &plan) { fill(plan).set_byte_value(256); }, "structure",
       "fills with byte 256, expected 0 to 255"},
  });
}

TEST(Sentences, CallsOfKernels) {
  auto kernel = [](pb::Plan &plan) -> pb::Kernel & {
    return *op(plan, "rms_norm").mutable_kernel();
  };
  expectRows({
      {[=](pb::Plan &plan) { kernel(plan).set_name(9999); }, "structure",
       "kernel name is string 9999 of"},
      {[=](pb::Plan &plan) { kernel(plan).mutable_operands()->RemoveLast(); },
       "structure", "kernel rms_norm has 2 operands, which is not its number"},
      {[=](pb::Plan &plan) {
         kernel(plan).mutable_attributes(0)->set_name(9999);
       },
       "structure",
       "kernel rms_norm has an attribute whose name is string 9999 of"},
      {[=](pb::Plan &plan) { kernel(plan).mutable_attributes(0)->set_name(0); },
       "structure", "kernel rms_norm: attribute '' is none of its attributes"},
      {[=](pb::Plan &plan) { kernel(plan).mutable_attributes(0)->set_i(1); },
       "structure", "attribute 'eps' must be a finite float"},
      {[](pb::Plan &plan) {
         op(plan, "adamw.0").mutable_kernel()->mutable_attributes(0)->set_f(1);
       },
       "structure", "attribute 'decay' must be an integer"},
      {[=](pb::Plan &plan) {
         kernel(plan).mutable_operands(2)->set_accumulate(true);
       },
       "structure",
       "kernel rms_norm: operand 'y' f32[2, 4, 6] cannot accumulate"},
      {[](pb::Plan &plan) { makeFast(plan, "rms_norm"); }, "determinism",
       "kernel attention_grad with fast is not deterministic, and the plan's "
       "numerics say that it is"},
      {[](pb::Plan &plan) {
         plan.mutable_numerics()->set_deterministic(false);
         makeFast(plan, "adamw.0");
       },
       "determinism",
       "kernel attention_grad with fast runs outside the body, where ranks "
       "must make the same bits of the same values"},
  });
}

TEST(Sentences, ClaimsAboutMemory) {
  expectRows({
      {[](pb::Plan &plan) { plan.mutable_claims()->set_persistent_bytes(1); },
       "peak", "the plan claims persistent state of 1 bytes, found"},
      {[](pb::Plan &plan) {
         plan.mutable_memory(0)->set_size(plan.memory(0).size() + 256);
         plan.mutable_claims()->set_arena_bytes(plan.memory(0).size());
       },
       "peak", " bytes, its buffers need "},
      {[](pb::Plan &plan) { plan.mutable_claims()->set_max_live_bytes(1); },
       "peak",
       "the plan claims a largest set of live buffers of 1 bytes, found"},
      {[](pb::Plan &plan) {
         plan.mutable_claims()->set_gathered_peak_bytes(kHuge);
       },
       "peak", "the plan claims a largest set of gathered weights of "},
      {[](pb::Plan &plan) { plan.mutable_claims()->set_budget_bytes(1); },
       "budget", " bytes and overhead of 0 exceed the budget of 1"},
  });
}

TEST(Sentences, PlansOfSeveralRanks) {
  pb::Plan plan = buildStep(), other = plan;
  auto says = [&](const std::vector<const pb::Plan *> &plans,
                  const char *sentence) {
    std::string message = checkRanks(plans).message();
    EXPECT_NE(message.find(sentence), std::string::npos)
        << "expected '" << sentence << "', found '" << message << "'";
  };
  says({}, "no plan to check");
  says({&plan}, "the plan of rank 0 is for 2 ranks, found plans for 1");
  other.mutable_mesh()->mutable_axes(1)->set_name("tp");
  says({&plan, &other},
       "the plan of rank 1 has another mesh than that of rank 0");
  other = plan;
  other.mutable_communicators(0)->set_purpose(pb::Communicator::REDUCE);
  other.mutable_communicators(1)->set_purpose(pb::Communicator::SCALAR);
  says({&plan, &other}, "only one of them has it");
  other = plan;
  collective(other, "head.gather")->set_chunk_bytes(64);
  says({&plan, &other},
       "collective 1 is 'TRAIN_STEP BODY x 1 ALWAYS ALL_GATHER");
  other = plan;
  erase(other, "loss.reduce");
  says({&plan, &other}, "' on one and 'none' on the other");
}
