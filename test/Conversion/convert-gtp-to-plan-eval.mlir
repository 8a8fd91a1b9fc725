// The evaluation beside the training step: the same buffers of weights, inputs
// and outputs, transients of its own, and no state.

// DEFINE: %{place} = --tfm-differentiate --gtp-place=mesh=dp=2,gtp=2 --gtp-partition --gtp-plan-step
// DEFINE: %{tail} = --plan-assign-memory --plan-insert-events --plan-verify
// RUN: gtp-opt %s %{place} | FileCheck %s --check-prefix=STEP
// RUN: gtp-opt %s %{place} --gtp-prefetch --convert-gtp-to-plan | FileCheck %s
// RUN: gtp-opt %s %{place} --gtp-prefetch --convert-gtp-to-plan %{tail} -o %t.plan
// RUN: FileCheck %s --check-prefix=TAIL --input-file=%t.plan

// A finding names the place in the subprogram.
// RUN: sed '/plan.subprogram/,$s/ waits \[[0-9, ]*\]//' %t.plan > %t.race
// RUN: not gtp-opt %t.race --plan-verify 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: error: plan-verify: race: EVAL, region 0 (ONCE), operation 1

// One rank and one microbatch: nothing comes behind the body.
// RUN: sed 's/4x3xi32/2x3xi32/g; s/4x3x8x/2x3x8x/g; s/4x3x12x/2x3x12x/g; s/microbatches = 3/microbatches = 1/; s/global_batch = 12/global_batch = 2/; s/micro_batch = 1/micro_batch = 2/' %s | gtp-opt --tfm-differentiate --gtp-place=mesh=gtp=1 --gtp-partition --gtp-plan-step --gtp-prefetch --convert-gtp-to-plan %{tail} | FileCheck %s --check-prefix=ONE

// Both functions have decisions of their own.
// STEP-LABEL: func.func @train_step(
// STEP: gtp.reduce_scatter
// STEP-LABEL: func.func @eval_step(
// STEP: gtp.materialize %arg0 plane forward interval 0 {gtp.trigger = -1 : i64}
// STEP: gtp.materialize %arg1 plane forward interval 1 {gtp.trigger = {{.*}} : i64}
// STEP-NOT: reduce_scatter

// CHECK-LABEL: plan.program @train_step
// CHECK: %[[TABLE:.*]] = plan.buffer persistent {{.*}} "table"
// CHECK: %[[HEAD:.*]] = plan.buffer persistent {{.*}} "head"
// CHECK: %[[TOKENS:.*]] = plan.buffer input {{.*}} "tokens"
// CHECK: %[[LABELS:.*]] = plan.buffer input {{.*}} "labels"
// CHECK: %[[LOSS:.*]] = plan.buffer output 4 "loss"
// CHECK: %[[COUNT:.*]] = plan.buffer output 8 "count"
// CHECK: plan.parameter @table {{.*}} uses 1
// CHECK: plan.region update {
// CHECK: plan.subprogram eval {
// CHECK-NOT: persistent
// CHECK: %[[SUM:.*]] = plan.buffer transient 4
// CHECK: plan.input "tokens" %[[TOKENS]]
// CHECK-NEXT: plan.input "labels" %[[LABELS]]
// CHECK-NEXT: plan.output "loss" %[[LOSS]]
// CHECK-NEXT: plan.output "count" %[[COUNT]]
// CHECK-NEXT: plan.region once {
// CHECK-NEXT: plan.kernel "count_labels"(%[[LABELS]] <i32[3x1x3]>, %[[COUNT]] <i64[]>)
// CHECK-NEXT: plan.collective all_reduce @scalar_dp_gtp(%[[COUNT]]
// CHECK: plan.region body repeat 3 {
// CHECK-NEXT: plan.collective all_gather @gather_gtp on @table(%[[TABLE]]
// CHECK: plan.kernel "embedding" @table(%[[TOKENS]] <i32[1x3], iteration 12>
// CHECK: plan.kernel "linear" @head
// CHECK-NEXT: plan.kernel "cross_entropy"({{.*}} %[[SUM]] <f32[], accumulate>)
// CHECK-NEXT: }
// CHECK-NEXT: plan.region once {
// CHECK-NEXT: plan.collective all_reduce @scalar_dp_gtp(%[[SUM]] <f32[]>, %[[LOSS]] <f32[]>)
// CHECK-NEXT: }
// CHECK-NEXT: }

// Transients of the two programs share memory.
// TAIL: plan.buffer transient {{.*}} at [[FIRST:[0-9]+]]{{$}}
// TAIL: plan.subprogram eval {
// TAIL: plan.buffer transient {{.*}} at [[FIRST]]{{$}}

// ONE-LABEL: plan.subprogram eval {
// ONE: plan.region body {
// ONE: plan.kernel "cross_entropy"
// ONE-NOT: plan.region

module attributes {tfm.model = {vocabulary = 12 : i64, sequence = 3 : i64, micro_batch = 1 : i64, global_batch = 12 : i64, microbatches = 3 : i64}} {
  tfm.parameter @table : tensor<12x8xf32> init "normal" tensors ["table" = 12]
  tfm.parameter @head : tensor<12x8xf32> init "normal" tensors ["head" = 12]
  func.func @forward(%tokens: tensor<4x3xi32>, %labels: tensor<4x3xi32>, %count: tensor<i64>) -> tensor<f32> {
    %table = tfm.get @table : tensor<12x8xf32>
    %h = tfm.embedding %tokens, %table : (tensor<4x3xi32>, tensor<12x8xf32>) -> tensor<4x3x8xf32> loc("embed")
    %head = tfm.get @head : tensor<12x8xf32>
    %logits = tfm.linear %h, %head : (tensor<4x3x8xf32>, tensor<12x8xf32>) -> tensor<4x3x12xf32> loc("head")
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<4x3x12xf32>, tensor<4x3xi32>, tensor<i64>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
