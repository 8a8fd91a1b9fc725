// RUN: gtp-opt %s --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-prefetch --convert-gtp-to-plan | FileCheck %s
// RUN: gtp-opt %s --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --convert-gtp-to-plan | FileCheck %s --check-prefix=SYNC
// RUN: gtp-opt %s --gtp-place=mesh=gtp=1 --gtp-partition --convert-gtp-to-plan | FileCheck %s --check-prefix=ONE
// RUN: sed 's/3x8x4xi32/1x8x4xi32/g' %s | gtp-opt - --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-prefetch --convert-gtp-to-plan | FileCheck %s --check-prefix=K1
// RUN: gtp-opt %s --gtp-place=mesh=dp=2 --gtp-partition=reduce-dtype=bf16 --convert-gtp-to-plan | FileCheck %s --check-prefix=WIRE

// CHECK-LABEL: plan.program @train_step mesh <dp = 2, gtp = 4>
// CHECK-SAME: model = {{{.*}}parameters = 28272 : i64}
// CHECK-SAME: numerics = {{{.*}}compute = f32, deterministic = true, gradient = f32, master = f32, wire = f32}

// The type that gradients are sent in, also where none is scattered.
// WIRE: numerics = {{{.*}}gradient = f32, master = f32, wire = bf16}
// WIRE: plan.collective all_reduce @reduce_dp on @embed({{.*}}) wire bf16

// State and data, then what the step makes: sums of microbatches first. A full
// weight and its gradient have room for the shards of all ranks, 4 times 65 rows.
// CHECK: %[[W:.*]] = plan.buffer persistent 19760 "embed"
// CHECK-NEXT: %[[WM:.*]] = plan.buffer persistent 19760 "embed.m"
// CHECK-NEXT: %[[WV:.*]] = plan.buffer persistent 19760 "embed.v"
// CHECK-NEXT: %[[P:.*]] = plan.buffer persistent 8816 "qkv"
// CHECK-NEXT: %[[S:.*]] = plan.buffer persistent 304 "norm"
// CHECK-NEXT: %[[TOKENS:.*]] = plan.buffer input 48 "tokens"
// CHECK-NEXT: %[[LABELS:.*]] = plan.buffer input 48 "labels"
// CHECK-NEXT: %[[HYPER:.*]] = plan.buffer input 32 "hyper"
// CHECK-NEXT: %[[LOSS:.*]] = plan.buffer output 4 "loss"
// CHECK-NEXT: %[[COUNT:.*]] = plan.buffer output 8 "count"
// CHECK-NEXT: %[[SUM_W:.*]] = plan.buffer transient 19760
// CHECK-NEXT: %[[SUM_P:.*]] = plan.buffer transient 8816
// CHECK-NEXT: %[[SUM_S:.*]] = plan.buffer transient 304
// CHECK-NEXT: %[[SUM_LOSS:.*]] = plan.buffer transient 4
// CHECK-NEXT: plan.buffer transient 79040

// CHECK: plan.parameter @embed [257, 76] <[<257 storage[1]>, <76>]> normal uses 2 decay tensors ["embed"] [257] tied ["head"] compute %[[W]] states %[[WM]], %[[WV]] gradient %[[SUM_W]]
// CHECK-NEXT: plan.parameter @qkv [114, 76] <[<114 storage[1]>, <76>]> normal uses 1 decay tensors ["q", "k"] [76, 38] compute %[[P]] gradient %[[SUM_P]]
// CHECK-NEXT: plan.parameter @norm [76] <[<76>]> ones uses 1 tensors ["norm"] [76] compute %[[S]] gradient %[[SUM_S]]
// CHECK-NEXT: plan.communicator @scalar_dp_gtp scalar axes [0, 1]
// CHECK-NEXT: plan.communicator @gather_gtp gather axes [1]
// CHECK-NEXT: plan.communicator @reduce_gtp reduce axes [1]
// CHECK-NEXT: plan.communicator @reduce_dp reduce axes [0]
// CHECK-NEXT: plan.communicator @reduce_dp_gtp reduce axes [0, 1]
// CHECK: plan.input "hyper" %[[HYPER]]
// CHECK-NEXT: plan.output "loss" %[[LOSS]]
// CHECK-NEXT: plan.output "count" %[[COUNT]]

