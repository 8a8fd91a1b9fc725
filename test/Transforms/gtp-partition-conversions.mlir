// RUN: gtp-opt %s --gtp-partition | FileCheck %s

// The steps of single conversions, with their order. Parameters of the functions
// would be gathered as weights; a tfm.add in front makes them ordinary values.

#mesh = #gtp.mesh<dp = 2, gtp = 4, tp = 3>
#whole = #gtp.placement<#mesh, [16, 12]>
#rows = #gtp.placement<#mesh, [16 stored (gtp) granule 2, 12]>
#cut = #gtp.placement<#mesh, [16 cut (dp, gtp), 12]>
#cut_dp = #gtp.placement<#mesh, [16 cut (dp), 12]>
#columns = #gtp.placement<#mesh, [16, 12 cut (gtp)]>
#partial = #gtp.placement<#mesh, [16, 12], sum (dp, gtp) in f32>
#partial_dp = #gtp.placement<#mesh, [16, 12], sum (dp) in f32>
#partial_gtp = #gtp.placement<#mesh, [16, 12], sum (gtp) in f32>
#cut_dp_partial = #gtp.placement<#mesh, [16 cut (dp), 12], sum (gtp) in f32>
#nested = #gtp.placement<#mesh, [16 cut (tp) stored (gtp), 12]>
#partial_all = #gtp.placement<#mesh, [16, 12], sum (dp, gtp, tp) in f32>

// CHECK-LABEL: func @partial_to_storage_cut
func.func @partial_to_storage_cut(%x: tensor<16x12xf32, #partial>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.reduce_scatter %arg0 dim 0 over (gtp) wire f32 : tensor<16x12xf32, {{.*}}> -> tensor<4x12xf32
  // CHECK-NEXT: gtp.all_reduce %[[A]] over (dp) wire f32 : tensor<4x12xf32, {{.*}}> -> tensor<4x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial> -> tensor<16x12xf32, #rows>
  return
}

// CHECK-LABEL: func @partial_to_replicated
func.func @partial_to_replicated(%x: tensor<16x12xf32, #partial>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.all_reduce %arg0 over (dp, gtp) wire f32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial> -> tensor<16x12xf32, #whole>
  return
}

// CHECK-LABEL: func @partial_to_less_partial
func.func @partial_to_less_partial(%x: tensor<16x12xf32, #partial>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.all_reduce %arg0 over (gtp) wire f32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial> -> tensor<16x12xf32, #partial_dp>
  return
}

// CHECK-LABEL: func @partial_to_compute_cut
func.func @partial_to_compute_cut(%x: tensor<16x12xf32, #partial>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.reduce_scatter %arg0 dim 0 over (dp, gtp) wire f32 : tensor<16x12xf32, {{.*}}> -> tensor<2x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial> -> tensor<16x12xf32, #cut>
  return
}

// The major axis is scattered, the minor one cut.
// CHECK-LABEL: func @partial_over_the_major_axis_to_cut
func.func @partial_over_the_major_axis_to_cut(%x: tensor<16x12xf32, #partial_dp>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.reduce_scatter %arg0 dim 0 over (dp) wire f32 : tensor<16x12xf32, {{.*}}> -> tensor<8x12xf32
  // CHECK-NEXT: gtp.slice %[[A]] dim 0 over (gtp) : tensor<8x12xf32, {{.*}}> -> tensor<2x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial_dp> -> tensor<16x12xf32, #cut>
  return
}

// Storage axes cut what compute axes leave: a step of their own.
// CHECK-LABEL: func @partial_to_nested_cut
func.func @partial_to_nested_cut(%x: tensor<16x12xf32, #partial_all>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.reduce_scatter %arg0 dim 0 over (tp) wire f32 : tensor<16x12xf32, {{.*}}> -> tensor<6x12xf32
  // CHECK-NEXT: %[[B:.*]] = gtp.reduce_scatter %[[A]] dim 0 over (gtp) wire f32 : tensor<6x12xf32, {{.*}}> -> tensor<2x12xf32
  // CHECK-NEXT: gtp.all_reduce %[[B]] over (dp) wire f32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial_all> -> tensor<16x12xf32, #nested>
  return
}

// What is reduced is reduced before it grows.
// CHECK-LABEL: func @cut_and_partial_to_replicated
func.func @cut_and_partial_to_replicated(%x: tensor<16x12xf32, #cut_dp_partial>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.all_reduce %arg0 over (gtp) wire f32 : tensor<8x12xf32
  // CHECK-NEXT: gtp.all_gather %[[A]] dim 0 over (dp) : tensor<8x12xf32, {{.*}}> -> tensor<16x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #cut_dp_partial> -> tensor<16x12xf32, #whole>
  return
}

