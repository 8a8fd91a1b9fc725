// RUN: gtp-opt %s --gtp-fuse | FileCheck %s

// A bias and the activation behind it, whose gradient reads what the bias gave.

#mesh = #gtp.mesh<gtp = 1>
#x = #gtp.placement<#mesh, [1, 4, 8]>
#b = #gtp.placement<#mesh, [8]>

// CHECK-LABEL: func @bias_and_gelu
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[B:[a-z0-9]+]]: tensor<8xf32
// CHECK-NEXT: %[[S:.*]], %[[Y:.*]] = tfm.bias_gelu %[[X]], %[[B]] {approximate}
// CHECK-NEXT: %[[D:.*]] = tfm.gelu_grad %[[Y]], %[[S]] {approximate}
// CHECK-NEXT: return %[[D]]
func.func @bias_and_gelu(%x: tensor<1x4x8xf32, #x>, %b: tensor<8xf32, #b>)
    -> tensor<1x4x8xf32, #x> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %s = tfm.add_bias %x, %b : (tensor<1x4x8xf32, #x>, tensor<8xf32, #b>) -> tensor<1x4x8xf32, #x>
  %y = tfm.gelu %s {approximate} : (tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %d = tfm.gelu_grad %y, %s {approximate} : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  return %d : tensor<1x4x8xf32, #x>
}
