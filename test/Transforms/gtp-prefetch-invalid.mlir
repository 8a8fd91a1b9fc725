// RUN: gtp-opt %s --gtp-prefetch --split-input-file --verify-diagnostics

// expected-error @below {{gtp-prefetch: expected a partitioned function; run gtp-partition first}}
func.func @not_partitioned() {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#stored = #gtp.placement<#mesh, [12 stored (gtp), 12]>
#whole = #gtp.placement<#mesh, [12, 12]>
func.func @trigger_behind_itself(%w: tensor<3x12xf32, #stored>) -> tensor<12x12xf32, #whole> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  // expected-error @below {{has gtp.trigger = 0 at position 0 of its block, expected -1 to -1}}
  %0 = gtp.materialize %w plane forward interval 0 {gtp.trigger = 0 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  return %0 : tensor<12x12xf32, #whole>
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#stored = #gtp.placement<#mesh, [12 stored (gtp), 12]>
#whole = #gtp.placement<#mesh, [12, 12]>
func.func @trigger_before_the_operand(%w: tensor<3x12xf32, #stored>) -> tensor<12x12xf32, #whole> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %0 = tfm.add %w, %w : (tensor<3x12xf32, #stored>, tensor<3x12xf32, #stored>) -> tensor<3x12xf32, #stored>
  // expected-error @below {{is triggered before its operand is defined}}
  %1 = gtp.materialize %0 plane forward interval 0 {gtp.trigger = -1 : i64} : tensor<3x12xf32, #stored> -> tensor<12x12xf32, #whole>
  return %1 : tensor<12x12xf32, #whole>
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#partial = #gtp.placement<#mesh, [], sum (gtp) in f32>
#scalar = #gtp.placement<#mesh, []>
func.func @release_before_itself(%x: tensor<f32, #partial>) -> tensor<f32, #scalar> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %0 = tfm.add %x, %x : (tensor<f32, #partial>, tensor<f32, #partial>) -> tensor<f32, #partial>
  // expected-error @below {{has gtp.release_before = 1 at position 1 of its block, expected 2 to 2}}
  %1 = gtp.all_reduce %0 over (gtp) {gtp.release_before = 1 : i64} : tensor<f32, #partial> -> tensor<f32, #scalar>
  return %1 : tensor<f32, #scalar>
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#partial = #gtp.placement<#mesh, [], sum (gtp) in f32>
#scalar = #gtp.placement<#mesh, []>
func.func @release_before_a_use(%x: tensor<f32, #partial>) -> tensor<f32, #scalar> attributes {gtp.mesh = #mesh, gtp.partitioned} {
  %0 = tfm.add %x, %x : (tensor<f32, #partial>, tensor<f32, #partial>) -> tensor<f32, #partial>
  // expected-error @below {{has gtp.release_before = 2 but its operand is used at position 2}}
  %1 = gtp.all_reduce %0 over (gtp) {gtp.release_before = 2 : i64} : tensor<f32, #partial> -> tensor<f32, #scalar>
  %2 = tfm.add %0, %0 : (tensor<f32, #partial>, tensor<f32, #partial>) -> tensor<f32, #partial>
  return %1 : tensor<f32, #scalar>
}