// A count is made, and reduced in place, where it is reported.
// CHECK: plan.region once {
// CHECK-NEXT: %[[N:.*]] = plan.kernel "count_labels"(%[[LABELS]] <i32[3x1x4]>, %[[COUNT]] <i64[]>) stream 0
// CHECK-NEXT: plan.collective all_reduce @scalar_dp_gtp(%[[COUNT]] <i64[]>, %[[COUNT]] <i64[]>) wire i64 accumulate i64 transport host stream 2 after %[[N]]

// CHECK: plan.region body repeat 3 {
// CHECK-NEXT: %[[G0:.*]] = plan.collective all_gather @gather_gtp on @embed(%[[W]] <f32[65x76]>, %[[FULL:.*]] <f32[260x76]>) {{.*}} stream 1 time
// CHECK-NEXT: plan.kernel "embedding" @embed(%[[TOKENS]] <i32[1x4], iteration 16>, %[[FULL]] <f32[257x76]>, %[[X:.*]] <f32[1x4x76]>) stream 0 after %[[G0]]
// CHECK-NEXT: %[[NORM:.*]] = plan.kernel "rms_norm" @norm(%[[X]] <f32[1x4x76]>, %[[S]] <f32[76]>, %[[H:.*]] <f32[1x4x76]>) with {eps = 1.000000e-05 : f64} stream 0 time
// The compute op before a gather triggers it.
// CHECK-NEXT: %[[G1:.*]] = plan.collective all_gather {{.*}} stream 1 after %[[NORM]]
// CHECK-NEXT: plan.kernel "linear" @qkv(%[[H]] <f32[1x4x76]>, %{{.*}} <f32[114x76]>, %[[QK:.*]] <f32[1x4x114]>) stream 0 after %[[G1]]
// A split names columns.
// CHECK-NEXT: plan.kernel "rope"(%[[QK]] <f32[1x4x38], offset 304, pitch 114>, %[[R:.*]] <f32[1x4x38]>) with {frequencies = array<f64: 1.000000e+00>, head_dim = 2 : i64, inverse = 0 : i64}
// CHECK: plan.kernel "linear" @embed(%[[QK]] <f32[1x4x76], pitch 114>,
// What is yielded is added where the sum is.
// CHECK-NEXT: plan.kernel "cross_entropy"({{.*}}, %[[LABELS]] <i32[1x4], iteration 16>, %[[COUNT]] <i64[]>, %[[SUM_LOSS]] <f32[], accumulate>)
// The inputs of a concat are written where its result is.
// CHECK: plan.kernel "linear_dgrad" @embed({{.*}}, %[[DQK:[a-z0-9_]+]] <f32[1x4x76], pitch 114>)
// CHECK: plan.kernel "rope"(%[[R]] <f32[1x4x38]>, %[[DQK]] <f32[1x4x38], offset 304, pitch 114>) with {{{.*}}inverse = 1 : i64}
// CHECK-NOT: "concat"
// CHECK: plan.kernel "linear_wgrad" @qkv(%[[DQK]] <f32[1x4x114]>, %[[H]] <f32[1x4x76]>, %[[DP:.*]] <f32[114x76]>)
// The padding of a gradient is cleared before it is scattered.
// CHECK-NEXT: %[[FILL:.*]] = plan.fill(%[[DP]] <i8[608], offset 34656>) stream 0
// CHECK-NEXT: %[[RS:.*]] = plan.collective reduce_scatter @reduce_gtp on @qkv(%[[DP]] <f32[116x76]>, %[[PIECE:.*]] <f32[29x76]>) {{.*}} stream 2 after %[[FILL]]
// CHECK-NEXT: plan.collective all_reduce @reduce_dp on @qkv(%[[PIECE]] <f32[29x76]>, %[[SUM_P]] <f32[29x76], accumulate>)
// A released gradient holds the next compute op until the reduction has read it.
// CHECK-NEXT: plan.kernel "rms_norm_grad" @norm({{.*}} stream 0 after %[[RS]]
// CHECK-NEXT: plan.collective all_reduce @reduce_dp_gtp on @norm(%{{.*}} <f32[76]>, %[[SUM_S]] <f32[76], accumulate>)
// CHECK: plan.kernel "add" @embed(%{{.*}} <f32[257x76]>, %{{.*}} <f32[257x76]>, %[[DE:.*]] <f32[257x76]>)
// CHECK-NEXT: plan.fill(%[[DE]] <i8[912], offset 78128>)
// CHECK-NEXT: plan.collective reduce_scatter @reduce_gtp on @embed(%[[DE]] <f32[260x76]>

