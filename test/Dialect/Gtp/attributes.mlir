// RUN: gtp-opt %s | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --mlir-print-op-generic | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --emit-bytecode | gtp-opt | FileCheck %s

// A tensor of the wrong shape does not parse: the shapes below are the test of
// the arithmetic.

// CHECK-DAG: #[[MESH:.*]] = #gtp.mesh<dp = 2, gtp = 4, tp = 3>
// CHECK-DAG: #[[ONE:.*]] = #gtp.mesh<>
// CHECK-DAG: #[[QUOTED:.*]] = #gtp.mesh<"strange axis" = 2>
#mesh = #gtp.mesh<dp = 2, gtp = 4, tp = 3>
#one = #gtp.mesh<>

// CHECK-DAG: #[[TOKENS:.*]] = #gtp.placement<#[[MESH]], [24 cut (dp, gtp), 16]>
// CHECK-DAG: #[[RAGGED:.*]] = #gtp.placement<#[[MESH]], [25 cut (dp, gtp), 16]>
// CHECK-DAG: #[[WEIGHT:.*]] = #gtp.placement<#[[MESH]], [257 stored (gtp) granule 4, 77]>
// CHECK-DAG: #[[SMALL:.*]] = #gtp.placement<#[[MESH]], [3 stored (gtp) granule 4, 77]>
// CHECK-DAG: #[[NESTED:.*]] = #gtp.placement<#[[MESH]], [257 cut (tp) stored (gtp), 77]>
// CHECK-DAG: #[[SEGMENTS:.*]] = #gtp.placement<#[[MESH]], [97 {q = 65, k = 16, v = 16} cut (tp) stored (gtp) granule 4, 77]>
// CHECK-DAG: #[[TWO:.*]] = #gtp.placement<#[[MESH]], [8 stored (gtp), 9 cut (tp)]>
// CHECK-DAG: #[[PARTIAL:.*]] = #gtp.placement<#[[MESH]], [257, 77 cut (tp)], sum (dp, gtp) in f32>
// CHECK-DAG: #[[MAXIMUM:.*]] = #gtp.placement<#[[MESH]], [16], max (tp) in f32>
// CHECK-DAG: #[[COUNT:.*]] = #gtp.placement<#[[MESH]], [], sum (dp, gtp) in i64>
// CHECK-DAG: #[[SCALAR:.*]] = #gtp.placement<#[[ONE]], []>
#tokens = #gtp.placement<#mesh, [24 cut (dp, gtp), 16]>
#ragged = #gtp.placement<#mesh, [25 cut (dp, gtp), 16]>
#weight = #gtp.placement<#mesh, [257 stored (gtp) granule 4, 77]>
#small = #gtp.placement<#mesh, [3 stored (gtp) granule 4, 77]>
#nested = #gtp.placement<#mesh, [257 cut (tp) stored (gtp), 77]>
#segments = #gtp.placement<#mesh, [97 {q = 65, k = 16, v = 16} cut (tp) stored (gtp) granule 4, 77]>
#two = #gtp.placement<#mesh, [8 stored (gtp), 9 cut (tp)]>
#partial = #gtp.placement<#mesh, [257, 77 cut (tp)], sum (dp, gtp) in f32>
#maximum = #gtp.placement<#mesh, [16], max (tp) in f32>
#count = #gtp.placement<#mesh, [], sum (dp, gtp) in i64>
#scalar = #gtp.placement<#one, []>

// CHECK: func private @logical_shapes(tensor<24x16xi32, #[[TOKENS]]>, tensor<257x77xbf16, #[[WEIGHT]]>, tensor<97x77xf32, #[[SEGMENTS]]>)
func.func private @logical_shapes(tensor<24x16xi32, #tokens>, tensor<257x77xbf16, #weight>, tensor<97x77xf32, #segments>)

// CHECK: func private @shapes_of_a_rank(tensor<3x16xi32, #[[TOKENS]]>)
func.func private @shapes_of_a_rank(tensor<3x16xi32, #tokens>)

// 25 / 8 rounds up.
// CHECK: func private @cuts_round_up(tensor<4x16xi32, #[[RAGGED]]>)
func.func private @cuts_round_up(tensor<4x16xi32, #ragged>)

// 65 granules of 4 rows over 4 ranks: 17 each.
// CHECK: func private @storage_cuts_whole_granules(tensor<68x77xf32, #[[WEIGHT]]>)
func.func private @storage_cuts_whole_granules(tensor<68x77xf32, #weight>)

// CHECK: func private @a_granule_of_a_small_weight(tensor<4x77xf32, #[[SMALL]]>)
func.func private @a_granule_of_a_small_weight(tensor<4x77xf32, #small>)

// ceil(257 / 3) = 86, ceil(86 / 4) = 22.
// CHECK: func private @cuts_nest(tensor<22x77xf32, #[[NESTED]]>)
func.func private @cuts_nest(tensor<22x77xf32, #nested>)

// ceil(65/3) + ceil(16/3) + ceil(16/3) = 22 + 6 + 6 = 34: 9 granules, 3 each.
// CHECK: func private @segments_are_cut_one_by_one(tensor<12x77xf32, #[[SEGMENTS]]>)
func.func private @segments_are_cut_one_by_one(tensor<12x77xf32, #segments>)

// CHECK: func private @two_dimensions(tensor<2x3xf32, #[[TWO]]>)
func.func private @two_dimensions(tensor<2x3xf32, #two>)

// CHECK: func private @partial(tensor<257x26xbf16, #[[PARTIAL]]>, tensor<16xf32, #[[MAXIMUM]]>, tensor<i64, #[[COUNT]]>)
func.func private @partial(tensor<257x26xbf16, #partial>, tensor<16xf32, #maximum>, tensor<i64, #count>)

// CHECK: func private @no_axes(tensor<f32, #[[SCALAR]]>)
func.func private @no_axes(tensor<f32, #scalar>)

// CHECK: func private @dimension_alone() attributes {test.dim = #gtp.dim<257 stored (gtp) granule 4>, test.quoted = #[[QUOTED]]}
func.func private @dimension_alone() attributes {test.dim = #gtp.dim<257 stored (gtp) granule 4>, test.quoted = #gtp.mesh<"strange axis" = 2>}

// CHECK: func private @ticket(!gtp.ticket<tensor<257x77xf32, #[[WEIGHT]]>>)
func.func private @ticket(!gtp.ticket<tensor<257x77xf32, #weight>>)
