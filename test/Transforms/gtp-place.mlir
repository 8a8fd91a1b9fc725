// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=2,gtp=4 | FileCheck %s
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=2,gtp=4 --gtp-verify-placements | FileCheck %s
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=gtp=4,dp=2 | FileCheck %s --check-prefix=ORDER
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=8 | FileCheck %s --check-prefix=DP
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=gtp=8,tp=1 | FileCheck %s --check-prefix=GTP
// RUN: gtp-opt %s --split-input-file --gtp-place | FileCheck %s --check-prefix=ONE
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=1,gtp=1 | FileCheck %s --check-prefix=ONE

// With all degrees 1 nothing is converted.
// ONE-NOT: gtp.convert
// ONE-NOT: cut (
// ONE-NOT: stored (
// ONE-NOT: sum (

// The rank order is the mesh's as written; the order of axes that cut a
// dimension is the policy's.
// ORDER-DAG: #[[$MESH:.*]] = #gtp.mesh<gtp = 4, dp = 2>
// ORDER-DAG: #gtp.placement<#[[$MESH]], [3, 8 cut (dp, gtp), 4]>
// ORDER-DAG: #gtp.placement<#[[$MESH]], [257, 77], sum (gtp, dp) in f32>

// Without gtp, weights are replicated and gathered by nobody.
// DP-NOT: stored (
// DP-LABEL: func @tied
// DP: tfm.microbatches
// DP-NOT: gtp.convert
// DP: tfm.linear_wgrad
// DP: tfm.embedding_grad
// DP-NEXT: tfm.add
// DP-NEXT: gtp.convert
// DP-NEXT: tfm.yield

// GTP-DAG: #[[$MESH:.*]] = #gtp.mesh<gtp = 8, tp = 1>
// GTP-DAG: #gtp.placement<#[[$MESH]], [257 stored (gtp) granule 4, 77]>
// GTP-DAG: #gtp.placement<#[[$MESH]], [3, 8 cut (gtp), 4]>

// CHECK-DAG: #[[$MESH:.*]] = #gtp.mesh<dp = 2, gtp = 4>
// CHECK-DAG: #[[$STORED:.*]] = #gtp.placement<#[[$MESH]], [257 stored (gtp) granule 4, 77]>
// CHECK-DAG: #[[$WHOLE:.*]] = #gtp.placement<#[[$MESH]], [257, 77]>
// CHECK-DAG: #[[$STEP:.*]] = #gtp.placement<#[[$MESH]], [3, 8 cut (dp, gtp), 4]>
// CHECK-DAG: #[[$TOKENS:.*]] = #gtp.placement<#[[$MESH]], [8 cut (dp, gtp), 4]>
// CHECK-DAG: #[[$X:.*]] = #gtp.placement<#[[$MESH]], [8 cut (dp, gtp), 4, 77]>
// CHECK-DAG: #[[$HYPER:.*]] = #gtp.placement<#[[$MESH]], [8]>
// CHECK-DAG: #[[$SCALAR:.*]] = #gtp.placement<#[[$MESH]], []>
// CHECK-DAG: #[[$COUNT:.*]] = #gtp.placement<#[[$MESH]], [], sum (dp, gtp) in i64>
// CHECK-DAG: #[[$LOSS:.*]] = #gtp.placement<#[[$MESH]], [], sum (dp, gtp) in f32>
// CHECK-DAG: #[[$DW:.*]] = #gtp.placement<#[[$MESH]], [257, 77], sum (dp, gtp) in f32>

