// Every op, parsed and printed; and its placement rule and cost.
// RUN: gtp-opt %s | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --mlir-print-op-generic | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --emit-bytecode | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --test-tfm-interfaces -verify-diagnostics -o /dev/null

// CHECK: tfm.parameter @packed : tensor<6x4xbf16> init "normal" tensors ["a.weight" = 4, "b.weight" = 2]
tfm.parameter @packed : tensor<6x4xbf16> init "normal" tensors ["a.weight" = 4, "b.weight" = 2]
// CHECK: tfm.parameter @"odd name|x" : tensor<4xf32> init "ones" tensors ["n" = 4] tied ["m", "\22o\22"] {note = 1 : i64}
tfm.parameter @"odd name|x" : tensor<4xf32> init "ones" tensors ["n" = 4] tied ["m", "\22o\22"] {note = 1 : i64}

// CHECK: tfm.parameter @decided : tensor<4xf32> init "ones" tensors ["d" = 4] frozen replicated prefetch "12" {note = 1 : i64}
tfm.parameter @decided : tensor<4xf32> init "ones" tensors ["d" = 4] frozen replicated prefetch "12" {note = 1 : i64}
// CHECK: tfm.parameter @by_attribute : tensor<4xf32> init "ones" tensors ["e" = 4] frozen prefetch "auto"{{$}}
tfm.parameter @by_attribute : tensor<4xf32> init "ones" tensors ["e" = 4] {frozen, prefetch = "auto"}
// CHECK: tfm.parameter @laid_out : tensor<14x4xbf16> init "normal" tensors ["a" = 2 transposed, "b" = 12 interleaved 2 by 3]
tfm.parameter @laid_out : tensor<14x4xbf16> init "normal" tensors ["a" = 2 transposed, "b" = 12 interleaved 2 by 3]

// CHECK-LABEL: @get
func.func @get() -> (tensor<6x4xbf16>, tensor<4xf32>) {
  // CHECK: tfm.get @packed : tensor<6x4xbf16>
  %0 = tfm.get @packed : tensor<6x4xbf16>
  // CHECK: tfm.get @"odd name|x" : tensor<4xf32>
  %1 = tfm.get @"odd name|x" : tensor<4xf32>
  return %0, %1 : tensor<6x4xbf16>, tensor<4xf32>
}

