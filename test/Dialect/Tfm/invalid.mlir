// RUN: gtp-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{has rank 3, expected 1 or 2 ([rows] or [rows, columns])}}
tfm.parameter @w : tensor<2x3x4xf32> init "normal" tensors ["w" = 2]

// -----

// expected-error @below {{has init "random", expected "normal", "ones" or "zeros"}}
tfm.parameter @w : tensor<2x3xf32> init "random" tensors ["w" = 2]

// -----

// expected-error @below {{has a placement in its type; a parameter is logical}}
tfm.parameter @w : tensor<2x3xf32, "encoding"> init "normal" tensors ["w" = 2]

// -----

// expected-error @below {{has checkpoint tensors of 5 rows in all, expected 6}}
tfm.parameter @w : tensor<6x3xf32> init "normal" tensors ["a" = 2, "b" = 3]

// -----

// expected-error @below {{has a checkpoint tensor of -1 rows, expected 1 to 6}}
tfm.parameter @w : tensor<6x3xf32> init "normal" tensors ["a" = -1, "b" = 7]

// -----

// expected-error @below {{has a checkpoint tensor of 9223372036854775807 rows, expected 1 to 6}}
tfm.parameter @w : tensor<6x3xf32> init "normal" tensors ["a" = 9223372036854775807, "b" = 1]

// -----

// expected-error @below {{has no elements}}
tfm.parameter @w : tensor<6x0xf32> init "normal" tensors ["w" = 6]

// -----

// expected-error @below {{has 2 checkpoint tensors but 1 row counts}}
"tfm.parameter"() <{sym_name = "w", type = tensor<2xf32>, init = "ones", tensor_names = ["a", "b"], tensor_rows = array<i64: 2>}> : () -> ()

// -----

// expected-error @below {{names checkpoint tensor "a" twice}}
tfm.parameter @w : tensor<2xf32> init "ones" tensors ["a" = 2] tied ["a"]

// -----

// expected-error @below {{whose bytes are not UTF-8, as safetensors' names are}}
tfm.parameter @w : tensor<2xf32> init "ones" tensors ["\FF" = 2]

// -----

// expected-error @below {{attribute 'type' failed to satisfy constraint}}
tfm.parameter @w : tensor<?xf32> init "ones" tensors ["a" = 2]

// -----

func.func @get_of_nothing() {
  // expected-error @below {{names no tfm.parameter: @w}}
  %0 = tfm.get @w : tensor<2xf32>
  return
}

// -----

// expected-note @below {{parameter declared here}}
tfm.parameter @w : tensor<2xf32> init "ones" tensors ["w" = 2]
func.func @get_of_another_type() {
  // expected-error @below {{has type 'tensor<3xf32>' but the parameter is 'tensor<2xf32>'}}
  %0 = tfm.get @w : tensor<3xf32>
  return
}

// -----

func.func @microbatches_of_nothing() {
  // expected-error @below {{has no input, so no number of microbatches}}
  tfm.microbatches () : () -> () {
    tfm.yield
  }
  return
}

// -----

func.func @microbatches_with_a_scalar(%x: tensor<f32>) {
  // expected-error @below {{has input 0 without a dimension}}
  tfm.microbatches (%a: tensor<f32> in %x) : (tensor<f32>) -> () {
    tfm.yield
  }
  return
}

// -----

func.func @microbatches_of_different_numbers(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{has input 1 of 3 microbatches, expected 2 as input 0}}
  tfm.microbatches (%a: tensor<4xf32> in %x, %b: tensor<4xf32> in %y) : (tensor<2x4xf32>, tensor<3x4xf32>) -> () {
    tfm.yield
  }
  return
}

// -----

func.func @microbatches_with_another_argument(%x: tensor<2x4xf32>) {
  // expected-error @below {{has body argument 0 of type 'tensor<5xf32>', expected one microbatch of 'tensor<2x4xf32>'}}
  tfm.microbatches (%a: tensor<5xf32> in %x) : (tensor<2x4xf32>) -> () {
    tfm.yield
  }
  return
}

// -----