// State is updated where it is.
// CHECK: plan.region update {
// CHECK-NEXT: plan.collective all_reduce @scalar_dp_gtp(%[[SUM_LOSS]] <f32[]>, %[[LOSS]] <f32[]>)
// CHECK: plan.kernel "adamw" @embed(%[[W]] <f32[65x76]>, %[[WM]] <f32[65x76]>, %[[WV]] <f32[65x76]>, %[[SUM_W]] <f32[65x76]>, %[[HYPER]] <f32[8]>, %[[SCALE:.*]] <f32[]>) with {decay = 1 : i64}
// CHECK-NEXT: plan.kernel "sgd" @qkv(%[[P]] <f32[29x76]>, %[[SUM_P]] <f32[29x76]>
// CHECK-NEXT: plan.kernel "sgd" @norm(%[[S]] <f32[76]>, %[[SUM_S]] <f32[76]>, %[[HYPER]] <f32[8]>, %[[SCALE]] <f32[]>) with {decay = 0 : i64}
// CHECK-NOT: plan.copy

// A synchronous collective holds the compute op that follows it.
// SYNC: %[[RS:.*]] = plan.collective reduce_scatter @reduce_gtp on @qkv
// SYNC-NEXT: %[[AR:.*]] = plan.collective all_reduce @reduce_dp on @qkv
// SYNC-NEXT: plan.kernel "rms_norm_grad" {{.*}} after %[[AR]]

// One rank has no collective and no padding, and kernels add to the sums.
// ONE-NOT: plan.{{collective|communicator|fill|copy}}
// ONE: plan.kernel "linear_wgrad" @qkv({{.*}}, %{{.*}} <f32[114x76], accumulate>)
// ONE-NEXT: plan.kernel "rms_norm_grad" @norm({{.*}}, %{{.*}} <f32[76], accumulate>)
// ONE: plan.kernel "add" @embed({{.*}}, %{{.*}} <f32[257x76], accumulate>)
// ONE-NOT: plan.{{collective|communicator|fill|copy}}

// With one microbatch nothing is added, and reductions over replicas are in place.
// K1-NOT: accumulate>
// K1: plan.region body {
// K1: plan.collective reduce_scatter @reduce_gtp on @qkv(%{{.*}} <f32[116x76]>, %[[SUM_P:.*]] <f32[29x76]>)
// K1-NEXT: plan.collective all_reduce @reduce_dp on @qkv(%[[SUM_P]] <f32[29x76]>, %[[SUM_P]] <f32[29x76]>)
// K1-NEXT: plan.kernel "rms_norm_grad" @norm({{.*}}, %[[SUM_S:.*]] <f32[76]>)
// K1-NEXT: plan.collective all_reduce @reduce_dp_gtp on @norm(%[[SUM_S]] <f32[76]>, %[[SUM_S]] <f32[76]>)
// K1-NOT: accumulate>

