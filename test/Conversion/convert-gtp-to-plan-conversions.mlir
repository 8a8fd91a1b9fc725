// RUN: gtp-opt %s --convert-gtp-to-plan | FileCheck %s

// Conversions between placements that are no gathered weight and no gradient.

#mesh = #gtp.mesh<dp = 2, gtp = 4>
#all = #gtp.placement<#mesh, [10, 4]>
#cut = #gtp.placement<#mesh, [10 stored (dp, gtp), 4]>
#ids = #gtp.placement<#mesh, [1, 8 cut (dp, gtp), 4]>
#id = #gtp.placement<#mesh, [8 cut (dp, gtp), 4]>
#scalar = #gtp.placement<#mesh, []>
#one = #gtp.placement<#mesh, [4]>
#eight = #gtp.placement<#mesh, [8]>
#partial = #gtp.placement<#mesh, [], sum (dp, gtp) in f64>

// CHECK: %[[W:.*]] = plan.buffer persistent 160 "w"
// CHECK: plan.communicator @gather_dp_gtp gather axes [0, 1]

tfm.parameter @w : tensor<10x4xf32> init "normal" tensors ["w" = 10]
func.func @train_step(%w: tensor<10x4xf32, #all> {tfm.arg = "weight", tfm.parameter = @w},
    %tokens: tensor<1x1x4xi32, #ids> {tfm.arg = "tokens"}, %hyper: tensor<8xf32, #eight> {tfm.arg = "hyper"})
    -> (tensor<10x4xf32, #all> {tfm.tied_to = 0 : i64}, tensor<f32, #scalar> {tfm.result = "loss"},
        tensor<f64, #scalar> {tfm.result = "grad_norm"})
    attributes {gtp.mesh = #mesh, gtp.partitioned} {
  // CHECK: plan.region body {
  %g, %l = tfm.microbatches (%t : tensor<1x4xi32, #id> in %tokens) : (tensor<1x1x4xi32, #ids>) -> (tensor<10x4xf32, #all>, tensor<f32, #scalar>) {
    // CHECK-NEXT: plan.kernel "full" @w(%[[G:.*]] <f32[10x4]>)
    // A sliced value has room for the pieces of all ranks, which are clean.
    // CHECK-NEXT: plan.fill(%[[G]] <i8[96], offset 160>)
    %g = tfm.full 1.0 : tensor<10x4xf32, #all>
    // Piece dp * 4 + gtp, of 2 rows of 16 bytes.
    // CHECK-NEXT: plan.copy(%[[G]] <f32[2x4], ranks [1, 32, 0, 128]>, %[[PIECE:.*]] <f32[2x4]>)
    %piece = gtp.slice %g dim 0 over (dp, gtp) : tensor<10x4xf32, #all> -> tensor<2x4xf32, #cut>
    // CHECK-NEXT: plan.collective all_gather @gather_dp_gtp on @w(%[[PIECE]] <f32[2x4]>, %[[AGAIN:.*]] <f32[16x4]>)
    %again = gtp.all_gather %piece dim 0 over (dp, gtp) : tensor<2x4xf32, #cut> -> tensor<10x4xf32, #all>
    // CHECK-NEXT: plan.kernel "add" @w(%[[AGAIN]] <f32[10x4]>, %[[SUM:.*]] <f32[10x4]>)
    %h = tfm.add %again : (tensor<10x4xf32, #all>) -> tensor<10x4xf32, #all>
    %loss = tfm.full 0.5 : tensor<f32, #scalar>
    tfm.yield %h, %loss : tensor<10x4xf32, #all>, tensor<f32, #scalar>
  }
  // CHECK: plan.region update {
  // CHECK-NEXT: plan.kernel "sum_squares"(%[[SUM]] <f32[10x4]>, %[[SQUARES:.*]] <f64[]>)
  %s = tfm.sum_squares %g : (tensor<10x4xf32, #all>) -> tensor<f64, #scalar>
  // CHECK-NEXT: plan.kernel "keep_first"(%[[SQUARES]] <f64[]>, %[[KEPT:.*]] <f64[]>) with {axes_mask = 3 : i64}
  %k = gtp.keep_first %s over (dp, gtp) : tensor<f64, #scalar> -> tensor<f64, #partial>
  // The result is where it is reported, and so is what it is made of.
  // CHECK-NEXT: plan.collective all_reduce @scalar_dp_gtp(%[[KEPT]] <f64[]>, %[[KEPT]] <f64[]>) wire f64 accumulate f64
  %n = gtp.all_reduce %k over (dp, gtp) : tensor<f64, #partial> -> tensor<f64, #scalar>
  %scale = tfm.full 1.0 : tensor<f32, #scalar>
  %new = tfm.sgd %w, %g, %hyper, %scale : (tensor<10x4xf32, #all>, tensor<10x4xf32, #all>, tensor<8xf32, #eight>, tensor<f32, #scalar>) -> tensor<10x4xf32, #all>
  return %new, %l, %n : tensor<10x4xf32, #all>, tensor<f32, #scalar>, tensor<f64, #scalar>
}