// CHECK-LABEL: @microbatches
func.func @microbatches(%x: tensor<3x2x4xi32>, %y: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<i64>) {
  // CHECK: %[[R:.*]]:2 = tfm.microbatches (%[[A:.*]]: tensor<2x4xi32> in %{{.*}}, %[[B:.*]]: tensor<2xf32> in %{{.*}}) : (tensor<3x2x4xi32>, tensor<3x2xf32>) -> (tensor<2xf32>, tensor<i64>) attributes {note} {
  %0:2 = tfm.microbatches (%a: tensor<2x4xi32> in %x, %b: tensor<2xf32> in %y)
      : (tensor<3x2x4xi32>, tensor<3x2xf32>) -> (tensor<2xf32>, tensor<i64>) attributes {note} {
    // CHECK: tfm.count_labels %[[A]] : (tensor<2x4xi32>) -> tensor<i64>
    // expected-remark @below {{(a b) -> (); memory, 0 flops, 40 bytes}}
    %n = tfm.count_labels %a : (tensor<2x4xi32>) -> tensor<i64>
    // CHECK: tfm.yield %[[B]], %{{.*}} : tensor<2xf32>, tensor<i64>
    tfm.yield %b, %n : tensor<2xf32>, tensor<i64>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<i64>
}

// CHECK-LABEL: @embedding
func.func @embedding(%ids: tensor<2x3xi32>, %table: tensor<8x4xbf16>, %dy: tensor<2x3x4xbf16>) {
  // CHECK: tfm.embedding %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<8x4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b) (c! d) -> (a b d); memory, 0 flops, 136 bytes}}
  %0 = tfm.embedding %ids, %table : (tensor<2x3xi32>, tensor<8x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.embedding_grad %{{.*}}, %{{.*}} : (tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<8x4xf32>
  // expected-remark @below {{(a b d) (a b) -> (c! d); memory}}
  %1 = tfm.embedding_grad %dy, %ids : (tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<8x4xf32>
  return
}

// CHECK-LABEL: @rms_norm
func.func @rms_norm(%x: tensor<2x3x4xbf16>, %w: tensor<2xbf16>) {
  // CHECK: tfm.rms_norm %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64} : (tensor<2x3x4xbf16>, tensor<2xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c!) (d!) -> (a b c!); memory}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-5} : (tensor<2x3x4xbf16>, tensor<2xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.rms_norm_grad
  // expected-remark @below {{(a b c!) (a b c!) (d!) -> (a b c!) (d!); memory}}
  %dx, %dw = tfm.rms_norm_grad %x, %x, %w {eps = 1.0e-5}
    : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2xbf16>) -> (tensor<2x3x4xbf16>, tensor<2xf32>)
  return
}

// CHECK-LABEL: @linear
func.func @linear(%x: tensor<2x3x4xbf16>, %w: tensor<8x4xbf16>, %dy: tensor<2x3x8xbf16>) {
  // CHECK: tfm.linear %{{.*}}, %{{.*}} : (tensor<2x3x4xbf16>, tensor<8x4xbf16>) -> tensor<2x3x8xbf16>
  // expected-remark @below {{(a b d) (c d) -> (a b c); matrix, 384 flops, 208 bytes}}
  %0 = tfm.linear %x, %w : (tensor<2x3x4xbf16>, tensor<8x4xbf16>) -> tensor<2x3x8xbf16>
  // CHECK: tfm.linear_dgrad
  // expected-remark @below {{(a b c) (c d) -> (a b d); matrix, 384 flops, 208 bytes}}
  %1 = tfm.linear_dgrad %dy, %w : (tensor<2x3x8xbf16>, tensor<8x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.linear_wgrad
  // expected-remark @below {{(a b c) (a b d) -> (c d); matrix, 384 flops, 272 bytes}}
  %2 = tfm.linear_wgrad %dy, %x : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>) -> tensor<8x4xf32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<2x3x16xbf16>, %k: tensor<2x3x8xbf16>) {
  // CHECK: tfm.rope %{{.*}} {frequencies = array<f64: 1.000000e+00, 1.000000e-01>, head_dim = 4 : i64, inverse} : (tensor<2x3x16xbf16>) -> tensor<2x3x16xbf16>
  // expected-remark @below {{(a b! c/4) -> (a b! c/4), linear; memory}}
  %r = tfm.rope %q {head_dim = 4, frequencies = array<f64: 1.0, 0.1>, inverse} : (tensor<2x3x16xbf16>) -> tensor<2x3x16xbf16>
  // CHECK: tfm.attention %{{.*}}, %{{.*}}, %{{.*}} {causal = true, heads = 4 : i64, kv_heads = 2 : i64, scale = 5.000000e-01 : f64}
  // expected-remark @below {{(a b! c/2) (a b! c/2) (a b! c/2) -> (a b! c/2) (a c/2 b!); matrix, 576 flops, 672 bytes}}
  %0, %lse = tfm.attention %r, %k, %k {heads = 4, kv_heads = 2, scale = 0.5, causal = true}
    : (tensor<2x3x16xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> (tensor<2x3x16xbf16>, tensor<2x4x3xf32>)
  // CHECK: tfm.attention_grad
  // expected-remark @below {{(a b! c/2) (a b! c/2) (a b! c/2) (a b! c/2) (a b! c/2) (a c/2 b!) -> (a b! c/2) (a b! c/2) (a b! c/2); matrix, 2880 flops}}
  %dq, %dk, %dv = tfm.attention_grad %0, %q, %k, %k, %0, %lse {heads = 4, kv_heads = 2, scale = 0.5, causal = false}
    : (tensor<2x3x16xbf16>, tensor<2x3x16xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<2x3x16xbf16>, tensor<2x4x3xf32>)
    -> (tensor<2x3x16xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>)
  return
}

// CHECK-LABEL: @elementwise
func.func @elementwise(%a: tensor<2x3x4xf32>) {
  // CHECK: tfm.swiglu
  // expected-remark @below {{(a b c) (a b c) -> (a b c), on shards; memory, 0 flops, 288 bytes}}
  %0 = tfm.swiglu %a, %a : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: tfm.swiglu_grad
  // expected-remark @below {{(a b c) (a b c) (a b c) -> (a b c) (a b c), on shards; memory}}
  %dg, %du = tfm.swiglu_grad %a, %a, %a : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  // CHECK: tfm.add %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // expected-remark @below {{(a b c) (a b c) (a b c) -> (a b c), linear, on shards; memory}}
  %1 = tfm.add %a, %0, %dg : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: tfm.cast %{{.*}} : (tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c) -> (a b c), linear, on shards; memory, 0 flops, 144 bytes}}
  %2 = tfm.cast %a : (tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
  return
}

// CHECK-LABEL: @pieces
func.func @pieces(%a: tensor<2x3x4xf32>) {
  // CHECK: tfm.split %{{.*}} : (tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x3xf32>)
  // expected-remark @below {{(a b c!) -> (a b d!) (a b e!), linear; memory}}
  %0:2 = tfm.split %a : (tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x3xf32>)
  // CHECK: tfm.concat %{{.*}}#1, %{{.*}}#0 : (tensor<2x3x3xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  // expected-remark @below {{(a b c!) (a b d!) -> (a b e!), linear; memory}}
  %1 = tfm.concat %0#1, %0#0 : (tensor<2x3x3xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @loss
func.func @loss(%logits: tensor<2x3x8xbf16>, %labels: tensor<2x3xi32>, %n: tensor<i64>) {
  // CHECK: tfm.cross_entropy %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x8xbf16>, tensor<2x3xi32>, tensor<i64>) -> tensor<f32>
  // expected-remark @below {{(a b c!) (a b) () -> (); memory, 0 flops, 132 bytes}}
  %0 = tfm.cross_entropy %logits, %labels, %n : (tensor<2x3x8xbf16>, tensor<2x3xi32>, tensor<i64>) -> tensor<f32>
  // CHECK: tfm.cross_entropy_grad
  // expected-remark @below {{(a b c!) (a b) () () -> (a b c!); memory}}
  %1 = tfm.cross_entropy_grad %logits, %labels, %n, %0 : (tensor<2x3x8xbf16>, tensor<2x3xi32>, tensor<i64>, tensor<f32>) -> tensor<2x3x8xbf16>
  return
}

// CHECK-LABEL: @sequence_mean
func.func @sequence_mean(%logits: tensor<2x3x8xf32>, %labels: tensor<2x3xi32>) {
  // CHECK: tfm.count_labels %{{.*}} {sequences}
  // expected-remark @below {{(a b!) -> (); memory}}
  %n = tfm.count_labels %labels {sequences} : (tensor<2x3xi32>) -> tensor<i64>
  // CHECK: tfm.cross_entropy %{{.*}} {sequence_mean}
  // expected-remark @below {{(a b! c!) (a b!) () -> (); memory}}
  %0 = tfm.cross_entropy %logits, %labels, %n {sequence_mean} : (tensor<2x3x8xf32>, tensor<2x3xi32>, tensor<i64>) -> tensor<f32>
  // CHECK: tfm.cross_entropy_grad %{{.*}} {sequence_mean}
  // expected-remark @below {{(a b! c!) (a b!) () () -> (a b! c!); memory}}
  %1 = tfm.cross_entropy_grad %logits, %labels, %n, %0 {sequence_mean} : (tensor<2x3x8xf32>, tensor<2x3xi32>, tensor<i64>, tensor<f32>) -> tensor<2x3x8xf32>
  return
}

// CHECK-LABEL: @update
func.func @update(%w: tensor<8x4xf32>, %g: tensor<8x4xbf16>, %r: tensor<8x4xi16>, %hyper: tensor<8xf32>) {
  // CHECK: tfm.sum_squares %{{.*}} : (tensor<8x4xbf16>) -> tensor<f64>
  // expected-remark @below {{(a b) -> (), on shards; memory}}
  %s = tfm.sum_squares %g : (tensor<8x4xbf16>) -> tensor<f64>
  // CHECK: tfm.clip_scale %{{.*}} {max_norm = 1.000000e+00 : f64} : (tensor<f64>) -> (tensor<f32>, tensor<f32>)
  // expected-remark @below {{() -> () (); memory}}
  %norm, %scale = tfm.clip_scale %s {max_norm = 1.0} : (tensor<f64>) -> (tensor<f32>, tensor<f32>)
  // CHECK: tfm.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {decay}
  // expected-remark @below {{(a b) (a b) (a b) (a b) (c!) () -> (a b) (a b) (a b) (a b), on shards; memory}}
  %0:4 = tfm.adamw %w, %w, %w, %g, %hyper, %scale {decay}
    : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>)
  // expected-remark @below {{(a b) (a b) (a b) (a b) (c!) () -> (a b) (a b) (a b), on shards; memory}}
  %1:3 = tfm.adamw %w, %w, %w, %g, %hyper, %scale
    : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: tfm.sgd
  // expected-remark @below {{(a b) (a b) (c!) () -> (a b), on shards; memory}}
  %2 = tfm.sgd %w, %g, %hyper, %scale {decay} : (tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>) -> tensor<8x4xf32>
  // expected-remark @below {{(a b) (a b) (c!) () -> (a b) (a b), on shards; memory}}
  %3:2 = tfm.sgd %w, %g, %hyper, %scale : (tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xbf16>)
  // CHECK: tfm.adamw_split %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {decay}
  // expected-remark @below {{(a b) (a b) (a b) (a b) (a b) (c!) () -> (a b) (a b) (a b) (a b), on shards; memory}}
  %5:4 = tfm.adamw_split %g, %r, %w, %w, %g, %hyper, %scale {decay}
    : (tensor<8x4xbf16>, tensor<8x4xi16>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>)
    -> (tensor<8x4xbf16>, tensor<8x4xi16>, tensor<8x4xf32>, tensor<8x4xf32>)
  // CHECK: tfm.sgd_split
  // expected-remark @below {{(a b) (a b) (a b) (c!) () -> (a b) (a b), on shards; memory}}
  %6:2 = tfm.sgd_split %g, %r, %g, %hyper, %scale
    : (tensor<8x4xbf16>, tensor<8x4xi16>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>)
    -> (tensor<8x4xbf16>, tensor<8x4xi16>)
  // CHECK: tfm.full 1.000000e+00 : tensor<8x4xf32>
  // expected-remark @below {{-> (a b), on shards; memory}}
  %4 = tfm.full 1.0 : tensor<8x4xf32>
  return
}

// CHECK-LABEL: @norms_and_biases
func.func @norms_and_biases(%x: tensor<2x3x4xbf16>, %w: tensor<4xbf16>, %t: tensor<5x4xbf16>) {
  // CHECK: tfm.rms_norm %{{.*}} {eps = 1.000000e-05 : f64, unit_offset} :
  // expected-remark @below {{(a b c!) (d!) -> (a b c!); memory}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-5, unit_offset} : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.layer_norm %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64} : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c!) (d!) -> (a b c!); memory}}
  %1 = tfm.layer_norm %x, %w {eps = 1.0e-5} : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.layer_norm_grad
  // expected-remark @below {{(a b c!) (a b c!) (d!) -> (a b c!) (d!); memory}}
  %dx, %dw = tfm.layer_norm_grad %x, %x, %w {eps = 1.0e-5}
    : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<4xbf16>) -> (tensor<2x3x4xbf16>, tensor<4xf32>)
  // CHECK: tfm.add_bias %{{.*}}, %{{.*}} : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c) (c) -> (a b c); memory}}
  %2 = tfm.add_bias %x, %w : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.bias_grad %{{.*}} : (tensor<2x3x4xbf16>) -> tensor<4xf32>
  // expected-remark @below {{(a b c) -> (c); memory}}
  %3 = tfm.bias_grad %x : (tensor<2x3x4xbf16>) -> tensor<4xf32>
  // CHECK: tfm.add_positions %{{.*}}, %{{.*}} : (tensor<2x3x4xbf16>, tensor<5x4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b! c) (d! c) -> (a b! c); memory}}
  %4 = tfm.add_positions %x, %t : (tensor<2x3x4xbf16>, tensor<5x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.positions_grad %{{.*}} : (tensor<2x3x4xbf16>) -> tensor<5x4xf32>
  // expected-remark @below {{(a b! c) -> (d! c); memory}}
  %5 = tfm.positions_grad %x : (tensor<2x3x4xbf16>) -> tensor<5x4xf32>
  return
}

// CHECK-LABEL: @activations
func.func @activations(%x: tensor<2x3x4xbf16>) {
  // CHECK: tfm.gelu %{{.*}} {approximate} : (tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c) -> (a b c), on shards; memory}}
  %0 = tfm.gelu %x {approximate} : (tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.gelu_grad %{{.*}}, %{{.*}} : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c) (a b c) -> (a b c), on shards; memory}}
  %1 = tfm.gelu_grad %x, %x : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.softcap %{{.*}} {cap = 3.000000e+01 : f64}
  // expected-remark @below {{(a b c) -> (a b c), on shards; memory}}
  %2 = tfm.softcap %x {cap = 30.0} : (tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.softcap_grad %{{.*}}, %{{.*}} {cap = 3.000000e+01 : f64}
  // expected-remark @below {{(a b c) (a b c) -> (a b c), on shards; memory}}
  %3 = tfm.softcap_grad %x, %x {cap = 30.0} : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.scale %{{.*}} {factor = 4.800000e+01 : f64}
  // expected-remark @below {{(a b c) -> (a b c), linear, on shards; memory}}
  %4 = tfm.scale %x {factor = 48.0} : (tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.mul %{{.*}}, %{{.*}} : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b c) (a b c) -> (a b c), on shards; memory}}
  %5 = tfm.mul %x, %x : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16>
  return
}

