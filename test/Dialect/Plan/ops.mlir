// RUN: gtp-opt %s | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --mlir-print-op-generic | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --emit-bytecode | gtp-opt | FileCheck %s

// CHECK-LABEL: plan.program @train_step mesh <dp = 2, gtp = 4> arena 65536
// CHECK-SAME: attributes {model = {vocabulary = 99 : i64}}
plan.program @train_step mesh <dp = 2, gtp = 4> arena 65536 attributes {model = {vocabulary = 99 : i64}} {
  // CHECK: %[[SHARD:.*]] = plan.buffer persistent 1024 "w" at 0
  %shard = plan.buffer persistent 1024 "w" at 0
  // CHECK: plan.buffer transient 4096 "w" at 1024
  %full = plan.buffer transient 4096 "w" at 1024
  // CHECK: plan.buffer transient 64{{$}}
  %scratch = plan.buffer transient 64
  %x = plan.buffer input 4096 "x"
  %y = plan.buffer output 8192 "y"
  %grad = plan.buffer transient 1024
  // CHECK: plan.parameter @w [32, 32] <[<32 segments[<"q" = 16>, <"k" = 16>] storage[1] granule 4>, <32>]>
  // CHECK-SAME: normal uses 1 decay tensors ["q", "k"] [16, 16] compute %[[SHARD]] gradient
  plan.parameter @w [32, 32] <[<32 segments [<"q" = 16>, <"k" = 16>] storage [1] granule 4>, <32>]>
    normal uses 1 decay tensors ["q", "k"] [16, 16] compute %shard gradient %grad
  // CHECK: plan.communicator @gather_gtp gather axes [1]
  plan.communicator @gather_gtp gather axes [1]
  // CHECK: plan.communicator @reduce reduce axes [0, 1] cta_policy zero min_ctas 4 max_ctas 16 priority 2 window spans_nodes
  plan.communicator @reduce reduce axes [0, 1] cta_policy zero min_ctas 4 max_ctas 16 priority 2 window spans_nodes
  // CHECK: plan.stream compute
  plan.stream compute
  // CHECK: plan.stream gather priority 1
  plan.stream gather priority 1
  plan.stream reduce
  // CHECK: plan.input "tokens"
  plan.input "tokens" %x
  plan.output "loss" %y
  // CHECK: plan.region body repeat 4 events 1 {
  plan.region body repeat 4 events 1 {
    // CHECK: %[[G:.*]] = plan.collective all_gather @gather_gtp on @w(%{{.*}} <f32[8x32]>, %{{.*}} <f32[32x32]>) wire f32 accumulate f32 transport host stream 1 event 0 time 700
    %g = plan.collective all_gather @gather_gtp on @w(%shard <f32[8x32]>, %full <f32[32x32]>)
      wire f32 accumulate f32 transport host stream 1 event 0 time 700
    // CHECK: plan.kernel "linear" @w(%{{.*}} <f32[4x32], iteration 1024>, %{{.*}} <f32[32x32]>, %{{.*}} <f32[4x32], offset 128, pitch 64>) stream 0 after %[[G]]
    %0 = plan.kernel "linear" @w(%x <f32[4x32], iteration 1024>, %full <f32[32x32]>,
                                 %y <f32[4x32], offset 128, pitch 64>) stream 0 after %g
    // CHECK: plan.kernel "linear_bias" @w and @w(%{{.*}} <f32[4x32]>, %{{.*}} <f32[32x32]>, %{{.*}} <f32[32]>, %{{.*}} <f32[4x32]>) stream 0
    plan.kernel "linear_bias" @w and @w(%x <f32[4x32]>, %full <f32[32x32]>, %full <f32[32]>, %y <f32[4x32]>) stream 0
    // CHECK: plan.kernel "attention"{{.*}} with {causal = true, scale = 5.000000e-01 : f64} algorithm "a1" sms 8 stream 0
    %1 = plan.kernel "attention"(%x <f32[1x4x8]>, %x <f32[1x4x8]>, %x <f32[1x4x8]>, %y <f32[1x4x8]>,
                                 %y <f32[1x2x4]>, %scratch <i8[64]>)
      with {causal = true, scale = 0.5 : f64} algorithm "a1" sms 8 stream 0
    // CHECK: plan.copy(%{{.*}} <f32[]>, %{{.*}} <f32[], ranks [1, 4]>) stream 0 waits [0] when first
    %2 = plan.copy(%x <f32[]>, %full <f32[], ranks [1, 4]>) stream 0 waits [0] when first
    // CHECK: plan.fill 255(%{{.*}} <i8[64]>) stream 2
    %3 = plan.fill 255(%scratch <i8[64]>) stream 2 {custom}
    // CHECK: plan.collective reduce_scatter @reduce{{.*}} <f32[8x32], accumulate>) wire bf16 accumulate f32 reduce max order ring ctas 8 chunk 4096 stream 2 after
    %4 = plan.collective reduce_scatter @reduce(%full <f32[32x32]>, %grad <f32[8x32], accumulate>)
      wire bf16 accumulate f32 reduce max order ring ctas 8 chunk 4096 stream 2 after %0, %2
  }
  // Buffers of a subprogram are its own; those around it are everybody's.
  // CHECK: plan.subprogram eval {
  plan.subprogram eval {
    // CHECK-NEXT: %[[OWN:.*]] = plan.buffer transient 4096 "own" at 1024
    %own = plan.buffer transient 4096 "own" at 1024
    // CHECK-NEXT: plan.input "tokens" %{{.*}}
    plan.input "tokens" %x
    // CHECK-NEXT: plan.output "loss" %{{.*}}
    plan.output "loss" %y
    // CHECK-NEXT: plan.region body repeat 4 {
    plan.region body repeat 4 {
      // CHECK-NEXT: plan.collective all_gather @gather_gtp on @w(%{{.*}} <f32[8x32]>, %[[OWN]] <f32[32x32]>)
      %g = plan.collective all_gather @gather_gtp on @w(%shard <f32[8x32]>, %own <f32[32x32]>)
        wire f32 accumulate f32 stream 1
    }
  }
}
