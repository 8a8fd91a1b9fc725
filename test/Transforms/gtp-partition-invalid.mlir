// RUN: gtp-opt %s --gtp-partition --split-input-file --verify-diagnostics

// expected-error @below {{expected attribute gtp.mesh: its values have no placement}}
func.func @not_placed() {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
// expected-error @below {{gtp-partition: is partitioned already}}
func.func @twice() attributes {gtp.mesh = #mesh, gtp.partitioned} {
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#sum = #gtp.placement<#mesh, [8], sum (gtp) in f32>
#max = #gtp.placement<#mesh, [8], max (gtp) in f32>
func.func @kind(%x: tensor<8xf32, #sum>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{has no conversion between partial values of different kind or accumulation type}}
  %0 = gtp.convert %x : tensor<8xf32, #sum> -> tensor<8xf32, #max>
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#whole = #gtp.placement<#mesh, [8]>
#max = #gtp.placement<#mesh, [8], max (gtp) in f32>
func.func @maximum(%x: tensor<8xf32, #whole>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{has no conversion to a partial maximum}}
  %0 = gtp.convert %x : tensor<8xf32, #whole> -> tensor<8xf32, #max>
  return
}

// -----

#mesh = #gtp.mesh<gtp = 4>
#a = #gtp.placement<#mesh, [8]>
#b = #gtp.placement<#mesh, [8 {q = 4, k = 4}]>
func.func @segments(%x: tensor<8xf32, #a>) attributes {gtp.mesh = #mesh} {
  // expected-error @below {{has no conversion from}}
  %0 = gtp.convert %x : tensor<8xf32, #a> -> tensor<8xf32, #b>
  return
}