tfm.parameter @embed : tensor<257x76xf32> init "normal" tensors ["embed" = 257] tied ["head"]
tfm.parameter @qkv : tensor<114x76xf32> init "normal" tensors ["q" = 76, "k" = 38]
tfm.parameter @norm : tensor<76xf32> init "ones" tensors ["norm" = 76]
func.func @train_step(
    %w: tensor<257x76xf32> {tfm.arg = "weight", tfm.parameter = @embed},
    %wm: tensor<257x76xf32> {tfm.arg = "state", tfm.state = "m", tfm.parameter = @embed},
    %wv: tensor<257x76xf32> {tfm.arg = "state", tfm.state = "v", tfm.parameter = @embed},
    %p: tensor<114x76xf32> {tfm.arg = "weight", tfm.parameter = @qkv},
    %s: tensor<76xf32> {tfm.arg = "weight", tfm.parameter = @norm},
    %tokens: tensor<3x8x4xi32> {tfm.arg = "tokens"}, %labels: tensor<3x8x4xi32> {tfm.arg = "labels"},
    %hyper: tensor<8xf32> {tfm.arg = "hyper"})
    -> (tensor<257x76xf32> {tfm.tied_to = 0 : i64}, tensor<257x76xf32> {tfm.tied_to = 1 : i64},
        tensor<257x76xf32> {tfm.tied_to = 2 : i64}, tensor<114x76xf32> {tfm.tied_to = 3 : i64},
        tensor<76xf32> {tfm.tied_to = 4 : i64}, tensor<f32> {tfm.result = "loss"}, tensor<i64> {tfm.result = "count"}) {
  %n = tfm.count_labels %labels : (tensor<3x8x4xi32>) -> tensor<i64>
  %g:4 = tfm.microbatches (%t : tensor<8x4xi32> in %tokens, %l : tensor<8x4xi32> in %labels)
      : (tensor<3x8x4xi32>, tensor<3x8x4xi32>) -> (tensor<257x76xf32>, tensor<114x76xf32>, tensor<76xf32>, tensor<f32>) {
    %x = tfm.embedding %t, %w : (tensor<8x4xi32>, tensor<257x76xf32>) -> tensor<8x4x76xf32>
    %h = tfm.rms_norm %x, %s {eps = 1.0e-5 : f64} : (tensor<8x4x76xf32>, tensor<76xf32>) -> tensor<8x4x76xf32>
    %qk = tfm.linear %h, %p : (tensor<8x4x76xf32>, tensor<114x76xf32>) -> tensor<8x4x114xf32>
    %q, %k = tfm.split %qk : (tensor<8x4x114xf32>) -> (tensor<8x4x76xf32>, tensor<8x4x38xf32>)
    %r = tfm.rope %k {head_dim = 2 : i64, frequencies = array<f64: 1.0>} : (tensor<8x4x38xf32>) -> tensor<8x4x38xf32>
    %y = tfm.linear %q, %w : (tensor<8x4x76xf32>, tensor<257x76xf32>) -> tensor<8x4x257xf32>
    %e = tfm.cross_entropy %y, %l, %n : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>) -> tensor<f32>
    %one = tfm.full 1.0 : tensor<f32>
    %dy = tfm.cross_entropy_grad %y, %l, %n, %one : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>, tensor<f32>) -> tensor<8x4x257xf32>
    %dq = tfm.linear_dgrad %dy, %w : (tensor<8x4x257xf32>, tensor<257x76xf32>) -> tensor<8x4x76xf32>
    %d0 = tfm.linear_wgrad %dy, %q : (tensor<8x4x257xf32>, tensor<8x4x76xf32>) -> tensor<257x76xf32>
    %dk = tfm.rope %r {head_dim = 2 : i64, frequencies = array<f64: 1.0>, inverse} : (tensor<8x4x38xf32>) -> tensor<8x4x38xf32>
    %dqk = tfm.concat %dq, %dk : (tensor<8x4x76xf32>, tensor<8x4x38xf32>) -> tensor<8x4x114xf32>
    %dh = tfm.linear_dgrad %dqk, %p : (tensor<8x4x114xf32>, tensor<114x76xf32>) -> tensor<8x4x76xf32>
    %dp = tfm.linear_wgrad %dqk, %h : (tensor<8x4x114xf32>, tensor<8x4x76xf32>) -> tensor<114x76xf32>
    %dx, %ds = tfm.rms_norm_grad %dh, %x, %s {eps = 1.0e-5 : f64} : (tensor<8x4x76xf32>, tensor<8x4x76xf32>, tensor<76xf32>) -> (tensor<8x4x76xf32>, tensor<76xf32>)
    %d1 = tfm.embedding_grad %dx, %t : (tensor<8x4x76xf32>, tensor<8x4xi32>) -> tensor<257x76xf32>
    %d = tfm.add %d0, %d1 : (tensor<257x76xf32>, tensor<257x76xf32>) -> tensor<257x76xf32>
    tfm.yield %d, %dp, %ds, %e : tensor<257x76xf32>, tensor<114x76xf32>, tensor<76xf32>, tensor<f32>
  }
  %scale = tfm.full 1.0 : tensor<f32>
  %new0, %newm, %newv = tfm.adamw %w, %wm, %wv, %g#0, %hyper, %scale {decay} : (tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>)
  %new1 = tfm.sgd %p, %g#1, %hyper, %scale {decay} : (tensor<114x76xf32>, tensor<114x76xf32>, tensor<8xf32>, tensor<f32>) -> tensor<114x76xf32>
  %new2 = tfm.sgd %s, %g#2, %hyper, %scale : (tensor<76xf32>, tensor<76xf32>, tensor<8xf32>, tensor<f32>) -> tensor<76xf32>
  return %new0, %newm, %newv, %new1, %new2, %g#3, %n : tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>, tensor<114x76xf32>, tensor<76xf32>, tensor<f32>, tensor<i64>
}