// A tied weight of odd shape: gathered anew for each use, reduced once.
// CHECK-LABEL: func @tied
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<257x77xf32, #[[$STORED]]> {tfm.arg = "weight", tfm.parameter = @embed}
// CHECK-SAME: tensor<3x8x4xi32, #[[$STEP]]>
// CHECK-SAME: tensor<8xf32, #[[$HYPER]]>
// CHECK-SAME: -> (tensor<257x77xf32, #[[$STORED]]> {tfm.tied_to = 0 : i64}, tensor<f32, #[[$SCALAR]]>
// CHECK-SAME: attributes {gtp.mesh = #[[$MESH]]}
// CHECK: %[[N:.*]] = tfm.count_labels {{.*}} -> tensor<i64, #[[$COUNT]]>
// CHECK-NEXT: %[[ALL:.*]] = gtp.convert %[[N]] : tensor<i64, #[[$COUNT]]> -> tensor<i64, #[[$SCALAR]]>
// CHECK: tfm.microbatches (%[[T:[a-z0-9]+]]: tensor<8x4xi32, #[[$TOKENS]]> in
// CHECK: %[[W0:.*]] = gtp.convert %[[W]] : tensor<257x77xf32, #[[$STORED]]> -> tensor<257x77xf32, #[[$WHOLE]]>
// CHECK: tfm.embedding %[[T]], %[[W0]] {{.*}} -> tensor<8x4x77xf32, #[[$X]]>
// CHECK: %[[W1:.*]] = gtp.convert %[[W]]
// CHECK: tfm.linear %{{.*}}, %[[W1]]
// CHECK: tfm.cross_entropy %{{.*}}, %{{.*}}, %[[ALL]] : {{.*}} -> tensor<f32, #[[$LOSS]]>
// CHECK: tfm.cross_entropy_grad %{{.*}}, %{{.*}}, %[[ALL]]
// CHECK: %[[W2:.*]] = gtp.convert %[[W]]
// CHECK: tfm.linear_dgrad %{{.*}}, %[[W2]]
// CHECK: %[[D0:.*]] = tfm.linear_wgrad {{.*}} -> tensor<257x77xf32, #[[$DW]]>
// CHECK: %[[D1:.*]] = tfm.embedding_grad {{.*}} -> tensor<257x77xf32, #[[$DW]]>
// CHECK: %[[D:.*]] = tfm.add %[[D0]], %[[D1]]
// CHECK: %[[G:.*]] = gtp.convert %[[D]] : tensor<257x77xf32, #[[$DW]]> -> tensor<257x77xf32, #[[$STORED]]>
// CHECK: tfm.yield %[[G]], %{{.*}} : tensor<257x77xf32, #[[$STORED]]>, tensor<f32, #[[$LOSS]]>
// CHECK: gtp.convert %{{.*}} : tensor<f32, #[[$LOSS]]> -> tensor<f32, #[[$SCALAR]]>
tfm.parameter @embed : tensor<257x77xf32> init "normal" tensors ["embed" = 257]
func.func @tied(%w: tensor<257x77xf32> {tfm.arg = "weight", tfm.parameter = @embed},
                %tokens: tensor<3x8x4xi32> {tfm.arg = "tokens"}, %labels: tensor<3x8x4xi32> {tfm.arg = "labels"},
                %hyper: tensor<8xf32> {tfm.arg = "hyper"})
    -> (tensor<257x77xf32> {tfm.tied_to = 0 : i64}, tensor<f32> {tfm.result = "loss"}) {
  %n = tfm.count_labels %labels : (tensor<3x8x4xi32>) -> tensor<i64>
  %g, %loss = tfm.microbatches (%t : tensor<8x4xi32> in %tokens, %l : tensor<8x4xi32> in %labels)
      : (tensor<3x8x4xi32>, tensor<3x8x4xi32>) -> (tensor<257x77xf32>, tensor<f32>) {
    %x = tfm.embedding %t, %w : (tensor<8x4xi32>, tensor<257x77xf32>) -> tensor<8x4x77xf32>
    %y = tfm.linear %x, %w : (tensor<8x4x77xf32>, tensor<257x77xf32>) -> tensor<8x4x257xf32>
    %e = tfm.cross_entropy %y, %l, %n : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>) -> tensor<f32>
    %one = tfm.full 1.0 : tensor<f32>
    %dy = tfm.cross_entropy_grad %y, %l, %n, %one : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>, tensor<f32>) -> tensor<8x4x257xf32>
    %dx = tfm.linear_dgrad %dy, %w : (tensor<8x4x257xf32>, tensor<257x77xf32>) -> tensor<8x4x77xf32>
    %d0 = tfm.linear_wgrad %dy, %x : (tensor<8x4x257xf32>, tensor<8x4x77xf32>) -> tensor<257x77xf32>
    %d1 = tfm.embedding_grad %dx, %t : (tensor<8x4x77xf32>, tensor<8x4xi32>) -> tensor<257x77xf32>
    %d = tfm.add %d0, %d1 : (tensor<257x77xf32>, tensor<257x77xf32>) -> tensor<257x77xf32>
    tfm.yield %d, %e : tensor<257x77xf32>, tensor<f32>
  }
  %scale = tfm.full 1.0 : tensor<f32>
  %new = tfm.sgd %w, %g, %hyper, %scale : (tensor<257x77xf32>, tensor<257x77xf32>, tensor<8xf32>, tensor<f32>) -> tensor<257x77xf32>
  return %new, %loss : tensor<257x77xf32>, tensor<f32>
}

