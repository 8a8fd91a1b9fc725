// RUN: gtp-opt %s --gtp-fuse | FileCheck %s
// RUN: gtp-opt %s --gtp-fuse=off=true | FileCheck %s --check-prefix=OFF

// Norms of sums, and their gradients.

// OFF-NOT: tfm.{{add_rms_norm|add_layer_norm|rms_norm_grad_add|layer_norm_grad_add}}

#mesh = #gtp.mesh<gtp = 1>
#x = #gtp.placement<#mesh, [1, 4, 8]>
#w = #gtp.placement<#mesh, [8]>

// CHECK-LABEL: func @sum_and_norm
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[B:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[W:[a-z0-9]+]]: tensor<8xf32
func.func @sum_and_norm(%a: tensor<1x4x8xf32, #x>, %b: tensor<1x4x8xf32, #x>, %w: tensor<8xf32, #w>)
    -> (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %s = tfm.add %a, %b : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %n = tfm.rms_norm %s, %w {eps = 1.0e-5 : f64, unit_offset} : (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  // CHECK-NEXT: %[[S:.*]], %[[N:.*]] = tfm.add_rms_norm %[[A]], %[[B]], %[[W]] {eps = 1.000000e-05 : f64, unit_offset}
  // CHECK-NEXT: return %[[N]], %[[S]]
  return %n, %s : tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>
}

// CHECK-LABEL: func @one_norm_of_two
// CHECK: %[[S:.*]], %[[N:.*]] = tfm.add_layer_norm %{{.*}}, %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64}
// CHECK-NEXT: %[[M:.*]] = tfm.layer_norm %[[S]]
// CHECK-NEXT: return %[[N]], %[[M]]
func.func @one_norm_of_two(%a: tensor<1x4x8xf32, #x>, %b: tensor<1x4x8xf32, #x>, %w: tensor<8xf32, #w>)
    -> (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %s = tfm.add %a, %b : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %n = tfm.layer_norm %s, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  %m = tfm.layer_norm %s, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  return %n, %m : tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>
}

// The sum is used before the norm, so it cannot wait for it; a sum of three is
// not what the kernel takes.
// CHECK-LABEL: func @used_between
// CHECK: tfm.add %
// CHECK-NEXT: tfm.mul
// CHECK-NEXT: tfm.rms_norm
// CHECK-NEXT: tfm.add %
// CHECK-NEXT: tfm.rms_norm
func.func @used_between(%a: tensor<1x4x8xf32, #x>, %b: tensor<1x4x8xf32, #x>, %w: tensor<8xf32, #w>)
    -> tensor<1x4x8xf32, #x> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %s = tfm.add %a, %b : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %m = tfm.mul %s, %s : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %n = tfm.rms_norm %s, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  %t = tfm.add %m, %n, %a : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %r = tfm.rms_norm %t, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  return %r : tensor<1x4x8xf32, #x>
}

// Where the gradient of the norm stood: that of the weight is used before the sum.
// CHECK-LABEL: func @gradients
// CHECK-SAME: %[[DY:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[X:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[R:[a-z0-9]+]]: tensor<1x4x8xf32, #{{.*}}>, %[[W:[a-z0-9]+]]: tensor<8xf32
// CHECK-NEXT: %[[DX:.*]], %[[DW:.*]] = tfm.rms_norm_grad_add %[[DY]], %[[X]], %[[W]], %[[R]] {eps = 1.000000e-05 : f64}
// CHECK-NEXT: %[[TWICE:.*]] = tfm.mul %[[DW]], %[[DW]]
// A weight that is not trained has no gradient; the sum may have it first.
// CHECK-NEXT: %[[DZ:.*]] = tfm.layer_norm_grad_add %[[DX]], %[[X]], %[[W]], %[[DX]]
// CHECK-NEXT: return %[[DZ]], %[[TWICE]]
func.func @gradients(%dy: tensor<1x4x8xf32, #x>, %x: tensor<1x4x8xf32, #x>, %r: tensor<1x4x8xf32, #x>, %w: tensor<8xf32, #w>)
    -> (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %dx, %dw = tfm.rms_norm_grad %dy, %x, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> (tensor<1x4x8xf32, #x>, tensor<8xf32, #w>)
  %twice = tfm.mul %dw, %dw : (tensor<8xf32, #w>, tensor<8xf32, #w>) -> tensor<8xf32, #w>
  %s = tfm.add %r, %dx : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %d = tfm.layer_norm_grad %s, %x, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  %t = tfm.add %d, %s : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  return %t, %twice : tensor<1x4x8xf32, #x>, tensor<8xf32, #w>
}

// What is added is not there yet.
// CHECK-LABEL: func @later
// CHECK: tfm.rms_norm_grad %
// CHECK-NEXT: tfm.mul
// CHECK-NEXT: tfm.add %
func.func @later(%dy: tensor<1x4x8xf32, #x>, %x: tensor<1x4x8xf32, #x>, %w: tensor<8xf32, #w>)
    -> tensor<1x4x8xf32, #x> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %dx = tfm.rms_norm_grad %dy, %x, %w {eps = 1.0e-5 : f64} : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>, tensor<8xf32, #w>) -> tensor<1x4x8xf32, #x>
  %r = tfm.mul %dy, %x : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  %s = tfm.add %r, %dx : (tensor<1x4x8xf32, #x>, tensor<1x4x8xf32, #x>) -> tensor<1x4x8xf32, #x>
  return %s : tensor<1x4x8xf32, #x>
}
