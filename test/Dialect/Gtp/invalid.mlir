// RUN: gtp-opt %s --split-input-file --verify-diagnostics

// The numbers are those of the constraints of each op.

#mesh = #gtp.mesh<gtp = 4>
#weight = #gtp.placement<#mesh, [8 stored (gtp), 6]>
func.func @convert_c1_elements(%w: tensor<8x6xf32, #weight>) {
  // expected-error @below {{changes the element type from 'f32' to 'bf16'}}
  %0 = gtp.convert %w : tensor<8x6xf32, #weight> -> tensor<8x6xbf16, #weight>
  return
}

// -----

#a = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
#b = #gtp.placement<#gtp.mesh<gtp = 2>, [8]>
func.func @convert_c1_mesh(%w: tensor<8xf32, #a>) {
  // expected-error @below {{changes the mesh from #gtp.mesh<gtp = 4> to #gtp.mesh<gtp = 2>}}
  %0 = gtp.convert %w : tensor<8xf32, #a> -> tensor<8xf32, #b>
  return
}

// -----

#a = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
#b = #gtp.placement<#gtp.mesh<gtp = 4>, [9]>
func.func @convert_c1_logical_shape(%w: tensor<8xf32, #a>) {
  // expected-error @below {{changes the logical shape}}
  %0 = gtp.convert %w : tensor<8xf32, #a> -> tensor<9xf32, #b>
  return
}

// -----

#a = #gtp.placement<#gtp.mesh<gtp = 4>, [8 cut (gtp)]>
#b = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
func.func @convert_c2(%w: tensor<2xf32, #a>) {
  // expected-error @below {{expected the logical shape, found 'tensor<2xf32,}}
  %0 = gtp.convert %w : tensor<2xf32, #a> -> tensor<8xf32, #b>
  return
}

// -----

