// RUN: gtp-opt %s --canonicalize --cse | FileCheck %s

#mesh = #gtp.mesh<gtp = 4>
#weight = #gtp.placement<#mesh, [8 stored (gtp), 6]>
#whole = #gtp.placement<#mesh, [8, 6]>

// CHECK-LABEL: func @conversion_to_the_same_placement
func.func @conversion_to_the_same_placement(%w: tensor<8x6xf32, #weight>) -> tensor<8x6xf32, #weight> {
  // CHECK-NEXT: return %arg0
  %0 = gtp.convert %w : tensor<8x6xf32, #weight> -> tensor<8x6xf32, #weight>
  return %0 : tensor<8x6xf32, #weight>
}

// CHECK-LABEL: func @intervals_stay_apart
func.func @intervals_stay_apart(%w: tensor<2x6xf32, #weight>) -> (tensor<8x6xf32, #whole>, tensor<8x6xf32, #whole>, tensor<8x6xf32, #whole>) {
  // CHECK-NEXT: %[[A:.*]] = gtp.materialize %arg0 plane forward interval 0
  // CHECK-NEXT: %[[B:.*]] = gtp.materialize %arg0 plane forward interval 1
  // CHECK-NEXT: return %[[A]], %[[B]], %[[A]]
  %0 = gtp.materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> tensor<8x6xf32, #whole>
  %1 = gtp.materialize %w plane forward interval 1 : tensor<2x6xf32, #weight> -> tensor<8x6xf32, #whole>
  %2 = gtp.materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> tensor<8x6xf32, #whole>
  return %0, %1, %2 : tensor<8x6xf32, #whole>, tensor<8x6xf32, #whole>, tensor<8x6xf32, #whole>
}

// CHECK-LABEL: func @collectives_in_flight_stay
func.func @collectives_in_flight_stay(%w: tensor<2x6xf32, #weight>) {
  // CHECK-COUNT-2: gtp.prefetch
  // CHECK: gtp.await
  // CHECK: gtp.release
  %0 = gtp.prefetch materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> !gtp.ticket<tensor<8x6xf32, #whole>>
  %1 = gtp.prefetch materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> !gtp.ticket<tensor<8x6xf32, #whole>>
  %2 = gtp.await %0 : !gtp.ticket<tensor<8x6xf32, #whole>>
  gtp.release %2 : tensor<8x6xf32, #whole>
  return
}
