// RUN: gtp-opt %s --gtp-fuse | FileCheck %s

// The loss and the gradient of logits that nothing else reads.

#mesh = #gtp.mesh<gtp = 1>
#x = #gtp.placement<#mesh, [1, 4, 8]>
#l = #gtp.placement<#mesh, [1, 4]>
#s = #gtp.placement<#mesh, []>

// CHECK-LABEL: func @loss
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[L:[a-z0-9]+]]: tensor<1x4xi32, #{{.*}}>, %[[N:[a-z0-9]+]]: tensor<i64
// CHECK-NEXT: %[[LOGITS:.*]] = tfm.scale %[[X]]
// CHECK-NEXT: %[[ONE:.*]] = tfm.full
// CHECK-NEXT: %[[DX:.*]], %[[LOSS:.*]] = tfm.cross_entropy_in_place %[[LOGITS]], %[[L]], %[[N]], %[[ONE]] {sequence_mean}
// CHECK-NEXT: return %[[LOSS]], %[[DX]]
func.func @loss(%x: tensor<1x4x8xf32, #x>, %l: tensor<1x4xi32, #l>, %n: tensor<i64, #s>)
    -> (tensor<f32, #s>, tensor<1x4x8xf32, #x>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %y = tfm.scale %x {factor = 2.0 : f64} : (tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %loss = tfm.cross_entropy %y, %l, %n {sequence_mean} : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>) -> tensor<f32, #s>
  %one = tfm.full 1.0 : tensor<f32, #s>
  %dy = tfm.cross_entropy_grad %y, %l, %n, %one {sequence_mean} : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>, tensor<f32, #s>) -> tensor<1x4x8xf32, #x>
  return %loss, %dy : tensor<f32, #s>, tensor<1x4x8xf32, #x>
}

// Another op reads the logits; the gradient is of another mean; the gradient needs
// the loss.
// CHECK-LABEL: func @apart
// CHECK-NOT: in_place
func.func @apart(%x: tensor<1x4x8xf32, #x>, %l: tensor<1x4xi32, #l>, %n: tensor<i64, #s>)
    -> (tensor<f32, #s>, tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %one = tfm.full 1.0 : tensor<f32, #s>
  %y = tfm.scale %x {factor = 2.0 : f64} : (tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %loss = tfm.cross_entropy %y, %l, %n : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>) -> tensor<f32, #s>
  %dy = tfm.cross_entropy_grad %y, %l, %n, %one : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>, tensor<f32, #s>) -> tensor<1x4x8xf32, #x>
  %again = tfm.mul %y, %dy : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %z = tfm.scale %x {factor = 2.0 : f64} : (tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %other = tfm.cross_entropy %z, %l, %n : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>) -> tensor<f32, #s>
  %dz = tfm.cross_entropy_grad %z, %l, %n, %one {sequence_mean} : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>, tensor<f32, #s>) -> tensor<1x4x8xf32, #x>
  %v = tfm.scale %x {factor = 2.0 : f64} : (tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %last = tfm.cross_entropy %v, %l, %n : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>) -> tensor<f32, #s>
  %dv = tfm.cross_entropy_grad %v, %l, %n, %last : (tensor<1x4x8xf32, #x>, tensor<1x4xi32, #l>, tensor<i64, #s>, tensor<f32, #s>) -> tensor<1x4x8xf32, #x>
  %all = tfm.add %loss, %other : (tensor<f32, #s>, tensor<f32, #s>) -> tensor<f32, #s>
  return %all, %again, %dz, %dv : tensor<f32, #s>, tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>
}