// -----

// A norm's weight is replicated, its gradient reduced in the region. Squares of a
// shard are partial over gtp alone: the ranks of dp have the same shards. The
// norm's squares join them as a partial sum, so that one reduction is enough.

// CHECK-DAG: #[[$NORM:.*]] = #gtp.placement<#{{.*}}, [7]>
// CHECK-DAG: #[[$DNORM:.*]] = #gtp.placement<#{{.*}}, [7], sum (dp, gtp) in f32>
// CHECK-DAG: #[[$STORED:.*]] = #gtp.placement<#{{.*}}, [9 stored (gtp) granule 8, 7]>
// CHECK-DAG: #[[$SCALAR:.*]] = #gtp.placement<#{{.*}}, []>
// CHECK-DAG: #[[$SQUARES:.*]] = #gtp.placement<#{{.*}}, [], sum (gtp) in f64>
// CHECK-LABEL: func @norms_and_clipping
// CHECK: tfm.rms_norm_grad {{.*}}, tensor<7xf32, #[[$DNORM]]>)
// CHECK-NEXT: %[[G:.*]] = gtp.convert %{{.*}} : tensor<7xf32, #[[$DNORM]]> -> tensor<7xf32, #[[$NORM]]>
// CHECK: tfm.yield %[[G]]
// CHECK: %[[S0:.*]] = tfm.sum_squares {{.*}}tensor<7xf32, #[[$NORM]]>) -> tensor<f64, #[[$SCALAR]]>
// CHECK-NEXT: %[[P:.*]] = gtp.convert %[[S0]] : tensor<f64, #[[$SCALAR]]> -> tensor<f64, #[[$SQUARES]]>
// CHECK-NEXT: %[[S1:.*]] = tfm.sum_squares {{.*}}tensor<9x7xf32, #[[$STORED]]>) -> tensor<f64, #[[$SQUARES]]>
// CHECK-NEXT: %[[S:.*]] = tfm.add %[[P]], %[[S1]]
// CHECK-NEXT: %[[ALL:.*]] = gtp.convert %[[S]] : tensor<f64, #[[$SQUARES]]> -> tensor<f64, #[[$SCALAR]]>
// CHECK-NEXT: tfm.clip_scale %[[ALL]]
// CHECK: tfm.adamw {{.*}} -> (tensor<9x7xf32, #[[$STORED]]>, tensor<9x7xf32, #[[$STORED]]>, tensor<9x7xf32, #[[$STORED]]>, tensor<9x7xbf16, #[[$STORED]]>)
tfm.parameter @norm : tensor<7xf32> init "ones" tensors ["norm" = 7]
tfm.parameter @proj : tensor<9x7xbf16> init "normal" tensors ["proj" = 9]
func.func @norms_and_clipping(
    %norm: tensor<7xf32> {tfm.arg = "weight", tfm.parameter = @norm},
    %proj: tensor<9x7xbf16> {tfm.arg = "weight", tfm.parameter = @proj},
    %master: tensor<9x7xf32> {tfm.arg = "master", tfm.parameter = @proj},
    %m: tensor<9x7xf32> {tfm.arg = "state", tfm.parameter = @proj, tfm.state = "m"},
    %v: tensor<9x7xf32> {tfm.arg = "state", tfm.parameter = @proj, tfm.state = "v"},
    %x: tensor<1x8x4xi32> {tfm.arg = "tokens"}, %hyper: tensor<8xf32> {tfm.arg = "hyper"})
    -> (tensor<7xf32> {tfm.tied_to = 0 : i64}, tensor<9x7xbf16> {tfm.tied_to = 1 : i64},
        tensor<9x7xf32> {tfm.tied_to = 2 : i64}, tensor<9x7xf32> {tfm.tied_to = 3 : i64},
        tensor<9x7xf32> {tfm.tied_to = 4 : i64}, tensor<f32> {tfm.result = "grad_norm"}) {
  %g:2 = tfm.microbatches (%t : tensor<8x4xi32> in %x) : (tensor<1x8x4xi32>) -> (tensor<7xf32>, tensor<9x7xf32>) {
    %table = tfm.full 0.5 : tensor<11x7xf32>
    %h = tfm.embedding %t, %table : (tensor<8x4xi32>, tensor<11x7xf32>) -> tensor<8x4x7xf32>
    %dx, %dw = tfm.rms_norm_grad %h, %h, %norm {eps = 1.0e-5} : (tensor<8x4x7xf32>, tensor<8x4x7xf32>, tensor<7xf32>) -> (tensor<8x4x7xf32>, tensor<7xf32>)
    %h16 = tfm.cast %h : (tensor<8x4x7xf32>) -> tensor<8x4x7xbf16>
    %y = tfm.linear %h16, %proj : (tensor<8x4x7xbf16>, tensor<9x7xbf16>) -> tensor<8x4x9xbf16>
    %dp = tfm.linear_wgrad %y, %h16 : (tensor<8x4x9xbf16>, tensor<8x4x7xbf16>) -> tensor<9x7xf32>
    tfm.yield %dw, %dp : tensor<7xf32>, tensor<9x7xf32>
  }
  %s0 = tfm.sum_squares %g#0 : (tensor<7xf32>) -> tensor<f64>
  %s1 = tfm.sum_squares %g#1 : (tensor<9x7xf32>) -> tensor<f64>
  %s = tfm.add %s0, %s1 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %n, %scale = tfm.clip_scale %s {max_norm = 1.0} : (tensor<f64>) -> (tensor<f32>, tensor<f32>)
  %new0 = tfm.sgd %norm, %g#0, %hyper, %scale : (tensor<7xf32>, tensor<7xf32>, tensor<8xf32>, tensor<f32>) -> tensor<7xf32>
  %new1, %m1, %v1, %c1 = tfm.adamw %master, %m, %v, %g#1, %hyper, %scale
      : (tensor<9x7xf32>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<8xf32>, tensor<f32>)
      -> (tensor<9x7xf32>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<9x7xbf16>)
  return %new0, %c1, %new1, %m1, %v1, %n : tensor<7xf32>, tensor<9x7xbf16>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<f32>
}

// -----

// Elementwise ops on shards at rest work on the shards.

// CHECK-DAG: #[[$STORED:.*]] = #gtp.placement<#{{.*}}, [16 stored (gtp), 4]>
// CHECK-LABEL: func @elementwise_on_shards
// CHECK-NEXT: %[[S:.*]] = tfm.add %{{.*}}, %{{.*}} : {{.*}} -> tensor<16x4xf32, #[[$STORED]]>
// CHECK-NEXT: return %[[S]]
tfm.parameter @w : tensor<16x4xf32> init "normal" tensors ["w" = 16]
func.func @elementwise_on_shards(%w: tensor<16x4xf32> {tfm.arg = "weight", tfm.parameter = @w},
                                 %m: tensor<16x4xf32> {tfm.arg = "state", tfm.parameter = @w})
    -> (tensor<16x4xf32> {tfm.tied_to = 0 : i64}) {
  %0 = tfm.add %w, %m : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}