// CHECK-LABEL: @attention_in_a_window
func.func @attention_in_a_window(%q: tensor<1x8x4xbf16>) {
  // CHECK: tfm.attention %{{.*}} {causal = true, heads = 1 : i64, kv_heads = 1 : i64, scale = 5.000000e-01 : f64, softcap = 5.000000e+01 : f64, window = 2 : i64}
  // expected-remark @below {{matrix, 256 flops}}
  %0, %lse = tfm.attention %q, %q, %q {heads = 1, kv_heads = 1, scale = 0.5, causal = true, window = 2, softcap = 50.0}
    : (tensor<1x8x4xbf16>, tensor<1x8x4xbf16>, tensor<1x8x4xbf16>) -> (tensor<1x8x4xbf16>, tensor<1x1x8xf32>)
  return
}

// CHECK-LABEL: @documents
func.func @documents(%tokens: tensor<2x3xi32>, %x: tensor<2x3x4xbf16>, %t: tensor<5x4xbf16>) {
  // CHECK: %[[STARTS:.*]] = tfm.document_starts %{{.*}} {separator = 0 : i64} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  // expected-remark @below {{(a b!) -> (a b!); memory}}
  %s = tfm.document_starts %tokens {separator = 0} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  // CHECK: tfm.rope %{{.*}}, %[[STARTS]] {frequencies = array<f64: 1.000000e+00>, head_dim = 2 : i64} : (tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b! c/2) (a b!) -> (a b! c/2); memory}}
  %0 = tfm.rope %x, %s {head_dim = 2, frequencies = array<f64: 1.0>}
    : (tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.add_positions %{{.*}}, %{{.*}}, %[[STARTS]] : (tensor<2x3x4xbf16>, tensor<5x4xbf16>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
  // expected-remark @below {{(a b! c) (d! c) (a b!) -> (a b! c); memory}}
  %1 = tfm.add_positions %x, %t, %s
    : (tensor<2x3x4xbf16>, tensor<5x4xbf16>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
  // CHECK: tfm.positions_grad %{{.*}}, %[[STARTS]] : (tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<5x4xf32>
  // expected-remark @below {{(a b! c) (a b!) -> (d! c); memory}}
  %2 = tfm.positions_grad %x, %s : (tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<5x4xf32>
  // CHECK: tfm.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[STARTS]] {causal = true
  // expected-remark @below {{(a b! c/1) (a b! c/1) (a b! c/1) (a b!) -> (a b! c/1) (a c/1 b!); matrix}}
  %3, %lse = tfm.attention %x, %x, %x, %s {heads = 1, kv_heads = 1, scale = 0.5, causal = true, window = 2}
    : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3xi32>) -> (tensor<2x3x4xbf16>, tensor<2x1x3xf32>)
  // CHECK: tfm.attention_grad {{.*}}, %[[STARTS]] {causal = true, fast
  // expected-remark @below {{(a b! c/1) (a c/1 b!) (a b!) -> (a b! c/1) (a b! c/1) (a b! c/1); matrix}}
  %4:3 = tfm.attention_grad %3, %x, %x, %x, %3, %lse, %s {heads = 1, kv_heads = 1, scale = 0.5, causal = true, fast}
    : (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x1x3xf32>, tensor<2x3xi32>)
    -> (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>)
  return
}
