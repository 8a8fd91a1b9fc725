// RUN: gtp-opt %s -split-input-file -tfm-pack | FileCheck %s
// RUN: gtp-opt %s -split-input-file -tfm-pack -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// CHECK: tfm.parameter @model.norm
// CHECK: tfm.parameter @"l.0.attn.q_proj|k_proj|v_proj.weight" : tensor<8x4xf32> init "normal" tensors ["l.0.attn.q_proj.weight" = 4, "l.0.attn.k_proj.weight" = 2, "l.0.attn.v_proj.weight" = 2]
// CHECK: tfm.parameter @l.0.attn.o_proj.weight
// CHECK-NOT: tfm.parameter
tfm.parameter @model.norm : tensor<4xf32> init "ones" tensors ["model.norm" = 4]
tfm.parameter @l.0.attn.q_proj.weight : tensor<4x4xf32> init "normal" tensors ["l.0.attn.q_proj.weight" = 4]
tfm.parameter @l.0.attn.o_proj.weight : tensor<4x4xf32> init "normal" tensors ["l.0.attn.o_proj.weight" = 4]
tfm.parameter @l.0.attn.k_proj.weight : tensor<2x4xf32> init "normal" tensors ["l.0.attn.k_proj.weight" = 2]
tfm.parameter @l.0.attn.v_proj.weight : tensor<2x4xf32> init "normal" tensors ["l.0.attn.v_proj.weight" = 2]

// CHECK-LABEL: @three_of_one_input
func.func @three_of_one_input(%x: tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>) {
  // CHECK: %[[W:.*]] = tfm.get @"l.0.attn.q_proj|k_proj|v_proj.weight" : tensor<8x4xf32>
  // CHECK-NEXT: %[[Y:.*]] = tfm.linear %{{.*}}, %[[W]] : (tensor<1x3x4xf32>, tensor<8x4xf32>) -> tensor<1x3x8xf32>
  // CHECK-NEXT: %[[P:.*]]:3 = tfm.split %[[Y]] : (tensor<1x3x8xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>)
  // LOC: tfm.split {{.*}} loc("l.0.attn.q_proj|k_proj|v_proj")
  %wq = tfm.get @l.0.attn.q_proj.weight : tensor<4x4xf32>
  %wk = tfm.get @l.0.attn.k_proj.weight : tensor<2x4xf32>
  %wv = tfm.get @l.0.attn.v_proj.weight : tensor<2x4xf32>
  %q = tfm.linear %x, %wq : (tensor<1x3x4xf32>, tensor<4x4xf32>) -> tensor<1x3x4xf32> loc("l.0.attn.q_proj")
  %k = tfm.linear %x, %wk : (tensor<1x3x4xf32>, tensor<2x4xf32>) -> tensor<1x3x2xf32> loc("l.0.attn.k_proj")
  %v = tfm.linear %x, %wv : (tensor<1x3x4xf32>, tensor<2x4xf32>) -> tensor<1x3x2xf32> loc("l.0.attn.v_proj")
  // CHECK-NEXT: %[[WO:.*]] = tfm.get @l.0.attn.o_proj.weight
  // CHECK-NEXT: %[[O:.*]] = tfm.linear %[[P]]#0, %[[WO]]
  // CHECK-NEXT: return %[[O]], %[[P]]#1, %[[P]]#2
  %wo = tfm.get @l.0.attn.o_proj.weight : tensor<4x4xf32>
  %o = tfm.linear %q, %wo : (tensor<1x3x4xf32>, tensor<4x4xf32>) -> tensor<1x3x4xf32>
  return %o, %k, %v : tensor<1x3x4xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>
}

// -----

// A tied weight, one used twice, one of another initial value and one read by a
// second op stay; what is left is less than two.
// CHECK-COUNT-5: tfm.parameter @{{[a-z]+}} :
tfm.parameter @tied : tensor<4x4xf32> init "normal" tensors ["tied" = 4] tied ["head"]
tfm.parameter @twice : tensor<4x4xf32> init "normal" tensors ["twice" = 4]
tfm.parameter @read : tensor<4x4xf32> init "normal" tensors ["read" = 4]
tfm.parameter @zeros : tensor<4x4xf32> init "zeros" tensors ["zeros" = 4]
tfm.parameter @plain : tensor<4x4xf32> init "normal" tensors ["plain" = 4]

