// The whole step against finite differences: a tied table, a norm and a linear used
// in both layers, packed weights, several microbatches, masked labels.
// RUN: gtp-opt %s -test-tfm-step-gradients -verify-diagnostics -o /dev/null
// RUN: gtp-opt %s -tfm-pack -test-tfm-step-gradients 2>&1 -o /dev/null | FileCheck %s --check-prefix=PACKED
// RUN: sed 's/%count :/%count {sequence_mean} :/' %s | gtp-opt -test-tfm-step-gradients 2>&1 -o /dev/null | FileCheck %s --check-prefix=SEQUENCES
// SEQUENCES: remark: 7 gradients agree
// PACKED: remark: 5 gradients agree

module attributes {tfm.model = {vocabulary = 7 : i64, microbatches = 3 : i64}} {
  tfm.parameter @embed : tensor<7x6xf64> init "normal" tensors ["embed" = 7] tied ["head"]
  tfm.parameter @norm : tensor<6xf64> init "ones" tensors ["norm" = 6]
  tfm.parameter @q : tensor<6x6xf64> init "normal" tensors ["q" = 6]
  tfm.parameter @k : tensor<2x6xf64> init "normal" tensors ["k" = 2]
  tfm.parameter @v : tensor<2x6xf64> init "normal" tensors ["v" = 2]
  tfm.parameter @o : tensor<6x6xf64> init "normal" tensors ["o" = 6]
  tfm.parameter @shared : tensor<6x6xf64> init "normal" tensors ["shared" = 6]

  // expected-remark @below {{7 gradients agree}}
  func.func @forward(%tokens: tensor<1x4xi32>, %labels: tensor<1x4xi32>, %count: tensor<i64>) -> tensor<f64> {
    %table = tfm.get @embed : tensor<7x6xf64>
    %norm = tfm.get @norm : tensor<6xf64>
    %shared = tfm.get @shared : tensor<6x6xf64>
    %h0 = tfm.embedding %tokens, %table : (tensor<1x4xi32>, tensor<7x6xf64>) -> tensor<1x4x6xf64>
    %x = tfm.rms_norm %h0, %norm {eps = 0.1} : (tensor<1x4x6xf64>, tensor<6xf64>) -> tensor<1x4x6xf64>
    %wq = tfm.get @q : tensor<6x6xf64>
    %wk = tfm.get @k : tensor<2x6xf64>
    %wv = tfm.get @v : tensor<2x6xf64>
    %q = tfm.linear %x, %wq : (tensor<1x4x6xf64>, tensor<6x6xf64>) -> tensor<1x4x6xf64>
    %k = tfm.linear %x, %wk : (tensor<1x4x6xf64>, tensor<2x6xf64>) -> tensor<1x4x2xf64>
    %v = tfm.linear %x, %wv : (tensor<1x4x6xf64>, tensor<2x6xf64>) -> tensor<1x4x2xf64>
    %qr = tfm.rope %q {head_dim = 2, frequencies = array<f64: 1.0>} : (tensor<1x4x6xf64>) -> tensor<1x4x6xf64>
    %a, %lse = tfm.attention %qr, %k, %v {heads = 3, kv_heads = 1, scale = 0.5, causal = true}
      : (tensor<1x4x6xf64>, tensor<1x4x2xf64>, tensor<1x4x2xf64>) -> (tensor<1x4x6xf64>, tensor<1x3x4xf64>)
    %wo = tfm.get @o : tensor<6x6xf64>
    %o = tfm.linear %a, %wo : (tensor<1x4x6xf64>, tensor<6x6xf64>) -> tensor<1x4x6xf64>
    %h1 = tfm.add %h0, %o : (tensor<1x4x6xf64>, tensor<1x4x6xf64>) -> tensor<1x4x6xf64>
    %y = tfm.rms_norm %h1, %norm {eps = 0.1} : (tensor<1x4x6xf64>, tensor<6xf64>) -> tensor<1x4x6xf64>
    %g = tfm.linear %y, %shared : (tensor<1x4x6xf64>, tensor<6x6xf64>) -> tensor<1x4x6xf64>
    %s = tfm.swiglu %g, %y : (tensor<1x4x6xf64>, tensor<1x4x6xf64>) -> tensor<1x4x6xf64>
    %again = tfm.get @shared : tensor<6x6xf64>
    %d = tfm.linear %s, %again : (tensor<1x4x6xf64>, tensor<6x6xf64>) -> tensor<1x4x6xf64>
    %h2 = tfm.add %h1, %d, %d : (tensor<1x4x6xf64>, tensor<1x4x6xf64>, tensor<1x4x6xf64>) -> tensor<1x4x6xf64>
    %head = tfm.get @embed : tensor<7x6xf64>
    %logits = tfm.linear %h2, %head : (tensor<1x4x6xf64>, tensor<7x6xf64>) -> tensor<1x4x7xf64>
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x4x7xf64>, tensor<1x4xi32>, tensor<i64>) -> tensor<f64>
    return %loss : tensor<f64>
  }
}
