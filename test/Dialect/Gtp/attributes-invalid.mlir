// RUN: gtp-opt %s --split-input-file --verify-diagnostics

// Mesh C1
// expected-error @below {{mesh names axis "gtp" twice}}
#mesh = #gtp.mesh<gtp = 2, gtp = 4>

// -----

// Mesh C2
// expected-error @below {{axis "gtp" has degree 0, expected at least 1}}
#mesh = #gtp.mesh<gtp = 0>

// -----

// Mesh C2
// expected-error @below {{mesh has more than 16777216 ranks}}
#mesh = #gtp.mesh<dp = 1048576, gtp = 1048576>

// -----

// Dim C1
// expected-error @below {{dimension has size 0, expected 1 to 2^40}}
#dim = #gtp.dim<0>

// -----

// Dim C1
// expected-error @below {{dimension has granule 0, expected 1 to 2^20}}
#dim = #gtp.dim<8 stored (gtp) granule 0>

// -----

// Dim C2
// expected-error @below {{dimension names segment "q" twice}}
#dim = #gtp.dim<8 {q = 4, q = 4}>

// -----

// Dim C2
// expected-error @below {{segments sum to 7 but the dimension has size 8}}
#dim = #gtp.dim<8 {q = 4, k = 3}>

// -----

// Dim C2
// expected-error @below {{segment "q" has size 9, expected 1 to the dimension's 8}}
#dim = #gtp.dim<8 {q = 9}>

// -----

// Dim C3
// expected-error @below {{axis "gtp" cuts a dimension twice}}
#dim = #gtp.dim<8 cut (gtp) stored (gtp)>

// -----

// Dim C4: only storage axes have a granule.
// expected-error @below {{expected '>'}}
#dim = #gtp.dim<8 cut (gtp) granule 4>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// Placement C1
// expected-error @below {{axis "tp" is not one of #gtp.mesh<dp = 2, gtp = 4>}}
#placement = #gtp.placement<#mesh, [8 cut (tp)]>

// -----

#mesh = #gtp.mesh<dp = 1, gtp = 4>
// Placement C1
// expected-error @below {{axis "dp" has degree 1 and cuts nothing: leave it out}}
#placement = #gtp.placement<#mesh, [8 cut (dp, gtp)]>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// Placement C2
// expected-error @below {{axis "gtp" is used twice in a placement}}
#placement = #gtp.placement<#mesh, [8 cut (gtp), 8 stored (gtp)]>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// Placement C2
// expected-error @below {{axis "gtp" is used twice in a placement}}
#placement = #gtp.placement<#mesh, [8 cut (gtp)], sum (gtp) in f32>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// Placement C3
// expected-error @below {{partial axes are not in the order of #gtp.mesh<dp = 2, gtp = 4>}}
#placement = #gtp.placement<#mesh, [8], sum (gtp, dp) in f32>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// Placement C3
// expected-error @below {{partial sum over 0 axes}}
#placement = #gtp.placement<#mesh, [8], sum () in f32>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// Placement C3
// expected-error @below {{accumulation type is 'bf16', expected i64, f32 or f64}}
#placement = #gtp.placement<#mesh, [8], sum (gtp) in bf16>

// -----

#mesh = #gtp.mesh<dp = 2, gtp = 4>
// expected-error @below {{expected sum or max, found mean}}
#placement = #gtp.placement<#mesh, [8], mean (gtp) in f32>

// -----

#placement = #gtp.placement<#gtp.mesh<gtp = 4>, [8]>
// Encoding E1
// expected-error @below {{placement has 1 dimensions but the tensor has 2}}
func.func private @rank(tensor<8x8xf32, #placement>)

// -----

#placement = #gtp.placement<#gtp.mesh<gtp = 4>, [9 stored (gtp) granule 2, 8]>
// Encoding E2: 5 granules over 4 ranks, 2 each.
// expected-error @below {{tensor has shape [3, 8], expected the placement's logical shape [9, 8] or that of a rank, [4, 8]}}
func.func private @shape(tensor<3x8xf32, #placement>)

// -----

#placement = #gtp.placement<#gtp.mesh<gtp = 4>, [8 cut (gtp)]>
// Encoding E2
// expected-error @below {{expected the placement's logical shape [8] or that of a rank, [2]}}
func.func private @dynamic(tensor<?xf32, #placement>)

// -----

#placement = #gtp.placement<#gtp.mesh<gtp = 4>, [], sum (gtp) in f32>
// Encoding E3
// expected-error @below {{partial tensor of 'i64' cannot accumulate in 'f32'}}
func.func private @count(tensor<i64, #placement>)

// -----

#placement = #gtp.placement<#gtp.mesh<gtp = 4>, [], sum (gtp) in f32>
// Encoding E3
// expected-error @below {{partial tensor of 'f64' cannot accumulate in 'f32'}}
func.func private @narrow(tensor<f64, #placement>)

// -----

// expected-error @below {{has attribute gtp.mesh, expected a mesh on a function}}
func.func private @mesh() attributes {gtp.mesh = 4 : i64}

// -----

// expected-error @below {{has attribute gtp.partitioned, expected a unit attribute on a function}}
func.func private @partitioned() attributes {gtp.partitioned = 4 : i64}

// -----

// expected-error @below {{has attribute gtp.pinned, expected a unit attribute on gtp.materialize}}
func.func private @pinned() attributes {gtp.pinned}

// -----

// expected-error @below {{has attribute gtp.trigger, expected an i64 on gtp.materialize}}
func.func private @trigger() attributes {gtp.trigger = 4 : i64}

// -----

// expected-error @below {{has attribute gtp.release_before, expected an i64 on gtp.reduce_scatter or gtp.all_reduce}}
func.func private @release() attributes {gtp.release_before = 4 : i64}

// -----

// Dim C4
// expected-error @below {{granule 4 without storage axes}}
#dim = #gtp.dim<8 stored () granule 4>

// -----

// An element type that does not parse has its own error, and no other.
#mesh = #gtp.mesh<dp = 1, gtp = 2>
#placement = #gtp.placement<#mesh, [], sum (gtp) in f32>
// expected-error @below {{expected non-function type}}
func.func private @noElementType() -> tensor<, #placement>
