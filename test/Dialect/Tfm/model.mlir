// One layer of a Llama with tied embeddings, whole.
// RUN: gtp-opt %s | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --emit-bytecode | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --mlir-print-op-generic | gtp-opt | FileCheck %s

// CHECK: module attributes {tfm.model = {family = "llama", microbatches = 2 : i64}}
module attributes {tfm.model = {family = "llama", microbatches = 2 : i64}} {
  // CHECK: tfm.parameter @model.embed_tokens.weight : tensor<32x16xf32> init "normal" tensors ["model.embed_tokens.weight" = 32] tied ["lm_head.weight"]
  tfm.parameter @model.embed_tokens.weight : tensor<32x16xf32> init "normal"
    tensors ["model.embed_tokens.weight" = 32] tied ["lm_head.weight"]
  tfm.parameter @layers.0.input_layernorm.weight : tensor<16xf32> init "ones" tensors ["layers.0.input_layernorm.weight" = 16]
  tfm.parameter @layers.0.self_attn.q_proj.weight : tensor<16x16xf32> init "normal" tensors ["layers.0.self_attn.q_proj.weight" = 16]
  tfm.parameter @layers.0.self_attn.k_proj.weight : tensor<8x16xf32> init "normal" tensors ["layers.0.self_attn.k_proj.weight" = 8]
  tfm.parameter @layers.0.self_attn.v_proj.weight : tensor<8x16xf32> init "normal" tensors ["layers.0.self_attn.v_proj.weight" = 8]
  tfm.parameter @layers.0.self_attn.o_proj.weight : tensor<16x16xf32> init "normal" tensors ["layers.0.self_attn.o_proj.weight" = 16]
  tfm.parameter @layers.0.post_attention_layernorm.weight : tensor<16xf32> init "ones" tensors ["layers.0.post_attention_layernorm.weight" = 16]
  tfm.parameter @layers.0.mlp.gate_proj.weight : tensor<24x16xf32> init "normal" tensors ["layers.0.mlp.gate_proj.weight" = 24]
  tfm.parameter @layers.0.mlp.up_proj.weight : tensor<24x16xf32> init "normal" tensors ["layers.0.mlp.up_proj.weight" = 24]
  tfm.parameter @layers.0.mlp.down_proj.weight : tensor<16x24xf32> init "normal" tensors ["layers.0.mlp.down_proj.weight" = 16]
  tfm.parameter @model.norm.weight : tensor<16xf32> init "ones" tensors ["model.norm.weight" = 16]

  // CHECK-LABEL: func.func @forward
  func.func @forward(%tokens: tensor<2x4xi32>, %labels: tensor<2x4xi32>, %count: tensor<i64>) -> tensor<f32> {
    // CHECK: %[[TABLE:.*]] = tfm.get @model.embed_tokens.weight : tensor<32x16xf32>
    // CHECK: tfm.embedding %{{.*}}, %[[TABLE]] : (tensor<2x4xi32>, tensor<32x16xf32>) -> tensor<2x4x16xf32>
    %table = tfm.get @model.embed_tokens.weight : tensor<32x16xf32>
    %h0 = tfm.embedding %tokens, %table : (tensor<2x4xi32>, tensor<32x16xf32>) -> tensor<2x4x16xf32> loc("embed_tokens")
    %n1 = tfm.get @layers.0.input_layernorm.weight : tensor<16xf32>
    %x1 = tfm.rms_norm %h0, %n1 {eps = 1.0e-5} : (tensor<2x4x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32> loc("layers.0.input_layernorm")
    %wq = tfm.get @layers.0.self_attn.q_proj.weight : tensor<16x16xf32>
    %wk = tfm.get @layers.0.self_attn.k_proj.weight : tensor<8x16xf32>
    %wv = tfm.get @layers.0.self_attn.v_proj.weight : tensor<8x16xf32>
    %q = tfm.linear %x1, %wq : (tensor<2x4x16xf32>, tensor<16x16xf32>) -> tensor<2x4x16xf32> loc("layers.0.self_attn.q_proj")
    %k = tfm.linear %x1, %wk : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32> loc("layers.0.self_attn.k_proj")
    %v = tfm.linear %x1, %wv : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32> loc("layers.0.self_attn.v_proj")
    %qr = tfm.rope %q {head_dim = 4, frequencies = array<f64: 1.0, 0.01>} : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32> loc("layers.0.self_attn.q_rope")
    %kr = tfm.rope %k {head_dim = 4, frequencies = array<f64: 1.0, 0.01>} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32> loc("layers.0.self_attn.k_rope")
    %a, %lse = tfm.attention %qr, %kr, %v {heads = 4, kv_heads = 2, scale = 0.5, causal = true}
      : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>) loc("layers.0.self_attn.attention")
    %wo = tfm.get @layers.0.self_attn.o_proj.weight : tensor<16x16xf32>
    %o = tfm.linear %a, %wo : (tensor<2x4x16xf32>, tensor<16x16xf32>) -> tensor<2x4x16xf32> loc("layers.0.self_attn.o_proj")
    %h1 = tfm.add %h0, %o : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32> loc("layers.0.self_attn.residual")
    %n2 = tfm.get @layers.0.post_attention_layernorm.weight : tensor<16xf32>
    %x2 = tfm.rms_norm %h1, %n2 {eps = 1.0e-5} : (tensor<2x4x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32> loc("layers.0.post_attention_layernorm")
    %wg = tfm.get @layers.0.mlp.gate_proj.weight : tensor<24x16xf32>
    %wu = tfm.get @layers.0.mlp.up_proj.weight : tensor<24x16xf32>
    %g = tfm.linear %x2, %wg : (tensor<2x4x16xf32>, tensor<24x16xf32>) -> tensor<2x4x24xf32> loc("layers.0.mlp.gate_proj")
    %u = tfm.linear %x2, %wu : (tensor<2x4x16xf32>, tensor<24x16xf32>) -> tensor<2x4x24xf32> loc("layers.0.mlp.up_proj")
    %s = tfm.swiglu %g, %u : (tensor<2x4x24xf32>, tensor<2x4x24xf32>) -> tensor<2x4x24xf32> loc("layers.0.mlp.act")
    %wd = tfm.get @layers.0.mlp.down_proj.weight : tensor<16x24xf32>
    %d = tfm.linear %s, %wd : (tensor<2x4x24xf32>, tensor<16x24xf32>) -> tensor<2x4x16xf32> loc("layers.0.mlp.down_proj")
    %h2 = tfm.add %h1, %d : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32> loc("layers.0.mlp.residual")
    %n3 = tfm.get @model.norm.weight : tensor<16xf32>
    %x3 = tfm.rms_norm %h2, %n3 {eps = 1.0e-5} : (tensor<2x4x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32> loc("norm")
    %head = tfm.get @model.embed_tokens.weight : tensor<32x16xf32>
    %logits = tfm.linear %x3, %head : (tensor<2x4x16xf32>, tensor<32x16xf32>) -> tensor<2x4x32xf32> loc("lm_head")
    // CHECK: tfm.cross_entropy
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<2x4x32xf32>, tensor<2x4xi32>, tensor<i64>) -> tensor<f32> loc("loss")
    return %loss : tensor<f32>
  }
}
