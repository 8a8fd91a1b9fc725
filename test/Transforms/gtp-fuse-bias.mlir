// RUN: gtp-opt %s --gtp-fuse | FileCheck %s
// RUN: gtp-opt %s --gtp-fuse=off=true | FileCheck %s --check-prefix=OFF

// OFF-NOT: tfm.{{linear_bias|bias_gelu}}

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

// A product adds the bias, whatever comes behind it: the activation then reads
// one value and writes one.
#w = #gtp.placement<#mesh, [16, 8]>
#v = #gtp.placement<#mesh, [16]>
#y = #gtp.placement<#mesh, [1, 4, 16]>

// CHECK-LABEL: func @product_and_bias
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x4x8xbf16, #{{.*}}>, %[[W:[a-z0-9]+]]: tensor<16x8xbf16, #{{.*}}>, %[[B:[a-z0-9]+]]: tensor<16xbf16
// CHECK-NEXT: %[[S:.*]] = tfm.linear_bias %[[X]], %[[W]], %[[B]] : (tensor<1x4x8xbf16, #{{.*}}>, tensor<16x8xbf16, #{{.*}}>, tensor<16xbf16, #{{.*}}>) -> tensor<1x4x16xbf16, #{{.*}}>
// CHECK-NEXT: %[[Y:.*]] = tfm.gelu %[[S]]
// CHECK-NEXT: %[[D:.*]] = tfm.gelu_grad %[[Y]], %[[S]]
// CHECK-NEXT: return %[[D]]
func.func @product_and_bias(%x: tensor<1x4x8xbf16, #x>, %w: tensor<16x8xbf16, #w>, %b: tensor<16xbf16, #v>)
    -> tensor<1x4x16xbf16, #y> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %p = tfm.linear %x, %w : (tensor<1x4x8xbf16, #x>, tensor<16x8xbf16, #w>) -> tensor<1x4x16xbf16, #y>
  %s = tfm.add_bias %p, %b : (tensor<1x4x16xbf16, #y>, tensor<16xbf16, #v>) -> tensor<1x4x16xbf16, #y>
  %y = tfm.gelu %s {approximate} : (tensor<1x4x16xbf16, #y>) -> tensor<1x4x16xbf16, #y>
  %d = tfm.gelu_grad %y, %s {approximate} : (tensor<1x4x16xbf16, #y>, tensor<1x4x16xbf16, #y>) -> tensor<1x4x16xbf16, #y>
  return %d : tensor<1x4x16xbf16, #y>
}

// Something else reads the product.
// CHECK-LABEL: func @product_of_two_uses
// CHECK: tfm.linear %
// CHECK-NEXT: tfm.add_bias
// CHECK-NEXT: tfm.mul
func.func @product_of_two_uses(%x: tensor<1x4x8xf32, #x>, %w: tensor<16x8xf32, #w>, %b: tensor<16xf32, #v>)
    -> tensor<1x4x16xf32, #y> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %p = tfm.linear %x, %w : (tensor<1x4x8xf32, #x>, tensor<16x8xf32, #w>) -> tensor<1x4x16xf32, #y>
  %s = tfm.add_bias %p, %b : (tensor<1x4x16xf32, #y>, tensor<16xf32, #v>) -> tensor<1x4x16xf32, #y>
  %m = tfm.mul %s, %p : (tensor<1x4x16xf32, #y>, tensor<1x4x16xf32, #y>) -> tensor<1x4x16xf32, #y>
  return %m : tensor<1x4x16xf32, #y>
}

// A reduction stands between them: the bias goes with the activation.
#tp = #gtp.mesh<tp = 2>
#xk = #gtp.placement<#tp, [1, 4, 8 cut (tp)]>
#wk = #gtp.placement<#tp, [16, 8 cut (tp)]>
#sum = #gtp.placement<#tp, [1, 4, 16], sum (tp) in f32>
#yt = #gtp.placement<#tp, [1, 4, 16]>
#vt = #gtp.placement<#tp, [16]>

// CHECK-LABEL: func @reduced_product
// CHECK: %[[P:.*]] = tfm.linear %
// CHECK-NEXT: %[[R:.*]] = gtp.all_reduce %[[P]]
// CHECK-NEXT: tfm.bias_gelu %[[R]]
func.func @reduced_product(%x: tensor<1x4x4xf32, #xk>, %w: tensor<16x4xf32, #wk>, %b: tensor<16xf32, #vt>)
    -> tensor<1x4x16xf32, #yt> attributes {gtp.mesh = #tp, gtp.partitioned} {
  %p = tfm.linear %x, %w : (tensor<1x4x4xf32, #xk>, tensor<16x4xf32, #wk>) -> tensor<1x4x16xf32, #sum>
  %r = gtp.all_reduce %p over (tp) : tensor<1x4x16xf32, #sum> -> tensor<1x4x16xf32, #yt>
  %s = tfm.add_bias %r, %b : (tensor<1x4x16xf32, #yt>, tensor<16xf32, #vt>) -> tensor<1x4x16xf32, #yt>
  %y = tfm.gelu %s : (tensor<1x4x16xf32, #yt>) -> tensor<1x4x16xf32, #yt>
  return %y : tensor<1x4x16xf32, #yt>
}

// What is cut by rows has the rows' bias.
#wr = #gtp.placement<#tp, [16 cut (tp), 8]>
#xw = #gtp.placement<#tp, [1, 4, 8]>
#vr = #gtp.placement<#tp, [16 cut (tp)]>
#yr = #gtp.placement<#tp, [1, 4, 16 cut (tp)]>

// CHECK-LABEL: func @product_of_cut_rows
// CHECK: %[[Y:.*]] = tfm.linear_bias
// CHECK-NEXT: gtp.all_gather %[[Y]]
func.func @product_of_cut_rows(%x: tensor<1x4x8xf32, #xw>, %w: tensor<8x8xf32, #wr>, %b: tensor<8xf32, #vr>)
    -> tensor<1x4x16xf32, #yt> attributes {gtp.mesh = #tp, gtp.partitioned} {
  %p = tfm.linear %x, %w : (tensor<1x4x8xf32, #xw>, tensor<8x8xf32, #wr>) -> tensor<1x4x8xf32, #yr>
  %s = tfm.add_bias %p, %b : (tensor<1x4x8xf32, #yr>, tensor<8xf32, #vr>) -> tensor<1x4x8xf32, #yr>
  %g = gtp.all_gather %s dim 2 over (tp) : tensor<1x4x8xf32, #yr> -> tensor<1x4x16xf32, #yt>
  return %g : tensor<1x4x16xf32, #yt>
}