func.func @microbatches_without_arguments(%x: tensor<2x4xf32>) {
  // expected-error @below {{has 0 body arguments, expected 1, one an input}}
  "tfm.microbatches"(%x) ({
    "tfm.yield"() : () -> ()
  }) : (tensor<2x4xf32>) -> ()
  return
}

// -----

func.func @microbatches_that_yield_something_else(%x: tensor<2x4xf32>) {
  // expected-error @below {{has results whose types are not those yielded}}
  %0 = tfm.microbatches (%a: tensor<4xf32> in %x) : (tensor<2x4xf32>) -> tensor<f32> {
    // expected-note @below {{yielded here}}
    tfm.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @microbatches_without_yield(%x: tensor<2x4xf32>) {
  // expected-error @below {{expects its body to end in tfm.yield}}
  "tfm.microbatches"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "func.return"() : () -> ()
  }) : (tensor<2x4xf32>) -> ()
  return
}

// -----

func.func @yield_outside() {
  // expected-error @below {{expects parent op 'tfm.microbatches'}}
  tfm.yield
}

// -----

func.func @dynamic(%x: tensor<?x4xf32>) {
  // expected-error @below {{must be statically shaped tensor of f32, bf16 or f64 values}}
  %0 = "tfm.cast"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @integers(%x: tensor<4xi32>) {
  // expected-error @below {{must be statically shaped tensor of f32, bf16 or f64 values}}
  %0 = "tfm.cast"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @embedding_in_a_vector(%ids: tensor<2x3xi32>, %table: tensor<8xf32>) {
  // expected-error @below {{has table of rank 1, expected 2}}
  %0 = tfm.embedding %ids, %table : (tensor<2x3xi32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @embedding_of_another_size(%ids: tensor<2x3xi32>, %table: tensor<8x4xf32>) {
  // expected-error @below {{has result of shape [2, 3, 5], expected [2, 3, 4]}}
  %0 = tfm.embedding %ids, %table : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @embedding_of_another_type(%ids: tensor<2x3xi32>, %table: tensor<8x4xf32>) {
  // expected-error @below {{has result of element type 'bf16', expected 'f32'}}
  %0 = tfm.embedding %ids, %table : (tensor<2x3xi32>, tensor<8x4xf32>) -> tensor<2x3x4xbf16>
  return
}

// -----

func.func @rms_norm_that_does_not_divide(%x: tensor<2x3x4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{has a weight of 3 elements, expected a divisor of x's 4 features}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-5} : (tensor<2x3x4xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rms_norm_of_a_scalar(%x: tensor<f32>, %w: tensor<3xf32>) {
  // expected-error @below {{has x of rank 0, expected at least 1}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-5} : (tensor<f32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @rms_norm_of_another_size(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{has result of shape [2, 5], expected [2, 4]}}
  %0 = tfm.rms_norm %x, %w {eps = 1.0e-5} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @linear_that_contracts_nothing(%x: tensor<2x3x4xf32>, %w: tensor<8x5xf32>) {
  // expected-error @below {{has x of shape [2, 3, 4], expected [2, 3, 5]}}
  %0 = tfm.linear %x, %w : (tensor<2x3x4xf32>, tensor<8x5xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @linear_of_another_size(%x: tensor<2x3x4xf32>, %w: tensor<8x4xf32>) {
  // expected-error @below {{has result of shape [2, 3, 4], expected [2, 3, 8]}}
  %0 = tfm.linear %x, %w : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @linear_of_two_types(%x: tensor<2x3x4xbf16>, %w: tensor<8x4xf32>) {
  // expected-error @below {{has w of element type 'f32', expected 'bf16'}}
  %0 = tfm.linear %x, %w : (tensor<2x3x4xbf16>, tensor<8x4xf32>) -> tensor<2x3x8xbf16>
  return
}

// -----

func.func @rope_of_an_odd_head(%x: tensor<2x3x6xf32>) {
  // expected-error @below {{has head_dim 3, expected an even one}}
  %0 = tfm.rope %x {head_dim = 3, frequencies = array<f64: 1.0>} : (tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @rope_of_part_of_a_head(%x: tensor<2x3x6xf32>) {
  // expected-error @below {{has 6 features, expected a multiple of head_dim 4}}
  %0 = tfm.rope %x {head_dim = 4, frequencies = array<f64: 1.0, 2.0>} : (tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @rope_with_too_many_frequencies(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{has 3 frequencies, expected 1 to 2, one a pair of features}}
  %0 = tfm.rope %x {head_dim = 4, frequencies = array<f64: 1.0, 2.0, 3.0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rope_without_head_dim(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{attribute 'head_dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = tfm.rope %x {head_dim = 0, frequencies = array<f64: 1.0>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @attention_with_heads_left_over(%q: tensor<2x3x6xf32>, %k: tensor<2x3x4xf32>) {
  // expected-error @below {{has 3 heads, expected a multiple of the 2 key and value heads}}
  %0, %lse = tfm.attention %q, %k, %k {heads = 3, kv_heads = 2, scale = 1.0, causal = true}
    : (tensor<2x3x6xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x6xf32>, tensor<2x3x3xf32>)
  return
}

// -----

func.func @attention_with_features_left_over(%q: tensor<2x3x7xf32>, %k: tensor<2x3x4xf32>) {
  // expected-error @below {{has q of 7 features, expected a multiple of the 4 heads}}
  %0, %lse = tfm.attention %q, %k, %k {heads = 4, kv_heads = 2, scale = 1.0, causal = true}
    : (tensor<2x3x7xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x7xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_with_keys_of_another_size(%q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>) {
  // expected-error @below {{has k of shape [2, 3, 8], expected [2, 3, 4]}}
  %0, %lse = tfm.attention %q, %k, %k {heads = 4, kv_heads = 2, scale = 1.0, causal = true}
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_with_statistics_in_bf16(%q: tensor<2x3x8xbf16>) {
  // expected-error @below {{has lse of element type 'bf16', expected 'f32'}}
  %0, %lse = tfm.attention %q, %q, %q {heads = 4, kv_heads = 4, scale = 1.0, causal = true}
    : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x4x3xbf16>)
  return
}

// -----

func.func @attention_with_statistics_of_another_size(%q: tensor<2x3x8xf32>) {
  // expected-error @below {{has lse of shape [2, 3, 4], expected [2, 4, 3]}}
  %0, %lse = tfm.attention %q, %q, %q {heads = 4, kv_heads = 4, scale = 1.0, causal = true}
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention_without_batch(%q: tensor<3x8xf32>) {
  // expected-error @below {{has q of rank 2, expected 3}}
  %0, %lse = tfm.attention %q, %q, %q {heads = 4, kv_heads = 4, scale = 1.0, causal = true}
    : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @attention_grad_of_another_size(%q: tensor<2x3x8xf32>, %lse: tensor<2x4x3xf32>) {
  // expected-error @below {{has dk of shape [2, 3, 4], expected [2, 3, 8]}}
  %0:3 = tfm.attention_grad %q, %q, %q, %q, %q, %lse {heads = 4, kv_heads = 4, scale = 1.0, causal = true}
    : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x4x3xf32>)
    -> (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @swiglu_of_two_sizes(%a: tensor<2x4xf32>, %b: tensor<2x5xf32>) {
  // expected-error @below {{has up of shape [2, 5], expected [2, 4]}}
  %0 = tfm.swiglu %a, %b : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @swiglu_grad_of_two_sizes(%a: tensor<2x4xf32>, %b: tensor<2x5xf32>) {
  // expected-error @below {{has gate of shape [2, 5], expected [2, 4]}}
  %0, %1 = tfm.swiglu_grad %a, %b, %a : (tensor<2x4xf32>, tensor<2x5xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @add_of_nothing() {
  // expected-error @below {{has no input}}
  %0 = tfm.add : () -> tensor<2x4xf32>
  return
}

// -----

func.func @add_of_two_types(%a: tensor<2x4xf32>, %b: tensor<2x4xbf16>) {
  // expected-error @below {{has an input of element type 'bf16', expected 'f32'}}
  %0 = tfm.add %a, %b : (tensor<2x4xf32>, tensor<2x4xbf16>) -> tensor<2x4xf32>
  return
}

// -----

func.func @split_with_features_left_over(%a: tensor<2x4xf32>) {
  // expected-error @below {{has pieces of 3 features in all, expected 4}}
  %0:2 = tfm.split %a : (tensor<2x4xf32>) -> (tensor<2x1xf32>, tensor<2x2xf32>)
  return
}

// -----

func.func @split_into_nothing(%a: tensor<2x4xf32>) {
  // expected-error @below {{has no result}}
  "tfm.split"(%a) : (tensor<2x4xf32>) -> ()
  return
}

// -----

func.func @split_of_rows(%a: tensor<2x4xf32>) {
  // expected-error @below {{has result of shape [1, 4], expected [2, 4]}}
  %0:2 = tfm.split %a : (tensor<2x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
  return
}

// -----

func.func @concat_of_two_types(%a: tensor<2x4xf32>, %b: tensor<2x4xbf16>) {
  // expected-error @below {{has input of element type 'bf16', expected 'f32'}}
  %0 = tfm.concat %a, %b : (tensor<2x4xf32>, tensor<2x4xbf16>) -> tensor<2x8xf32>
  return
}

// -----

func.func @cast_of_another_size(%a: tensor<2x4xf32>) {
  // expected-error @below {{has result of shape [4, 2], expected [2, 4]}}
  %0 = tfm.cast %a : (tensor<2x4xf32>) -> tensor<4x2xbf16>
  return
}

// -----

func.func @cross_entropy_without_vocabulary(%logits: tensor<2x3xf32>, %labels: tensor<2x3xi32>, %n: tensor<i64>) {
  // expected-error @below {{has logits of rank 2, expected 3}}
  %0 = tfm.cross_entropy %logits, %labels, %n : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_with_other_labels(%logits: tensor<2x3x5xf32>, %labels: tensor<2x4xi32>, %n: tensor<i64>) {
  // expected-error @below {{has labels of shape [2, 4], expected [2, 3]}}
  %0 = tfm.cross_entropy %logits, %labels, %n : (tensor<2x3x5xf32>, tensor<2x4xi32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_grad_of_another_size(%logits: tensor<2x3x5xf32>, %labels: tensor<2x3xi32>, %n: tensor<i64>, %d: tensor<f32>) {
  // expected-error @below {{has dlogits of shape [2, 3, 4], expected [2, 3, 5]}}
  %0 = tfm.cross_entropy_grad %logits, %labels, %n, %d : (tensor<2x3x5xf32>, tensor<2x3xi32>, tensor<i64>, tensor<f32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @embedding_grad_of_another_size(%dy: tensor<2x3x5xf32>, %ids: tensor<2x3xi32>) {
  // expected-error @below {{has dy of shape [2, 3, 5], expected [2, 3, 4]}}
  %0 = tfm.embedding_grad %dy, %ids : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @rms_norm_grad_of_another_size(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{has dweight of shape [2], expected [4]}}
  %0, %1 = tfm.rms_norm_grad %x, %x, %w {eps = 0.1} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return
}

// -----

func.func @linear_dgrad_of_another_size(%dy: tensor<2x3x8xf32>, %w: tensor<7x4xf32>) {
  // expected-error @below {{has dy of shape [2, 3, 8], expected [2, 3, 7]}}
  %0 = tfm.linear_dgrad %dy, %w : (tensor<2x3x8xf32>, tensor<7x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @linear_wgrad_of_other_tokens(%dy: tensor<2x3x8xf32>, %x: tensor<2x4x4xf32>) {
  // expected-error @below {{has x of shape [2, 4, 4], expected [2, 3, 4]}}
  %0 = tfm.linear_wgrad %dy, %x : (tensor<2x3x8xf32>, tensor<2x4x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @linear_wgrad_transposed(%dy: tensor<2x3x8xf32>, %x: tensor<2x3x4xf32>) {
  // expected-error @below {{has dw of shape [4, 8], expected [8, 4]}}
  %0 = tfm.linear_wgrad %dy, %x : (tensor<2x3x8xf32>, tensor<2x3x4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sum_squares_in_f32(%x: tensor<2x3xf32>) {
  // expected-error @below {{has result of element type 'f32', expected 'f64'}}
  %0 = tfm.sum_squares %x : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @clip_scale_to_less_than_nothing(%x: tensor<f64>) {
  // expected-error @below {{has max_norm -1.000000e+00, expected 0 (off) or more}}
  %0, %1 = tfm.clip_scale %x {max_norm = -1.0} : (tensor<f64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @adamw_with_moments_of_two_types(
    %w: tensor<4xf32>, %v: tensor<4xbf16>, %hyper: tensor<8xf32>, %scale: tensor<f32>) {
  // expected-error @below {{has v of element type 'bf16', expected 'f32'}}
  %0:3 = tfm.adamw %w, %w, %v, %w, %hyper, %scale
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<8xf32>, tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  return
}

// -----

func.func @adamw_with_a_gradient_of_another_size(
    %w: tensor<4xf32>, %g: tensor<5xf32>, %hyper: tensor<8xf32>, %scale: tensor<f32>) {
  // expected-error @below {{has gradient of shape [5], expected [4]}}
  %0:3 = tfm.adamw %w, %w, %w, %g, %hyper, %scale
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<8xf32>, tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @sgd_with_a_copy_of_one_type(%w: tensor<4xf32>, %hyper: tensor<8xf32>, %scale: tensor<f32>) {
  // expected-error @below {{publishes a copy of the master's own element type 'f32'; expected none}}
  %0:2 = tfm.sgd %w, %w, %hyper, %scale : (tensor<4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @sgd_with_too_few_inputs_from_the_caller(%w: tensor<4xf32>, %hyper: tensor<7xf32>, %scale: tensor<f32>) {
  // expected-error @below {{has hyper of shape [7], expected [8]}}
  %0 = tfm.sgd %w, %w, %hyper, %scale : (tensor<4xf32>, tensor<4xf32>, tensor<7xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @below {{has tfm.model = "llama", expected a dictionary on a module}}
module attributes {tfm.model = "llama"} {}

// -----

// expected-error @below {{has tfm.model with microbatches = 2 : i128, expected an i64 of 0 or more}}
module attributes {tfm.model = {microbatches = 2 : i128}} {}

// -----

// expected-error @below {{has tfm.arg = "weights", expected weight, master, remainder, state, tokens, labels or hyper}}
func.func private @argument_of_no_role(tensor<4xf32> {tfm.arg = "weights"})

// -----

// expected-error @below {{has tfm.parameter = "w", expected the symbol of a parameter}}
func.func private @parameter_by_a_string(tensor<4xf32> {tfm.parameter = "w"})

// -----

// expected-error @below {{has tfm.state = 1 : i64, expected the name of a state}}
func.func private @state_by_a_number(tensor<4xf32> {tfm.state = 1 : i64})

// -----

// expected-error @below {{has tfm.result = 1 : i64, expected the name of what is reported}}
func.func private @result_by_a_number() -> (tensor<4xf32> {tfm.result = 1 : i64})

// -----

// expected-error @below {{has tfm.tied_to = 3 : i64, expected the i64 number of one of its 1 arguments}}
func.func private @tied_to_nothing(tensor<4x4xf32>) -> (tensor<4x4xf32> {tfm.tied_to = 3 : i64})

// -----

// expected-error @below {{has result #0 of type 'tensor<4x4xf32>' tied to argument #1 of type 'tensor<4xf32>'}}
func.func private @tied_to_another(tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32> {tfm.tied_to = 1 : i64})

// -----

// expected-error @below {{has 2 numbers for the layouts of 2 checkpoint tensors, expected two each}}
"tfm.parameter"() <{sym_name = "w", type = tensor<4x2xf32>, init = "ones", tensor_names = ["a", "b"], tensor_rows = array<i64: 2, 2>, tensor_layouts = array<i64: -1, 0>}> : () -> ()

// -----

// expected-error @below {{has a transposed checkpoint tensor but rank 1}}
tfm.parameter @w : tensor<4xf32> init "ones" tensors ["w" = 4 transposed]

// -----

// expected-error @below {{has a checkpoint tensor of 8 rows interleaved 2 by 3, expected a divisor of them}}
tfm.parameter @w : tensor<8x2xf32> init "ones" tensors ["w" = 8 interleaved 2 by 3]

// -----

func.func @layer_norm_of_no_groups(%x: tensor<2x3x4xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{has a weight of 3 elements, expected a divisor of x's 4 features}}
  %0 = tfm.layer_norm %x, %w {eps = 1.0e-5} : (tensor<2x3x4xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @bias_of_another_size(%x: tensor<2x3x4xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{has bias of shape [3], expected [4]}}
  %0 = tfm.add_bias %x, %b : (tensor<2x3x4xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @product_of_another_weight(%x: tensor<2x3x4xf32>, %w: tensor<5x3xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{has x of shape [2, 3, 4], expected [2, 3, 3]}}
  %0 = tfm.linear_bias %x, %w, %b : (tensor<2x3x4xf32>, tensor<5x3xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @product_with_bias_of_another_size(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{has bias of shape [4], expected [5]}}
  %0 = tfm.linear_bias %x, %w, %b : (tensor<2x3x4xf32>, tensor<5x4xf32>, tensor<4xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @product_with_bias_of_another_type(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xbf16>) {
  // expected-error @below {{has bias of element type 'bf16', expected 'f32'}}
  %0 = tfm.linear_bias %x, %w, %b : (tensor<2x3x4xf32>, tensor<5x4xf32>, tensor<5xbf16>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @bias_gradient_of_another_size(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{has dbias of shape [3], expected [4]}}
  %0 = tfm.bias_grad %x : (tensor<2x3x4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @too_few_positions(%x: tensor<2x3x4xf32>, %t: tensor<2x4xf32>) {
  // expected-error @below {{has a table of 2 positions, expected at least the sequence's 3}}
  %0 = tfm.add_positions %x, %t : (tensor<2x3x4xf32>, tensor<2x4xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @positions_of_another_size(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{has the table of shape [3, 5], expected [3, 4]}}
  %0 = tfm.positions_grad %x : (tensor<2x3x4xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @window_without_causality(%q: tensor<2x3x4xf32>) {
  // expected-error @below {{has window 2, expected 0 (none), or more where attention is causal}}
  %0, %lse = tfm.attention %q, %q, %q {heads = 1, kv_heads = 1, scale = 1.0, causal = false, window = 2}
    : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x1x3xf32>)
  return
}

// -----

func.func @negative_softcap(%q: tensor<2x3x4xf32>) {
  // expected-error @below {{has softcap -1}}
  %0, %lse = tfm.attention %q, %q, %q {heads = 1, kv_heads = 1, scale = 1.0, causal = true, softcap = -1.0}
    : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x1x3xf32>)
  return
}

// -----

func.func @cap_of_nothing(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected a number above 0}}
  %0 = tfm.softcap %x {cap = 0.0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @product_of_two_shapes(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) {
  // expected-error @below {{has b of shape [3, 2], expected [2, 3]}}
  %0 = tfm.mul %a, %b : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scale_to_another_type(%x: tensor<2x3xf32>) {
  // expected-error @below {{has result of element type 'f64', expected 'f32'}}
  %0 = tfm.scale %x {factor = 2.0} : (tensor<2x3xf32>) -> tensor<2x3xf64>
  return
}

// -----

func.func @gelu_to_another_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{has result of shape [3, 2], expected [2, 3]}}
  %0 = tfm.gelu %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @separator_that_is_no_id(%tokens: tensor<2x3xi32>) {
  // expected-error @below {{has separator 2147483648, expected an id: 0 to 2147483647}}
  %0 = tfm.document_starts %tokens {separator = 2147483648} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @negative_separator(%tokens: tensor<2x3xi32>) {
  // expected-error @below {{attribute 'separator' failed to satisfy constraint}}
  %0 = tfm.document_starts %tokens {separator = -1} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @starts_of_other_tokens(%tokens: tensor<2x3xi32>) {
  // expected-error @below {{has starts of shape [3, 2], expected [2, 3]}}
  %0 = tfm.document_starts %tokens {separator = 1} : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return
}

// -----

func.func @rope_with_starts_of_other_tokens(%x: tensor<2x3x4xf32>, %s: tensor<3x2xi32>) {
  // expected-error @below {{has starts of shape [3, 2], expected [2, 3]}}
  %0 = tfm.rope %x, %s {head_dim = 2, frequencies = array<f64: 1.0>} : (tensor<2x3x4xf32>, tensor<3x2xi32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @positions_with_starts_of_other_tokens(%x: tensor<2x3x4xf32>, %s: tensor<6xi32>) {
  // expected-error @below {{has starts of shape [6], expected [2, 3]}}
  %0 = tfm.positions_grad %x, %s : (tensor<2x3x4xf32>, tensor<6xi32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @attention_with_starts_of_other_tokens(%q: tensor<2x3x4xf32>, %s: tensor<2x4xi32>) {
  // expected-error @below {{has starts of shape [2, 4], expected [2, 3]}}
  %0, %lse = tfm.attention %q, %q, %q, %s {heads = 1, kv_heads = 1, scale = 1.0, causal = true}
    : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x4xi32>) -> (tensor<2x3x4xf32>, tensor<2x1x3xf32>)
  return
}

// -----

func.func @documents_of_attention_both_ways(%q: tensor<2x3x4xf32>, %s: tensor<2x3xi32>) {
  // expected-error @below {{has starts of documents but is not causal; nothing says where documents end}}
  %0, %lse = tfm.attention %q, %q, %q, %s {heads = 1, kv_heads = 1, scale = 1.0, causal = false}
    : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3xi32>) -> (tensor<2x3x4xf32>, tensor<2x1x3xf32>)
  return
}

// -----

// expected-error @below {{has tfm.model with document_separator = 7, expected an id below its vocabulary of 7}}
module attributes {tfm.model = {vocabulary = 7 : i64, document_separator = 7 : i64}} {
}

// -----

// expected-error @below {{has prefetch "0", expected "off", "auto" or a distance of "1" or more}}
tfm.parameter @w : tensor<2xf32> init "ones" tensors ["w" = 2] prefetch "0"

// -----

// expected-error @below {{has prefetch "early", expected "off", "auto" or a distance of "1" or more}}
tfm.parameter @w : tensor<2xf32> init "ones" tensors ["w" = 2] prefetch "early"

// -----

func.func @norm_gradient(%x: tensor<3x4xf32>, %w: tensor<2xf32>) {
  // expected-error @below {{has dweight of shape [4], expected [2]}}
  tfm.rms_norm_grad %x, %x, %w {eps = 1.0e-5} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<2xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @sgd_split_with_a_remainder_of_another_size(
    %w: tensor<4xbf16>, %r: tensor<5xi16>, %hyper: tensor<8xf32>, %scale: tensor<f32>) {
  // expected-error @below {{has remainder of shape [5], expected [4]}}
  %0:2 = tfm.sgd_split %w, %r, %w, %hyper, %scale
    : (tensor<4xbf16>, tensor<5xi16>, tensor<4xbf16>, tensor<8xf32>, tensor<f32>) -> (tensor<4xbf16>, tensor<5xi16>)
  return
}

// -----

func.func @adamw_split_of_a_float32(
    %w: tensor<4xf32>, %r: tensor<4xi16>, %hyper: tensor<8xf32>, %scale: tensor<f32>) {
  // expected-error @below {{operand #0 must be statically shaped tensor of bfloat16 type values, but got 'tensor<4xf32>'}}
  %0:4 = tfm.adamw_split %w, %r, %w, %w, %w, %hyper, %scale
    : (tensor<4xf32>, tensor<4xi16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>)
    -> (tensor<4xf32>, tensor<4xi16>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @count_labels_without_a_sequence(%labels: tensor<i32>) {
  // expected-error @below {{counts sequences of labels without a dimension, expected one along the sequence}}
  %0 = tfm.count_labels %labels {sequences} : (tensor<i32>) -> tensor<i64>
  return
}