#a = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
func.func @no_placement(%w: tensor<8xf32>) {
  // expected-error @below {{operand #0 must be tensor with a placement, but got 'tensor<8xf32>'}}
  %0 = gtp.convert %w : tensor<8xf32> -> tensor<8xf32, #a>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>
func.func @materialize_c2(%w: tensor<8x6xf32, #weight>) {
  // expected-error @below {{expected the shape of a rank, 'tensor<2x6xf32,}}
  %0 = gtp.materialize %w plane forward interval 0 : tensor<8x6xf32, #weight> -> tensor<8x6xf32, #whole>
  return
}

// -----

#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>
func.func @materialize_c3_operand(%w: tensor<8x6xf32, #whole>) {
  // expected-error @below {{expected storage axes to cut one dimension of the operand, found #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>}}
  %0 = gtp.materialize %w plane forward interval 0 : tensor<8x6xf32, #whole> -> tensor<8x6xf32, #whole>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
#other = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6], sum (gtp) in f32>
func.func @materialize_c3_result(%w: tensor<2x6xf32, #weight>) {
  // expected-error @below {{expected the result's placement to be #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>, found}}
  %0 = gtp.materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> tensor<8x6xf32, #other>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>
func.func @materialize_interval(%w: tensor<2x6xf32, #weight>) {
  // expected-error @below {{attribute 'interval' failed to satisfy constraint}}
  %0 = gtp.materialize %w plane forward interval -1 : tensor<2x6xf32, #weight> -> tensor<8x6xf32, #whole>
  return
}

// -----

#cut = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8 cut (dp, gtp)]>
#major = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8 cut (gtp)]>
func.func @all_gather_c3_not_the_last_axis(%x: tensor<1xf32, #cut>) {
  // expected-error @below {{expected (dp) to be the last axes that cut dimension 0 of the operand, found #gtp.dim<8 cut (dp, gtp)>}}
  %0 = gtp.all_gather %x dim 0 over (dp) : tensor<1xf32, #cut> -> tensor<2xf32, #major>
  return
}

// -----

#cut = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8 cut (dp, gtp)]>
#whole = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8]>
func.func @all_gather_c3_result(%x: tensor<1xf32, #cut>) {
  // expected-error @below {{expected the result's placement to be #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8 cut (dp)]>, found}}
  %0 = gtp.all_gather %x dim 0 over (gtp) : tensor<1xf32, #cut> -> tensor<8xf32, #whole>
  return
}

// -----

#cut = #gtp.placement<#gtp.mesh<gtp = 4>, [8 cut (gtp)]>
#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
func.func @all_gather_c3_dimension(%x: tensor<2xf32, #cut>) {
  // expected-error @below {{dimension 1 of a tensor of rank 1}}
  %0 = gtp.all_gather %x dim 1 over (gtp) : tensor<2xf32, #cut> -> tensor<8xf32, #whole>
  return
}

// -----

#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
func.func @all_gather_c3_no_axes(%x: tensor<8xf32, #whole>) {
  // expected-error @below {{expected axes, found none}}
  %0 = gtp.all_gather %x dim 0 over () : tensor<8xf32, #whole> -> tensor<8xf32, #whole>
  return
}

// -----

#partial = #gtp.placement<#gtp.mesh<gtp = 4>, [8], max (gtp) in f32>
#cut = #gtp.placement<#gtp.mesh<gtp = 4>, [8 cut (gtp)]>
func.func @reduce_scatter_c3_kind(%x: tensor<8xf32, #partial>) {
  // expected-error @below {{expected a partial sum, found}}
  %0 = gtp.reduce_scatter %x dim 0 over (gtp) : tensor<8xf32, #partial> -> tensor<2xf32, #cut>
  return
}

// -----

#partial = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8], sum (dp) in f32>
#cut = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [8 cut (gtp)]>
func.func @reduce_scatter_c3_axes(%x: tensor<8xf32, #partial>) {
  // expected-error @below {{expected a value that is partial over (gtp), found}}
  %0 = gtp.reduce_scatter %x dim 0 over (gtp) : tensor<8xf32, #partial> -> tensor<2xf32, #cut>
  return
}

// -----

#partial = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6], sum (gtp) in f32>
#cut = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6 cut (gtp)]>
func.func @reduce_scatter_c4(%x: tensor<8x6xf32, #partial>) {
  // expected-error @below {{expected (gtp) to be the last axes that cut dimension 0 of the result, found #gtp.dim<8>}}
  %0 = gtp.reduce_scatter %x dim 0 over (gtp) : tensor<8x6xf32, #partial> -> tensor<8x2xf32, #cut>
  return
}

// -----

#partial = #gtp.placement<#gtp.mesh<gtp = 4>, [], sum (gtp) in i64>
#scalar = #gtp.placement<#gtp.mesh<gtp = 4>, []>
func.func @wire_of_a_count(%x: tensor<i64, #partial>) {
  // expected-error @below {{wire type 'f32' cannot carry 'i64'}}
  %0 = gtp.all_reduce %x over (gtp) wire f32 : tensor<i64, #partial> -> tensor<i64, #scalar>
  return
}

// -----

#partial = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [], sum (dp, gtp) in f32>
#scalar = #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, []>
func.func @all_reduce_c3(%x: tensor<f32, #partial>) {
  // expected-error @below {{expected the whole value's placement to be #gtp.placement<#gtp.mesh<dp = 2, gtp = 4>, [], sum (dp) in f32>, found}}
  %0 = gtp.all_reduce %x over (gtp) : tensor<f32, #partial> -> tensor<f32, #scalar>
  return
}

// -----

#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8], sum (gtp) in f32>
#cut = #gtp.placement<#gtp.mesh<gtp = 4>, [8 cut (gtp)]>
func.func @slice_c3_of_a_partial_value(%x: tensor<8xf32, #whole>) {
  // expected-error @below {{expected the operand's placement to be #gtp.placement<#gtp.mesh<gtp = 4>, [8]>, found}}
  %0 = gtp.slice %x dim 0 over (gtp) : tensor<8xf32, #whole> -> tensor<2xf32, #cut>
  return
}

// -----

#scalar = #gtp.placement<#gtp.mesh<gtp = 4>, []>
#partial = #gtp.placement<#gtp.mesh<gtp = 4>, [], max (gtp) in f32>
func.func @keep_first_c3(%x: tensor<f32, #scalar>) {
  // expected-error @below {{expected the result to be a partial sum, found}}
  %0 = gtp.keep_first %x over (gtp) : tensor<f32, #scalar> -> tensor<f32, #partial>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>
func.func @prefetch_c1_missing(%w: tensor<2x6xf32, #weight>) {
  // expected-error @below {{materialize needs 'interval'}}
  %0 = gtp.prefetch materialize %w plane forward : tensor<2x6xf32, #weight> -> !gtp.ticket<tensor<8x6xf32, #whole>>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>
func.func @prefetch_c1_extra(%w: tensor<2x6xf32, #weight>) {
  // expected-error @below {{materialize has no 'wire'}}
  %0 = gtp.prefetch materialize %w plane forward interval 0 wire f32 : tensor<2x6xf32, #weight> -> !gtp.ticket<tensor<8x6xf32, #whole>>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
func.func @prefetch_c2(%w: tensor<2x6xf32, #weight>) {
  // expected-error @below {{expected the result's placement to be #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>, found}}
  %0 = gtp.prefetch materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> !gtp.ticket<tensor<2x6xf32, #weight>>
  return
}

// -----

#weight = #gtp.placement<#gtp.mesh<gtp = 4>, [8 stored (gtp), 6]>
func.func @prefetch_c2_no_placement(%w: tensor<2x6xf32, #weight>) {
  // expected-error @below {{expected the ticket of a tensor with a placement, found '!gtp.ticket<tensor<8x6xf32>>'}}
  %0 = gtp.prefetch materialize %w plane forward interval 0 : tensor<2x6xf32, #weight> -> !gtp.ticket<tensor<8x6xf32>>
  return
}

// -----

#whole = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
func.func @release_c1(%x: tensor<8xf32, #whole>) -> tensor<8xf32, #whole> {
  // expected-error @below {{of a value that is used later}}
  gtp.release %x : tensor<8xf32, #whole>
  // expected-note @below {{used here}}
  return %x : tensor<8xf32, #whole>
}

// -----

#partial = #gtp.placement<#gtp.mesh<gtp = 4>, [], sum (gtp) in f32>
#scalar = #gtp.placement<#gtp.mesh<gtp = 4>, []>
func.func @release_c2(%x: tensor<f32, #partial>, %y: tensor<f32, #partial>) {
  // expected-note @below {{the collective reads another}}
  %t = gtp.prefetch all_reduce %x over (gtp) : tensor<f32, #partial> -> !gtp.ticket<tensor<f32, #scalar>>
  // expected-error @below {{expected the ticket of a collective that reads the value}}
  gtp.release %y after %t : tensor<f32, #partial>, !gtp.ticket<tensor<f32, #scalar>>
  return
}