// CHECK-LABEL: @what_cannot_join
// CHECK-NOT: tfm.split
func.func @what_cannot_join(%x: tensor<3x4xf32>) {
  %tied = tfm.get @tied : tensor<4x4xf32>
  %twice = tfm.get @twice : tensor<4x4xf32>
  %again = tfm.get @twice : tensor<4x4xf32>
  %read = tfm.get @read : tensor<4x4xf32>
  %zeros = tfm.get @zeros : tensor<4x4xf32>
  %plain = tfm.get @plain : tensor<4x4xf32>
  %0 = tfm.linear %x, %tied : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = tfm.linear %x, %twice : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %2 = tfm.linear %x, %again : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %3 = tfm.linear %x, %read : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %4 = tfm.linear %x, %zeros : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %5 = tfm.linear %x, %plain : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %6 = tfm.cast %read : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  return
}

// -----

// Two groups of one input; a symbol that is taken gets another name.
// CHECK: tfm.parameter @"a|b" : tensor<2xf32>
// CHECK: tfm.parameter @"a|b_0" : tensor<4x4xf32> init "normal" tensors ["a" = 2, "b" = 2]
// CHECK: tfm.parameter @"c|d" : tensor<4x4xf32> init "zeros" tensors ["c" = 2, "d" = 2]
tfm.parameter @"a|b" : tensor<2xf32> init "ones" tensors ["n" = 2]
tfm.parameter @a : tensor<2x4xf32> init "normal" tensors ["a" = 2]
tfm.parameter @c : tensor<2x4xf32> init "zeros" tensors ["c" = 2]
tfm.parameter @b : tensor<2x4xf32> init "normal" tensors ["b" = 2]
tfm.parameter @d : tensor<2x4xf32> init "zeros" tensors ["d" = 2]

// CHECK-LABEL: @two_groups
func.func @two_groups(%x: tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  // CHECK: %[[AB:.*]]:2 = tfm.split
  // CHECK: %[[CD:.*]]:2 = tfm.split
  // CHECK: return %[[AB]]#0, %[[CD]]#0, %[[AB]]#1, %[[CD]]#1
  %a = tfm.get @a : tensor<2x4xf32>
  %b = tfm.get @b : tensor<2x4xf32>
  %c = tfm.get @c : tensor<2x4xf32>
  %d = tfm.get @d : tensor<2x4xf32>
  %0 = tfm.linear %x, %a : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %1 = tfm.linear %x, %c : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %2 = tfm.linear %x, %b : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %3 = tfm.linear %x, %d : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  return %0, %1, %2, %3 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// Rows of one parameter share one fate: q and k are frozen, v is not, r is, but
// whole on every rank.
// CHECK: tfm.parameter @"q|k" : tensor<6x4xf32> init "normal" tensors ["q" = 4, "k" = 2] frozen{{$}}
// CHECK: tfm.parameter @"v|p" : tensor<4x4xf32> init "normal" tensors ["v" = 2, "p" = 2]{{$}}
// CHECK: tfm.parameter @r : tensor<2x4xf32> init "normal" tensors ["r" = 2] frozen replicated{{$}}
// CHECK: tfm.parameter @late : tensor<2x4xf32> init "normal" tensors ["late" = 2] prefetch "off"{{$}}
tfm.parameter @q : tensor<4x4xf32> init "normal" tensors ["q" = 4] frozen
tfm.parameter @v : tensor<2x4xf32> init "normal" tensors ["v" = 2]
tfm.parameter @k : tensor<2x4xf32> init "normal" tensors ["k" = 2] frozen
tfm.parameter @r : tensor<2x4xf32> init "normal" tensors ["r" = 2] frozen replicated
tfm.parameter @late : tensor<2x4xf32> init "normal" tensors ["late" = 2] prefetch "off"
tfm.parameter @p : tensor<2x4xf32> init "normal" tensors ["p" = 2]

// CHECK-LABEL: @what_is_decided_alike
func.func @what_is_decided_alike(%x: tensor<3x4xf32>) {
  %q = tfm.get @q : tensor<4x4xf32>
  %k = tfm.get @k : tensor<2x4xf32>
  %v = tfm.get @v : tensor<2x4xf32>
  %r = tfm.get @r : tensor<2x4xf32>
  %l = tfm.get @late : tensor<2x4xf32>
  %p = tfm.get @p : tensor<2x4xf32>
  // CHECK-COUNT-4: tfm.linear
  // CHECK-NOT: tfm.linear
  %0 = tfm.linear %x, %q : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = tfm.linear %x, %k : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %2 = tfm.linear %x, %v : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %3 = tfm.linear %x, %r : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %4 = tfm.linear %x, %l : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %5 = tfm.linear %x, %p : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  return
}
