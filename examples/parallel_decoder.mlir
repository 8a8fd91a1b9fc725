// A model that no config.json describes, written by hand: attention and MLP work side by
// side on one norm, both layers share one MLP, positions are learned and rotary, and the
// head is the embedding's table. docs/models.md explains how to write one.
//
//   gtp-opt examples/parallel_decoder.mlir --mesh=gtp=4 --emit=plan -o decoder.gtpplan
//   gtp-run decoder.gtpplan --data=text.txt --steps=100 --lr=3e-3

// Eight sequences of 64 tokens a microbatch, of all data ranks together.
!ids = tensor<8x64xi32>
!hidden = tensor<8x64x48xf32>
!keys = tensor<8x64x24xf32>
!inner = tensor<8x64x96xf32>

module attributes {tfm.model = {family = "parallel_decoder", vocabulary = 256 : i64,
                                initializer_range = 0.05 : f64, microbatches = 1 : i64}} {
  // Parameters: shape, initial value, and the checkpoint tensors that are its rows.
  tfm.parameter @embed.weight : tensor<256x48xf32> init "normal" tensors ["embed.weight" = 256]
  tfm.parameter @positions.weight : tensor<64x48xf32> init "normal" tensors ["positions.weight" = 64]
  tfm.parameter @norm.weight : tensor<48xf32> init "ones" tensors ["norm.weight" = 48]
  tfm.parameter @mlp.gate.weight : tensor<96x48xf32> init "normal" tensors ["mlp.gate.weight" = 96]
  tfm.parameter @mlp.up.weight : tensor<96x48xf32> init "normal" tensors ["mlp.up.weight" = 96]
  tfm.parameter @mlp.down.weight : tensor<48x96xf32> init "normal" tensors ["mlp.down.weight" = 48]
  tfm.parameter @layers.0.norm.weight : tensor<48xf32> init "ones" tensors ["layers.0.norm.weight" = 48]
  tfm.parameter @layers.0.q.weight : tensor<48x48xf32> init "normal" tensors ["layers.0.q.weight" = 48]
  tfm.parameter @layers.0.kv.weight : tensor<48x48xf32> init "normal" tensors ["layers.0.k.weight" = 24, "layers.0.v.weight" = 24]
  tfm.parameter @layers.0.o.weight : tensor<48x48xf32> init "normal" tensors ["layers.0.o.weight" = 48]
  tfm.parameter @layers.1.norm.weight : tensor<48xf32> init "ones" tensors ["layers.1.norm.weight" = 48]
  tfm.parameter @layers.1.q.weight : tensor<48x48xf32> init "normal" tensors ["layers.1.q.weight" = 48]
  tfm.parameter @layers.1.kv.weight : tensor<48x48xf32> init "normal" tensors ["layers.1.k.weight" = 24, "layers.1.v.weight" = 24]
  tfm.parameter @layers.1.o.weight : tensor<48x48xf32> init "normal" tensors ["layers.1.o.weight" = 48]

  // The loss of one microbatch; gtp-opt derives the training step from it.
  func.func @forward(%tokens: !ids, %labels: !ids, %count: tensor<i64>) -> tensor<f32> {
    %table = tfm.get @embed.weight : tensor<256x48xf32>
    %positions = tfm.get @positions.weight : tensor<64x48xf32>
    %gate = tfm.get @mlp.gate.weight : tensor<96x48xf32>
    %up = tfm.get @mlp.up.weight : tensor<96x48xf32>
    %down = tfm.get @mlp.down.weight : tensor<48x96xf32>
    %e = tfm.embedding %tokens, %table : (!ids, tensor<256x48xf32>) -> !hidden loc("embed")
    %x0 = tfm.add_positions %e, %positions : (!hidden, tensor<64x48xf32>) -> !hidden loc("positions")

    // Layer 0: four heads of 12, two of keys and values, a window of 32 tokens.
    %n0w = tfm.get @layers.0.norm.weight : tensor<48xf32>
    %q0w = tfm.get @layers.0.q.weight : tensor<48x48xf32>
    %kv0w = tfm.get @layers.0.kv.weight : tensor<48x48xf32>
    %o0w = tfm.get @layers.0.o.weight : tensor<48x48xf32>
    %n0 = tfm.rms_norm %x0, %n0w {eps = 1.0e-5} : (!hidden, tensor<48xf32>) -> !hidden loc("layers.0.norm")
    %q0 = tfm.linear %n0, %q0w : (!hidden, tensor<48x48xf32>) -> !hidden loc("layers.0.q")
    %kv0 = tfm.linear %n0, %kv0w : (!hidden, tensor<48x48xf32>) -> !hidden loc("layers.0.kv")
    %k0, %v0 = tfm.split %kv0 : (!hidden) -> (!keys, !keys) loc("layers.0.kv")
    %qr0 = tfm.rope %q0 {head_dim = 12, frequencies = array<f64: 1.0, 0.3, 0.1, 0.03>} : (!hidden) -> !hidden loc("layers.0.q_rope")
    %kr0 = tfm.rope %k0 {head_dim = 12, frequencies = array<f64: 1.0, 0.3, 0.1, 0.03>} : (!keys) -> !keys loc("layers.0.k_rope")
    %a0, %s0 = tfm.attention %qr0, %kr0, %v0 {heads = 4, kv_heads = 2, scale = 0.2886751345948129, causal = true, window = 32}
      : (!hidden, !keys, !keys) -> (!hidden, tensor<8x4x64xf32>) loc("layers.0.attention")
    %o0 = tfm.linear %a0, %o0w : (!hidden, tensor<48x48xf32>) -> !hidden loc("layers.0.o")
    %g0 = tfm.linear %n0, %gate : (!hidden, tensor<96x48xf32>) -> !inner loc("layers.0.mlp.gate")
    %u0 = tfm.linear %n0, %up : (!hidden, tensor<96x48xf32>) -> !inner loc("layers.0.mlp.up")
    %m0 = tfm.swiglu %g0, %u0 : (!inner, !inner) -> !inner loc("layers.0.mlp.swiglu")
    %d0 = tfm.linear %m0, %down : (!inner, tensor<48x96xf32>) -> !hidden loc("layers.0.mlp.down")
    %x1 = tfm.add %x0, %o0, %d0 : (!hidden, !hidden, !hidden) -> !hidden loc("layers.0.residual")

    // Layer 1: the same MLP again, attention to all that came before.
    %n1w = tfm.get @layers.1.norm.weight : tensor<48xf32>
    %q1w = tfm.get @layers.1.q.weight : tensor<48x48xf32>
    %kv1w = tfm.get @layers.1.kv.weight : tensor<48x48xf32>
    %o1w = tfm.get @layers.1.o.weight : tensor<48x48xf32>
    %n1 = tfm.rms_norm %x1, %n1w {eps = 1.0e-5} : (!hidden, tensor<48xf32>) -> !hidden loc("layers.1.norm")
    %q1 = tfm.linear %n1, %q1w : (!hidden, tensor<48x48xf32>) -> !hidden loc("layers.1.q")
    %kv1 = tfm.linear %n1, %kv1w : (!hidden, tensor<48x48xf32>) -> !hidden loc("layers.1.kv")
    %k1, %v1 = tfm.split %kv1 : (!hidden) -> (!keys, !keys) loc("layers.1.kv")
    %a1, %s1 = tfm.attention %q1, %k1, %v1 {heads = 4, kv_heads = 2, scale = 0.2886751345948129, causal = true}
      : (!hidden, !keys, !keys) -> (!hidden, tensor<8x4x64xf32>) loc("layers.1.attention")
    %o1 = tfm.linear %a1, %o1w : (!hidden, tensor<48x48xf32>) -> !hidden loc("layers.1.o")
    %g1 = tfm.linear %n1, %gate : (!hidden, tensor<96x48xf32>) -> !inner loc("layers.1.mlp.gate")
    %u1 = tfm.linear %n1, %up : (!hidden, tensor<96x48xf32>) -> !inner loc("layers.1.mlp.up")
    %m1 = tfm.swiglu %g1, %u1 : (!inner, !inner) -> !inner loc("layers.1.mlp.swiglu")
    %d1 = tfm.linear %m1, %down : (!inner, tensor<48x96xf32>) -> !hidden loc("layers.1.mlp.down")
    %x2 = tfm.add %x1, %o1, %d1 : (!hidden, !hidden, !hidden) -> !hidden loc("layers.1.residual")

    // The head, and the mean over the counted labels of the step.
    %nw = tfm.get @norm.weight : tensor<48xf32>
    %n = tfm.rms_norm %x2, %nw {eps = 1.0e-5} : (!hidden, tensor<48xf32>) -> !hidden loc("norm")
    %logits = tfm.linear %n, %table : (!hidden, tensor<256x48xf32>) -> tensor<8x64x256xf32> loc("head")
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<8x64x256xf32>, !ids, tensor<i64>) -> tensor<f32> loc("loss")
    return %loss : tensor<f32>
  }
}
