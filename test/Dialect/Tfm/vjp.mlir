// Every differentiable op has a case here, and products that are wrong are found.
// RUN: gtp-opt %s -test-tfm-vjp=all -verify-diagnostics -o /dev/null
// RUN: not gtp-opt %s -test-tfm-vjp=perturb=1e-5 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: its product for operand 1 differs from finite differences by

func.func @embedding_with_repeated_and_unused_ids(
    %ids: tensor<2x3xi32> {test.range = 4 : i64}, %table: tensor<5x3xf64>) -> tensor<2x3x3xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.embedding %ids, %table : (tensor<2x3xi32>, tensor<5x3xf64>) -> tensor<2x3x3xf64>
  return %0 : tensor<2x3x3xf64>
}

func.func @rms_norm(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-2} : (tensor<2x3x5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @rms_norm_of_heads(%x: tensor<2x3x6xf64>, %w: tensor<2xf64>) -> tensor<2x3x6xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.rms_norm %x, %w {eps = 0.1} : (tensor<2x3x6xf64>, tensor<2xf64>) -> tensor<2x3x6xf64>
  return %0 : tensor<2x3x6xf64>
}

func.func @linear(%x: tensor<2x3x5xf64>, %w: tensor<4x5xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.linear %x, %w : (tensor<2x3x5xf64>, tensor<4x5xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @rope(%x: tensor<2x3x8xf64>) -> tensor<2x3x8xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.rope %x {head_dim = 4, frequencies = array<f64: 1.0, 0.3>} : (tensor<2x3x8xf64>) -> tensor<2x3x8xf64>
  return %0 : tensor<2x3x8xf64>
}

func.func @rope_inverse(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.rope %x {head_dim = 4, frequencies = array<f64: 1.0, 0.3>, inverse} : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @attention_causal_grouped(
    %q: tensor<2x4x12xf64>, %k: tensor<2x4x6xf64>, %v: tensor<2x4x6xf64>) -> tensor<2x4x12xf64> {
  // expected-remark @below {{3 products agree}}
  %0, %lse = tfm.attention %q, %k, %v {heads = 4, kv_heads = 2, scale = 0.6, causal = true}
    : (tensor<2x4x12xf64>, tensor<2x4x6xf64>, tensor<2x4x6xf64>) -> (tensor<2x4x12xf64>, tensor<2x4x4xf64>)
  return %0 : tensor<2x4x12xf64>
}

func.func @attention_full(
    %q: tensor<2x3x6xf64>, %k: tensor<2x3x6xf64>, %v: tensor<2x3x6xf64>) -> tensor<2x3x6xf64> {
  // expected-remark @below {{3 products agree}}
  %0, %lse = tfm.attention %q, %k, %v {heads = 3, kv_heads = 3, scale = 1.3, causal = false}
    : (tensor<2x3x6xf64>, tensor<2x3x6xf64>, tensor<2x3x6xf64>) -> (tensor<2x3x6xf64>, tensor<2x3x3xf64>)
  return %0 : tensor<2x3x6xf64>
}

func.func @swiglu(%gate: tensor<2x3x4xf64>, %up: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.swiglu %gate, %up : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @add(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>, %c: tensor<2x3xf64>) -> tensor<2x3xf64> {
  // expected-remark @below {{3 products agree}}
  %0 = tfm.add %a, %b, %c : (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @split(%x: tensor<2x3x6xf64>) -> (tensor<2x3x1xf64>, tensor<2x3x2xf64>, tensor<2x3x3xf64>) {
  // expected-remark @below {{1 products agree}}
  %0:3 = tfm.split %x : (tensor<2x3x6xf64>) -> (tensor<2x3x1xf64>, tensor<2x3x2xf64>, tensor<2x3x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x1xf64>, tensor<2x3x2xf64>, tensor<2x3x3xf64>
}

func.func @split_of_which_a_piece_is_unused(%x: tensor<2x6xf64>) -> (tensor<2x1xf64>, tensor<2x3xf64>) {
  // expected-remark @below {{1 products agree}}
  %0:3 = tfm.split %x : (tensor<2x6xf64>) -> (tensor<2x1xf64>, tensor<2x2xf64>, tensor<2x3xf64>)
  return %0#0, %0#2 : tensor<2x1xf64>, tensor<2x3xf64>
}

func.func @concat(%a: tensor<2x1xf64>, %b: tensor<2x3xf64>) -> tensor<2x4xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.concat %a, %b : (tensor<2x1xf64>, tensor<2x3xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

func.func @cast(%x: tensor<2x3xf64>) -> tensor<2x3xf32> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.cast %x : (tensor<2x3xf64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @cross_entropy_masked(
    %logits: tensor<2x3x5xf64>, %labels: tensor<2x3xi32> {test.range = 5 : i64, test.masked},
    %count: tensor<i64> {test.value = 7 : i64}) -> tensor<f64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.cross_entropy %logits, %labels, %count : (tensor<2x3x5xf64>, tensor<2x3xi32>, tensor<i64>) -> tensor<f64>
  return %0 : tensor<f64>
}

func.func @cross_entropy_of_sequences(
    %logits: tensor<2x3x5xf64>, %labels: tensor<2x3xi32> {test.range = 5 : i64, test.masked},
    %count: tensor<i64> {test.value = 2 : i64}) -> tensor<f64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.cross_entropy %logits, %labels, %count {sequence_mean} : (tensor<2x3x5xf64>, tensor<2x3xi32>, tensor<i64>) -> tensor<f64>
  return %0 : tensor<f64>
}

func.func @rms_norm_from_1(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-2, unit_offset} : (tensor<2x3x5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @layer_norm(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.layer_norm %x, %w {eps = 1.0e-2} : (tensor<2x3x5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @layer_norm_of_heads(%x: tensor<2x3x6xf64>, %w: tensor<3xf64>) -> tensor<2x3x6xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.layer_norm %x, %w {eps = 0.1} : (tensor<2x3x6xf64>, tensor<3xf64>) -> tensor<2x3x6xf64>
  return %0 : tensor<2x3x6xf64>
}

func.func @add_bias(%x: tensor<2x3x5xf64>, %b: tensor<5xf64>) -> tensor<2x3x5xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.add_bias %x, %b : (tensor<2x3x5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @add_positions(%x: tensor<2x3x5xf64>, %t: tensor<4x5xf64>) -> tensor<2x3x5xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.add_positions %x, %t : (tensor<2x3x5xf64>, tensor<4x5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @rope_of_a_part(%x: tensor<2x3x12xf64>) -> tensor<2x3x12xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.rope %x {head_dim = 6, frequencies = array<f64: 1.0, 0.3>} : (tensor<2x3x12xf64>) -> tensor<2x3x12xf64>
  return %0 : tensor<2x3x12xf64>
}

func.func @attention_with_a_window_and_a_cap(
    %q: tensor<2x5x12xf64>, %k: tensor<2x5x6xf64>, %v: tensor<2x5x6xf64>) -> tensor<2x5x12xf64> {
  // expected-remark @below {{3 products agree}}
  %0, %lse = tfm.attention %q, %k, %v {heads = 4, kv_heads = 2, scale = 0.6, causal = true, window = 3, softcap = 0.7}
    : (tensor<2x5x12xf64>, tensor<2x5x6xf64>, tensor<2x5x6xf64>) -> (tensor<2x5x12xf64>, tensor<2x4x5xf64>)
  return %0 : tensor<2x5x12xf64>
}

func.func @gelu(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.gelu %x : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @gelu_approximate(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.gelu %x {approximate} : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @softcap(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.softcap %x {cap = 0.8} : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @scale(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.scale %x {factor = -1.75} : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @mul(%a: tensor<2x3x4xf64>, %b: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.mul %a, %b : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @rope_of_documents(
    %x: tensor<2x3x8xf64>, %s: tensor<2x3xi32> {test.values = array<i64: 0, 1, 1, 0, 0, 2>}) -> tensor<2x3x8xf64> {
  // expected-remark @below {{1 products agree}}
  %0 = tfm.rope %x, %s {head_dim = 4, frequencies = array<f64: 1.0, 0.3>} : (tensor<2x3x8xf64>, tensor<2x3xi32>) -> tensor<2x3x8xf64>
  return %0 : tensor<2x3x8xf64>
}

func.func @add_positions_of_documents(
    %x: tensor<2x3x5xf64>, %t: tensor<4x5xf64>,
    %s: tensor<2x3xi32> {test.values = array<i64: 0, 1, 1, 0, 0, 2>}) -> tensor<2x3x5xf64> {
  // expected-remark @below {{2 products agree}}
  %0 = tfm.add_positions %x, %t, %s : (tensor<2x3x5xf64>, tensor<4x5xf64>, tensor<2x3xi32>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @attention_of_documents(
    %q: tensor<2x5x12xf64>, %k: tensor<2x5x6xf64>, %v: tensor<2x5x6xf64>,
    %s: tensor<2x5xi32> {test.values = array<i64: 0, 1, 1, 1, 1, 0, 0, 0, 3, 4>}) -> tensor<2x5x12xf64> {
  // expected-remark @below {{3 products agree}}
  %0, %lse = tfm.attention %q, %k, %v, %s {heads = 4, kv_heads = 2, scale = 0.6, causal = true, window = 3, softcap = 0.7}
    : (tensor<2x5x12xf64>, tensor<2x5x6xf64>, tensor<2x5x6xf64>, tensor<2x5xi32>) -> (tensor<2x5x12xf64>, tensor<2x4x5xf64>)
  return %0 : tensor<2x5x12xf64>
}
