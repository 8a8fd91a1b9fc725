// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=2,gtp=4 --gtp-partition | FileCheck %s
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=2,gtp=4 --cse --gtp-partition --gtp-verify-placements --cse | FileCheck %s
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=2,gtp=4 --gtp-partition=reduce-dtype=bf16 | FileCheck %s --check-prefix=WIRE
// RUN: gtp-opt %s --split-input-file --gtp-place=mesh=dp=8 --gtp-partition | FileCheck %s --check-prefix=DP
// RUN: gtp-opt %s --split-input-file --gtp-place --gtp-partition | FileCheck %s --check-prefix=ONE

// Common-subexpression elimination before and after changes no interval.

// ONE-NOT: gtp.{{convert|materialize|all_|reduce_|slice|keep_}}

// DP-NOT: gtp.{{materialize|all_gather|reduce_scatter}}

// Uses of a weight with no use of another between them share a gather: the head's
// forward and backward here. The embedding's use is apart, and so are the two of
// the projection.

// CHECK-DAG: #[[$MESH:.*]] = #gtp.mesh<dp = 2, gtp = 4>
// CHECK-DAG: #[[$STORED:.*]] = #gtp.placement<#[[$MESH]], [257 stored (gtp) granule 4, 77]>
// CHECK-DAG: #[[$SCATTERED:.*]] = #gtp.placement<#[[$MESH]], [257 stored (gtp) granule 4, 77], sum (dp) in f32>
// CHECK-LABEL: func @step
// CHECK-SAME: %[[EMBED:[a-z0-9]+]]: tensor<68x77xf32, #[[$STORED]]>
// CHECK-SAME: %[[PROJ:[a-z0-9]+]]: tensor<20x77xf32
// CHECK-SAME: tensor<3x1x4xi32
// CHECK-SAME: attributes {gtp.mesh = #[[$MESH]], gtp.partitioned}
// CHECK: %[[N:.*]] = tfm.count_labels
// CHECK-NEXT: gtp.all_reduce %[[N]] over (dp, gtp) wire i64 : tensor<i64
// CHECK: tfm.microbatches
// CHECK-NEXT: %[[E:.*]] = gtp.materialize %[[EMBED]] plane forward interval 0 : tensor<68x77xf32, {{.*}}> -> tensor<257x77xf32
// CHECK-NEXT: tfm.embedding %{{.*}}, %[[E]]
// CHECK-NEXT: %[[P:.*]] = gtp.materialize %[[PROJ]] plane forward interval 1
// CHECK-NEXT: tfm.linear %{{.*}}, %[[P]]
// CHECK-NEXT: %[[H:.*]] = gtp.materialize %[[EMBED]] plane forward interval 2
// CHECK-NEXT: tfm.linear %{{.*}}, %[[H]]
// CHECK: tfm.linear_dgrad %{{.*}}, %[[H]]
// CHECK: tfm.linear_wgrad
// CHECK-NEXT: %[[Q:.*]] = gtp.materialize %[[PROJ]] plane backward interval 3
// CHECK-NEXT: tfm.linear_dgrad %{{.*}}, %[[Q]]
// CHECK-NEXT: %[[DW:.*]] = tfm.linear_wgrad
// CHECK-NEXT: %[[R:.*]] = gtp.reduce_scatter %[[DW]] dim 0 over (gtp) wire f32 : tensor<77x77xf32, {{.*}}> -> tensor<20x77xf32
// CHECK-NEXT: %[[DPROJ:.*]] = gtp.all_reduce %[[R]] over (dp) wire f32 : tensor<20x77xf32
// CHECK-NEXT: tfm.embedding_grad
// CHECK-NEXT: %[[D:.*]] = tfm.add
// CHECK-NEXT: %[[S:.*]] = gtp.reduce_scatter %[[D]] dim 0 over (gtp) wire f32 : tensor<257x77xf32, {{.*}}> -> tensor<68x77xf32, #[[$SCATTERED]]>
// CHECK-NEXT: %[[DEMBED:.*]] = gtp.all_reduce %[[S]] over (dp) wire f32 : {{.*}} -> tensor<68x77xf32, #[[$STORED]]>
// CHECK-NEXT: tfm.yield %[[DEMBED]], %[[DPROJ]], %{{.*}} :
// CHECK: gtp.all_reduce %{{.*}} over (dp, gtp) wire f32 : tensor<f32
// CHECK-NOT: gtp.convert

