// RUN: gtp-opt %s --gtp-prefetch | FileCheck %s
// RUN: gtp-opt %s --gtp-prefetch --canonicalize --cse | FileCheck %s
// RUN: gtp-opt %s --gtp-prefetch=sync | FileCheck %s --check-prefix=SYNC

// SYNC-NOT: gtp.{{prefetch|await|release|trigger}}
// SYNC-COUNT-7: gtp.materialize
// SYNC-NOT: gtp.{{prefetch|await|release|trigger}}

#mesh = #gtp.mesh<dp = 2, gtp = 4>
#stored = #gtp.placement<#mesh, [12 stored (gtp), 12]>
#whole = #gtp.placement<#mesh, [12, 12]>
#partial = #gtp.placement<#mesh, [12, 12], sum (dp, gtp) in f32>
#scattered = #gtp.placement<#mesh, [12 stored (gtp), 12], sum (dp) in f32>
#x = #gtp.placement<#mesh, [8 cut (dp, gtp), 4, 12]>
#loss = #gtp.placement<#mesh, [], sum (dp, gtp) in f32>
#scalar = #gtp.placement<#mesh, []>

// Without decisions a gather is issued in its place.
// CHECK-LABEL: func @own_position
// CHECK-NEXT: %[[T0:.*]] = gtp.prefetch materialize %arg1 plane forward interval 0 :
// CHECK-NEXT: %[[W0:.*]] = gtp.await %[[T0]]
// CHECK-NEXT: %[[Y0:.*]] = tfm.linear %arg0, %[[W0]]
// CHECK-NEXT: gtp.release %[[W0]] :
// CHECK-NEXT: %[[T1:.*]] = gtp.prefetch materialize %arg1 plane forward interval 1 :
// CHECK-NEXT: %[[W1:.*]] = gtp.await %[[T1]]
// CHECK-NEXT: %[[Y1:.*]] = tfm.linear %[[Y0]], %[[W1]]
// CHECK-NEXT: %[[Y2:.*]] = tfm.linear %[[Y1]], %[[W1]]
// CHECK-NEXT: gtp.release %[[W1]] :
// CHECK: return
func.func @own_position(%x: tensor<1x4x12xf32, #x>, %w: tensor<3x12xf32, #stored>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %w0 = gtp.materialize %w plane forward interval 0 : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y0 = tfm.linear %x, %w0 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %w1 = gtp.materialize %w plane forward interval 1 : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y1 = tfm.linear %y0, %w1 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %y2 = tfm.linear %y1, %w1 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  // Keeps the linears alive.
  %t = gtp.prefetch all_gather %y2 dim 0 over (dp, gtp) : tensor<1x4x12xf32, #x> -> !gtp.ticket<tensor<8x4x12xf32, #gtp.placement<#mesh, [8, 4, 12]>>>
  return
}

// Positions count every op of the block. Gathers with one trigger keep their
// order; a trigger may be another collective.
// CHECK-LABEL: func @triggers
// CHECK-NEXT: %[[T0:.*]] = gtp.prefetch materialize %arg1 plane forward interval 0 :
// CHECK-NEXT: %[[T1:.*]] = gtp.prefetch materialize %arg2 plane forward interval 1 :
// CHECK-NEXT: %[[W0:.*]] = gtp.await %[[T0]]
// CHECK-NEXT: tfm.linear %arg0, %[[W0]]
// CHECK-NEXT: gtp.release %[[W0]]
// CHECK-NEXT: %[[T2:.*]] = gtp.prefetch materialize %arg1 plane forward interval 2 :
// CHECK-NEXT: %[[T3:.*]] = gtp.prefetch materialize %arg2 plane forward interval 3 :
// CHECK-NEXT: %[[W1:.*]] = gtp.await %[[T1]]
// CHECK-NEXT: tfm.linear %{{.*}}, %[[W1]]
// CHECK-NEXT: gtp.release %[[W1]]
// CHECK-NEXT: %[[W2:.*]] = gtp.await %[[T2]]
// CHECK-NEXT: tfm.linear %{{.*}}, %[[W2]]
// CHECK-NEXT: gtp.release %[[W2]]
// CHECK-NEXT: %[[W3:.*]] = gtp.await %[[T3]]
// CHECK-NEXT: tfm.linear %{{.*}}, %[[W3]]
// CHECK-NEXT: gtp.release %[[W3]]
func.func @triggers(%x: tensor<1x4x12xf32, #x>, %a: tensor<3x12xf32, #stored>, %b: tensor<3x12xf32, #stored>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %w0 = gtp.materialize %a plane forward interval 0 {gtp.trigger = -1 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y0 = tfm.linear %x, %w0 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %w1 = gtp.materialize %b plane forward interval 1 {gtp.trigger = -1 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y1 = tfm.linear %y0, %w1 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %w2 = gtp.materialize %a plane forward interval 2 {gtp.trigger = 2 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y2 = tfm.linear %y1, %w2 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %w3 = gtp.materialize %b plane forward interval 3 {gtp.trigger = 2 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y3 = tfm.linear %y2, %w3 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %t = gtp.prefetch all_gather %y3 dim 0 over (dp, gtp) : tensor<1x4x12xf32, #x> -> !gtp.ticket<tensor<8x4x12xf32, #gtp.placement<#mesh, [8, 4, 12]>>>
  return
}

// A gather in a region; a gathered value that a terminator takes is not released.
// CHECK-LABEL: func @last_use_is_the_terminator
// CHECK: %[[W:.*]] = gtp.await
// CHECK-NEXT: return %[[W]]
func.func @last_use_is_the_terminator(%a: tensor<3x12xf32, #stored>) -> tensor<12x12xf32, #whole> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %w = gtp.materialize %a plane forward interval 0 : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  return %w : tensor<12x12xf32, #whole>
}

