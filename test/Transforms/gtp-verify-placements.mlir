// RUN: gtp-opt %s --gtp-verify-placements --split-input-file --verify-diagnostics

// expected-error @below {{expected attribute gtp.mesh: its values have no placement}}
func.func @no_mesh() {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
// expected-error @below {{has a tensor without a placement, of type 'tensor<8xf32>'}}
func.func @no_placement(%x: tensor<8xf32>) attributes {gtp.mesh = #mesh} {
  return
}

// -----

#x = #gtp.placement<#gtp.mesh<gtp = 2>, [8]>
// expected-error @below {{has a tensor placed on #gtp.mesh<gtp = 2> in a function of #gtp.mesh<gtp = 4>}}
func.func @another_mesh(%x: tensor<8xf32, #x>) attributes {gtp.mesh = #gtp.mesh<gtp = 4>} {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8 cut (gtp)]>
// expected-error @below {{in a function that is not partitioned, expected 'tensor<8xf32}}
func.func @shape_of_a_rank(%x: tensor<2xf32, #x>) attributes {gtp.mesh = #mesh} {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8 cut (gtp)]>
// expected-error @below {{in a function that is partitioned, expected 'tensor<2xf32}}
func.func @logical_shape(%x: tensor<8xf32, #x>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8, 6]>
func.func @conversion_is_left(%x: tensor<8x6xf32, #x>) -> tensor<8x6xf32, #x> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  // expected-error @below {{is left in a partitioned function}}
  %0 = gtp.convert %x : tensor<8x6xf32, #x> -> tensor<8x6xf32, #x>
  return %0 : tensor<8x6xf32, #x>
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8 cut (gtp), 4, 6]>
#w = #gtp.placement<#mesh, [12 stored (gtp), 6]>
#y = #gtp.placement<#mesh, [8 cut (gtp), 4, 12]>
func.func @weight_is_not_gathered(%x: tensor<8x4x6xf32, #x>, %w: tensor<12x6xf32, #w>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{operand #1 has placement #gtp.placement<#gtp.mesh<gtp = 4>, [12 stored (gtp), 6]>, expected #gtp.placement<#gtp.mesh<gtp = 4>, [12, 6]>}}
  %0 = tfm.linear %x, %w : (tensor<8x4x6xf32, #x>, tensor<12x6xf32, #w>) -> tensor<8x4x12xf32, #y>
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8 cut (gtp), 4, 6]>
#dw = #gtp.placement<#mesh, [6, 6]>
func.func @gradient_is_partial(%x: tensor<8x4x6xf32, #x>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{result #0 has placement #gtp.placement<#gtp.mesh<gtp = 4>, [6, 6]>, expected #gtp.placement<#gtp.mesh<gtp = 4>, [6, 6], sum (gtp) in f32>}}
  %0 = tfm.linear_wgrad %x, %x : (tensor<8x4x6xf32, #x>, tensor<8x4x6xf32, #x>) -> tensor<6x6xf32, #dw>
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8, 6], sum (gtp) in f32>
func.func @nonlinear_op_on_a_partial_value(%x: tensor<8x6xf32, #x>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{operand #0 has placement #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6], sum (gtp) in f32>, expected #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>}}
  %0 = tfm.swiglu %x, %x : (tensor<8x6xf32, #x>, tensor<8x6xf32, #x>) -> tensor<8x6xf32, #x>
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [8, 6], sum (gtp) in f32>
#y = #gtp.placement<#mesh, [8, 6]>
func.func @sum_of_partial_and_replicated(%x: tensor<8x6xf32, #x>, %y: tensor<8x6xf32, #y>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{operand #1 has placement #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6]>, expected #gtp.placement<#gtp.mesh<gtp = 4>, [8, 6], sum (gtp) in f32>}}
  %0 = tfm.add %x, %y : (tensor<8x6xf32, #x>, tensor<8x6xf32, #y>) -> tensor<8x6xf32, #x>
  return
}

// -----

// Linear ops pass a partial sum on.
#mesh = #gtp.mesh<dp = 2, gtp = 4>
#x = #gtp.placement<#mesh, [8 cut (dp), 6], sum (gtp) in f32>
func.func @linear_op_on_a_partial_value(%x: tensor<8x6xf32, #x>) attributes {gtp.mesh = #mesh} {
  %0 = tfm.add %x, %x : (tensor<8x6xf32, #x>, tensor<8x6xf32, #x>) -> tensor<8x6xf32, #x>
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [1, 8 cut (gtp), 4]>
#t = #gtp.placement<#mesh, [8, 4]>
func.func @microbatch_of_another_placement(%x: tensor<1x8x4xi32, #x>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{input has placement #gtp.placement<#gtp.mesh<gtp = 4>, [1, 8 cut (gtp), 4]> but one microbatch of it #gtp.placement<#gtp.mesh<gtp = 4>, [8, 4]>}}
  tfm.microbatches (%t : tensor<8x4xi32, #t> in %x) : (tensor<1x8x4xi32, #x>) -> () {
    tfm.yield
  }
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [4 cut (gtp), 8, 4]>
#t = #gtp.placement<#mesh, [8, 4]>
func.func @microbatches_are_not_cut(%x: tensor<4x8x4xi32, #x>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{expected inputs that are neither partial nor cut along dimension 0}}
  tfm.microbatches (%t : tensor<8x4xi32, #t> in %x) : (tensor<4x8x4xi32, #x>) -> () {
    tfm.yield
  }
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#x = #gtp.placement<#mesh, [1, 8, 4]>
#t = #gtp.placement<#mesh, [8, 4]>
#partial = #gtp.placement<#mesh, [], max (gtp) in f32>
func.func @sum_of_maxima(%x: tensor<1x8x4xi32, #x>, %y: tensor<f32, #partial>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{sums partial maxima, #gtp.placement<}}
  %0 = tfm.microbatches (%t : tensor<8x4xi32, #t> in %x) : (tensor<1x8x4xi32, #x>) -> (tensor<f32, #partial>) {
    tfm.yield %y : tensor<f32, #partial>
  }
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#partial = #gtp.placement<#mesh, [], sum (gtp) in f32>
func.func @returns_a_partial_value(%x: tensor<f32, #partial>) -> tensor<f32, #partial> attributes {gtp.mesh = #mesh} {
  // expected-error @below {{returns #gtp.placement<#gtp.mesh<gtp = 4>, [], sum (gtp) in f32> as result #0, expected #gtp.placement<#gtp.mesh<gtp = 4>, []>}}
  return %x : tensor<f32, #partial>
}