// CHECK-LABEL: func @cut_to_replicated
func.func @cut_to_replicated(%x: tensor<16x12xf32, #cut>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.all_gather %arg0 dim 0 over (dp, gtp) : tensor<2x12xf32, {{.*}}> -> tensor<16x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #cut> -> tensor<16x12xf32, #whole>
  return
}

// CHECK-LABEL: func @cut_to_coarser_cut
func.func @cut_to_coarser_cut(%x: tensor<16x12xf32, #cut>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.all_gather %arg0 dim 0 over (gtp) : tensor<2x12xf32, {{.*}}> -> tensor<8x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #cut> -> tensor<16x12xf32, #cut_dp>
  return
}

// CHECK-LABEL: func @replicated_to_cut
func.func @replicated_to_cut(%x: tensor<16x12xf32, #whole>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.slice %arg0 dim 0 over (dp, gtp) : tensor<16x12xf32, {{.*}}> -> tensor<2x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #whole> -> tensor<16x12xf32, #cut>
  return
}

// An axis has to leave one dimension before it can cut another.
// CHECK-LABEL: func @an_axis_changes_dimension
func.func @an_axis_changes_dimension(%x: tensor<16x12xf32, #columns>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.all_gather %arg0 dim 1 over (gtp) : tensor<16x3xf32, {{.*}}> -> tensor<16x12xf32
  // CHECK-NEXT: gtp.slice %[[A]] dim 0 over (gtp) : tensor<16x12xf32, {{.*}}> -> tensor<4x12xf32
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #columns> -> tensor<16x12xf32, #rows>
  return
}

// CHECK-LABEL: func @replicated_to_partial
func.func @replicated_to_partial(%x: tensor<16x12xf32, #whole>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.keep_first %arg0 over (dp, gtp)
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #whole> -> tensor<16x12xf32, #partial>
  return
}

// CHECK-LABEL: func @partial_to_more_partial
func.func @partial_to_more_partial(%x: tensor<16x12xf32, #partial_gtp>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: gtp.keep_first %arg0 over (dp)
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial_gtp> -> tensor<16x12xf32, #partial>
  return
}

// CHECK-LABEL: func @partial_over_another_axis
func.func @partial_over_another_axis(%x: tensor<16x12xf32, #partial_gtp>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.all_reduce %arg0 over (gtp) wire f32
  // CHECK-NEXT: gtp.keep_first %[[A]] over (dp)
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #partial_gtp> -> tensor<16x12xf32, #partial_dp>
  return
}

// CHECK-LABEL: func @weight_of_the_function
func.func @weight_of_the_function(%x: tensor<16x12xf32, #rows>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = gtp.materialize %arg0 plane forward interval 0 : tensor<4x12xf32, {{.*}}> -> tensor<16x12xf32
  // CHECK-NEXT: %[[B:.*]] = tfm.swiglu %[[A]], %[[A]]
  // CHECK-NEXT: tfm.swiglu %[[B]], %[[A]]
  // CHECK-NEXT: return
  %0 = gtp.convert %x : tensor<16x12xf32, #rows> -> tensor<16x12xf32, #whole>
  %1 = gtp.convert %x : tensor<16x12xf32, #rows> -> tensor<16x12xf32, #whole>
  %2 = tfm.swiglu %0, %1 : (tensor<16x12xf32, #whole>, tensor<16x12xf32, #whole>) -> tensor<16x12xf32, #whole>
  %3 = tfm.swiglu %2, %1 : (tensor<16x12xf32, #whole>, tensor<16x12xf32, #whole>) -> tensor<16x12xf32, #whole>
  return
}

// Not a weight: it is computed here.
// CHECK-LABEL: func @shards_of_another_value
func.func @shards_of_another_value(%x: tensor<16x12xf32, #rows>) attributes {gtp.mesh = #mesh} {
  // CHECK-NEXT: %[[A:.*]] = tfm.add
  // CHECK-NEXT: gtp.all_gather %[[A]] dim 0 over (gtp) : tensor<4x12xf32, {{.*}}> -> tensor<16x12xf32
  // CHECK-NEXT: return
  %0 = tfm.add %x, %x : (tensor<16x12xf32, #rows>, tensor<16x12xf32, #rows>) -> tensor<16x12xf32, #rows>
  %1 = gtp.convert %0 : tensor<16x12xf32, #rows> -> tensor<16x12xf32, #whole>
  return
}
