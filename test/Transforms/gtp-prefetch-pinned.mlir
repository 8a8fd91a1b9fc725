// RUN: gtp-opt %s --gtp-prefetch=sync | FileCheck %s

#mesh = #gtp.mesh<dp = 2, gtp = 4>
#stored = #gtp.placement<#mesh, [12 stored (gtp), 12]>
#whole = #gtp.placement<#mesh, [12, 12]>
#x = #gtp.placement<#mesh, [8 cut (dp, gtp), 4, 12]>

// Everything is synchronous but what is decided by hand.
// CHECK-LABEL: func @pinned
// CHECK-NEXT: %[[T:.*]] = gtp.prefetch materialize %arg2 plane forward interval 1 :
// CHECK-NEXT: %[[W0:.*]] = gtp.materialize %arg1 plane forward interval 0 :
// CHECK-NEXT: %[[Y0:.*]] = tfm.linear %arg0, %[[W0]]
// CHECK-NEXT: %[[W1:.*]] = gtp.await %[[T]]
// CHECK-NEXT: tfm.linear %[[Y0]], %[[W1]]
// CHECK-NEXT: gtp.release %[[W1]]
// CHECK-NEXT: gtp.all_gather
func.func @pinned(%x: tensor<1x4x12xf32, #x>, %a: tensor<3x12xf32, #stored>, %b: tensor<3x12xf32, #stored>) -> tensor<8x4x12xf32, #gtp.placement<#mesh, [8, 4, 12]>> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %w0 = gtp.materialize %a plane forward interval 0 {gtp.trigger = -1 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y0 = tfm.linear %x, %w0 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %w1 = gtp.materialize %b plane forward interval 1 {gtp.pinned, gtp.trigger = -1 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  %y1 = tfm.linear %y0, %w1 : (tensor<1x4x12xf32, #x>, tensor<12x12xf32, #whole>) -> tensor<1x4x12xf32, #x>
  %t = gtp.all_gather %y1 dim 0 over (dp, gtp) : tensor<1x4x12xf32, #x> -> tensor<8x4x12xf32, #gtp.placement<#mesh, [8, 4, 12]>>
  return %t : tensor<8x4x12xf32, #gtp.placement<#mesh, [8, 4, 12]>>
}
