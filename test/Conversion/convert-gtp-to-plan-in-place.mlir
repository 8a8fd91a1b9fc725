// RUN: gtp-opt %s --convert-gtp-to-plan | FileCheck %s

// What a kernel writes over an operand takes the operand's buffer if nothing else
// reads that, else that of a copy.

#mesh = #gtp.mesh<gtp = 1>
#all = #gtp.placement<#mesh, [10, 4]>
#ids = #gtp.placement<#mesh, [1, 1, 4]>
#id = #gtp.placement<#mesh, [1, 4]>
#logits = #gtp.placement<#mesh, [1, 4, 10]>
#scalar = #gtp.placement<#mesh, []>
#eight = #gtp.placement<#mesh, [8]>

tfm.parameter @w : tensor<10x4xf32> init "normal" tensors ["w" = 10]
func.func @train_step(%w: tensor<10x4xf32, #all> {tfm.arg = "weight", tfm.parameter = @w},
    %tokens: tensor<1x1x4xi32, #ids> {tfm.arg = "tokens"}, %hyper: tensor<8xf32, #eight> {tfm.arg = "hyper"})
    -> (tensor<10x4xf32, #all> {tfm.tied_to = 0 : i64}, tensor<f32, #scalar> {tfm.result = "loss"})
    attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %n = tfm.full 4.0 : tensor<i64, #scalar>
  %one = tfm.full 1.0 : tensor<f32, #scalar>
  // CHECK: plan.region body {
  %g, %l = tfm.microbatches (%t : tensor<1x4xi32, #id> in %tokens) : (tensor<1x1x4xi32, #ids>) -> (tensor<10x4xf32, #all>, tensor<f32, #scalar>) {
    %g = tfm.full 1.0 : tensor<10x4xf32, #all>
    // CHECK: plan.kernel "full"(%[[Y:.*]] <f32[1x4x10]>) with {value = 5.000000e-01 : f64}
    %y = tfm.full 0.5 : tensor<1x4x10xf32, #logits>
    // CHECK-NEXT: plan.kernel "cross_entropy_in_place"(%[[Y]] <f32[1x4x10]>, %{{.*}} <i32[1x4], iteration 16>, %{{.*}} <i64[]>, %{{.*}} <f32[]>, %[[LY:.*]] <f32[]>)
    %dy, %ly = tfm.cross_entropy_in_place %y, %t, %n, %one : (tensor<1x4x10xf32, #logits>, tensor<1x4xi32, #id>, tensor<i64, #scalar>, tensor<f32, #scalar>) -> (tensor<1x4x10xf32, #logits>, tensor<f32, #scalar>)
    // CHECK-NEXT: plan.kernel "full"(%[[Z:.*]] <f32[1x4x10]>) with {value = 2.500000e-01 : f64}
    %z = tfm.full 0.25 : tensor<1x4x10xf32, #logits>
    // CHECK-NEXT: plan.copy(%[[Z]] <f32[1x4x10]>, %[[COPY:.*]] <f32[1x4x10]>)
    // CHECK-NEXT: plan.kernel "cross_entropy_in_place"(%[[COPY]] <f32[1x4x10]>, {{.*}}, %[[LZ:.*]] <f32[]>)
    %dz, %lz = tfm.cross_entropy_in_place %z, %t, %n, %one : (tensor<1x4x10xf32, #logits>, tensor<1x4xi32, #id>, tensor<i64, #scalar>, tensor<f32, #scalar>) -> (tensor<1x4x10xf32, #logits>, tensor<f32, #scalar>)
    // CHECK-NEXT: plan.kernel "add"(%[[Y]] <f32[1x4x10]>, %[[Z]] <f32[1x4x10]>, %[[COPY]] <f32[1x4x10]>, %{{.*}} <f32[1x4x10]>)
    %both = tfm.add %dy, %z, %dz : (tensor<1x4x10xf32, #logits>, tensor<1x4x10xf32, #logits>, tensor<1x4x10xf32, #logits>) -> tensor<1x4x10xf32, #logits>
    // CHECK-NEXT: plan.kernel "add"(%[[LY]] <f32[]>, %[[LZ]] <f32[]>
    %loss = tfm.add %ly, %lz : (tensor<f32, #scalar>, tensor<f32, #scalar>) -> tensor<f32, #scalar>
    tfm.yield %g, %loss : tensor<10x4xf32, #all>, tensor<f32, #scalar>
  }
  %new = tfm.sgd %w, %g, %hyper, %one : (tensor<10x4xf32, #all>, tensor<10x4xf32, #all>, tensor<8xf32, #eight>, tensor<f32, #scalar>) -> tensor<10x4xf32, #all>
  return %new, %l : tensor<10x4xf32, #all>, tensor<f32, #scalar>
}
