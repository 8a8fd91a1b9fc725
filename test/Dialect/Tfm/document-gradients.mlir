// The whole step with several documents a sequence, against finite differences.
// RUN: gtp-opt %s -test-tfm-step-gradients -verify-diagnostics -o /dev/null

module attributes {tfm.model = {vocabulary = 3 : i64, document_separator = 1 : i64, microbatches = 2 : i64}} {
  tfm.parameter @embed : tensor<3x4xf64> init "normal" tensors ["embed" = 3]
  tfm.parameter @positions : tensor<7x4xf64> init "normal" tensors ["positions" = 7]
  tfm.parameter @q : tensor<4x4xf64> init "normal" tensors ["q" = 4]

  // expected-remark @below {{3 gradients agree}}
  func.func @forward(%tokens: tensor<2x6xi32>, %labels: tensor<2x6xi32>, %count: tensor<i64>) -> tensor<f64> {
    %starts = tfm.document_starts %tokens {separator = 1} : (tensor<2x6xi32>) -> tensor<2x6xi32>
    %table = tfm.get @embed : tensor<3x4xf64>
    %h = tfm.embedding %tokens, %table : (tensor<2x6xi32>, tensor<3x4xf64>) -> tensor<2x6x4xf64>
    %positions = tfm.get @positions : tensor<7x4xf64>
    %x = tfm.add_positions %h, %positions, %starts : (tensor<2x6x4xf64>, tensor<7x4xf64>, tensor<2x6xi32>) -> tensor<2x6x4xf64>
    %wq = tfm.get @q : tensor<4x4xf64>
    %q = tfm.linear %x, %wq : (tensor<2x6x4xf64>, tensor<4x4xf64>) -> tensor<2x6x4xf64>
    %qr = tfm.rope %q, %starts {head_dim = 2, frequencies = array<f64: 1.0>} : (tensor<2x6x4xf64>, tensor<2x6xi32>) -> tensor<2x6x4xf64>
    %kr = tfm.rope %x, %starts {head_dim = 2, frequencies = array<f64: 1.0>} : (tensor<2x6x4xf64>, tensor<2x6xi32>) -> tensor<2x6x4xf64>
    %a, %lse = tfm.attention %qr, %kr, %x, %starts {heads = 2, kv_heads = 2, scale = 0.5, causal = true}
      : (tensor<2x6x4xf64>, tensor<2x6x4xf64>, tensor<2x6x4xf64>, tensor<2x6xi32>) -> (tensor<2x6x4xf64>, tensor<2x2x6xf64>)
    %logits = tfm.linear %a, %table : (tensor<2x6x4xf64>, tensor<3x4xf64>) -> tensor<2x6x3xf64>
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<2x6x3xf64>, tensor<2x6xi32>, tensor<i64>) -> tensor<f64>
    return %loss : tensor<f64>
  }
}