// A reduction goes on while other ops run: its result is awaited where it is
// used, its operand released where decided, or else behind the await.
// CHECK-LABEL: func @reductions
// CHECK: %[[D0:.*]] = tfm.linear_wgrad
// CHECK-NEXT: %[[T0:.*]] = gtp.prefetch reduce_scatter %[[D0]] dim 0 over (gtp) wire bf16 :
// CHECK-NEXT: %[[S:.*]] = gtp.await %[[T0]]
// CHECK-NEXT: %[[T1:.*]] = gtp.prefetch all_reduce %[[S]] over (dp) wire f32 order ring :
// CHECK-NEXT: %[[Y:.*]] = tfm.swiglu
// CHECK-NEXT: gtp.release %[[D0]] after %[[T0]]
// CHECK-NEXT: %[[D1:.*]] = tfm.linear_wgrad
// CHECK-NEXT: %[[T2:.*]] = gtp.prefetch all_reduce %[[D1]] over (dp, gtp) wire f32 :
// CHECK-NEXT: %[[G0:.*]] = gtp.await %[[T1]]
// CHECK-NEXT: gtp.release %[[S]] after %[[T1]]
// CHECK-NEXT: %[[G1:.*]] = gtp.await %[[T2]]
// CHECK-NEXT: gtp.release %[[D1]] after %[[T2]]
// CHECK-NEXT: tfm.yield %[[G0]], %[[G1]]
func.func @reductions(%tokens: tensor<1x1x4xi32, #gtp.placement<#mesh, [1, 8 cut (dp, gtp), 4]>>, %table: tensor<12x12xf32, #whole>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %0:2 = tfm.microbatches (%t : tensor<1x4xi32, #gtp.placement<#mesh, [8 cut (dp, gtp), 4]>> in %tokens)
      : (tensor<1x1x4xi32, #gtp.placement<#mesh, [1, 8 cut (dp, gtp), 4]>>) -> (tensor<3x12xf32, #stored>, tensor<12x12xf32, #whole>) {
    %x = tfm.embedding %t, %table : (tensor<1x4xi32, #gtp.placement<#mesh, [8 cut (dp, gtp), 4]>>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
    %d0 = tfm.linear_wgrad %x, %x : (tensor<1x4x12xf32, #x>, tensor<1x4x12xf32, #x>) -> tensor<12x12xf32, #partial>
    %s0 = gtp.reduce_scatter %d0 dim 0 over (gtp) wire bf16 {gtp.release_before = 5 : i64} : tensor<12x12xf32, #partial> -> tensor<3x12xf32, #scattered>
    %g0 = gtp.all_reduce %s0 over (dp) wire f32 order ring : tensor<3x12xf32, #scattered> -> tensor<3x12xf32, #stored>
    %y = tfm.swiglu %x, %x : (tensor<1x4x12xf32, #x>, tensor<1x4x12xf32, #x>) -> tensor<1x4x12xf32, #x>
    %d1 = tfm.linear_wgrad %y, %x : (tensor<1x4x12xf32, #x>, tensor<1x4x12xf32, #x>) -> tensor<12x12xf32, #partial>
    %g1 = gtp.all_reduce %d1 over (dp, gtp) wire f32 : tensor<12x12xf32, #partial> -> tensor<12x12xf32, #whole>
    tfm.yield %g0, %g1 : tensor<3x12xf32, #stored>, tensor<12x12xf32, #whole>
  }
  return
}

// The operand is used by others too, after the result: it is released behind them.
// CHECK-LABEL: func @operand_is_used_later
// CHECK: %[[L:.*]] = tfm.cross_entropy
// CHECK-NEXT: %[[T:.*]] = gtp.prefetch all_reduce %[[L]]
// CHECK-NEXT: %[[ALL:.*]] = gtp.await %[[T]]
// CHECK-NEXT: %[[B:.*]] = tfm.add %[[ALL]], %[[ALL]]
// CHECK-NEXT: %[[A:.*]] = tfm.add %[[L]], %[[L]]
// CHECK-NEXT: gtp.release %[[L]] after %[[T]]
// CHECK-NEXT: return %[[B]], %[[A]]
func.func @operand_is_used_later(%y: tensor<1x4x12xf32, #x>, %l: tensor<1x4xi32, #gtp.placement<#mesh, [8 cut (dp, gtp), 4]>>, %n: tensor<i64, #scalar>)
    -> (tensor<f32, #scalar>, tensor<f32, #loss>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %0 = tfm.cross_entropy %y, %l, %n : (tensor<1x4x12xf32, #x>, tensor<1x4xi32, #gtp.placement<#mesh, [8 cut (dp, gtp), 4]>>, tensor<i64, #scalar>) -> tensor<f32, #loss>
  %1 = gtp.all_reduce %0 over (dp, gtp) : tensor<f32, #loss> -> tensor<f32, #scalar>
  %2 = tfm.add %1, %1 : (tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
  %3 = tfm.add %0, %0 : (tensor<f32, #loss>, tensor<f32, #loss>) -> tensor<f32, #loss>
  return %2, %3 : tensor<f32, #scalar>, tensor<f32, #loss>
}

// What nobody uses is not communicated.
// CHECK-LABEL: func @unused
// CHECK-NEXT: return
func.func @unused(%l: tensor<f32, #loss>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %0 = gtp.all_reduce %l over (dp, gtp) : tensor<f32, #loss> -> tensor<f32, #scalar>
  return
}