// Gradients travel in the type asked for, scalars in their own.
// WIRE-LABEL: func @step
// WIRE: gtp.all_reduce %{{.*}} wire i64 : tensor<i64
// WIRE: gtp.reduce_scatter %{{.*}} dim 0 over (gtp) wire bf16 : tensor<77x77xf32
// WIRE-NEXT: gtp.all_reduce %{{.*}} over (dp) wire bf16 : tensor<20x77xf32
// WIRE: gtp.all_reduce %{{.*}} over (dp, gtp) wire f32 : tensor<f32

// DP-LABEL: func @step
// DP: gtp.all_reduce %{{.*}} over (dp) wire f32 : tensor<77x77xf32
// DP: gtp.all_reduce %{{.*}} over (dp) wire f32 : tensor<257x77xf32
// DP-NEXT: tfm.yield
tfm.parameter @embed : tensor<257x77xf32> init "normal" tensors ["embed" = 257]
tfm.parameter @proj : tensor<77x77xf32> init "normal" tensors ["proj" = 77]
func.func @step(%w: tensor<257x77xf32> {tfm.arg = "weight", tfm.parameter = @embed},
                %p: tensor<77x77xf32> {tfm.arg = "weight", tfm.parameter = @proj},
                %tokens: tensor<3x8x4xi32> {tfm.arg = "tokens"}, %labels: tensor<3x8x4xi32> {tfm.arg = "labels"},
                %hyper: tensor<8xf32> {tfm.arg = "hyper"})
    -> (tensor<257x77xf32> {tfm.tied_to = 0 : i64}, tensor<77x77xf32> {tfm.tied_to = 1 : i64}, tensor<f32> {tfm.result = "loss"}) {
  %n = tfm.count_labels %labels : (tensor<3x8x4xi32>) -> tensor<i64>
  %g:3 = tfm.microbatches (%t : tensor<8x4xi32> in %tokens, %l : tensor<8x4xi32> in %labels)
      : (tensor<3x8x4xi32>, tensor<3x8x4xi32>) -> (tensor<257x77xf32>, tensor<77x77xf32>, tensor<f32>) {
    %x = tfm.embedding %t, %w : (tensor<8x4xi32>, tensor<257x77xf32>) -> tensor<8x4x77xf32>
    %h = tfm.linear %x, %p : (tensor<8x4x77xf32>, tensor<77x77xf32>) -> tensor<8x4x77xf32>
    %y = tfm.linear %h, %w : (tensor<8x4x77xf32>, tensor<257x77xf32>) -> tensor<8x4x257xf32>
    %e = tfm.cross_entropy %y, %l, %n : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>) -> tensor<f32>
    %one = tfm.full 1.0 : tensor<f32>
    %dy = tfm.cross_entropy_grad %y, %l, %n, %one : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>, tensor<f32>) -> tensor<8x4x257xf32>
    %dh = tfm.linear_dgrad %dy, %w : (tensor<8x4x257xf32>, tensor<257x77xf32>) -> tensor<8x4x77xf32>
    %d0 = tfm.linear_wgrad %dy, %h : (tensor<8x4x257xf32>, tensor<8x4x77xf32>) -> tensor<257x77xf32>
    %dx = tfm.linear_dgrad %dh, %p : (tensor<8x4x77xf32>, tensor<77x77xf32>) -> tensor<8x4x77xf32>
    %dp = tfm.linear_wgrad %dh, %x : (tensor<8x4x77xf32>, tensor<8x4x77xf32>) -> tensor<77x77xf32>
    %d1 = tfm.embedding_grad %dx, %t : (tensor<8x4x77xf32>, tensor<8x4xi32>) -> tensor<257x77xf32>
    %d = tfm.add %d0, %d1 : (tensor<257x77xf32>, tensor<257x77xf32>) -> tensor<257x77xf32>
    tfm.yield %d, %dp, %e : tensor<257x77xf32>, tensor<77x77xf32>, tensor<f32>
  }
  %scale = tfm.full 1.0 : tensor<f32>
  %new0 = tfm.sgd %w, %g#0, %hyper, %scale : (tensor<257x77xf32>, tensor<257x77xf32>, tensor<8xf32>, tensor<f32>) -> tensor<257x77xf32>
  %new1 = tfm.sgd %p, %g#1, %hyper, %scale : (tensor<77x77xf32>, tensor<77x77xf32>, tensor<8xf32>, tensor<f32>) -> tensor<77x77xf32>
  return %new0, %new1, %g#2 : tensor<257x77xf32>, tensor<77x77xf32>, tensor<f32>
}
