// Three weights, one of them used twice, over three microbatches of eight sequences:
// eight data ranks, or fewer and a larger micro_batch.

module attributes {tfm.model = {family = "llama", vocabulary = 257 : i64, sequence = 4 : i64, micro_batch = 1 : i64,
                                global_batch = 24 : i64, microbatches = 3 : i64, max_positions = 4 : i64}} {
tfm.parameter @embed : tensor<257x76xf32> init "normal" tensors ["embed" = 257] tied ["head"]
tfm.parameter @qkv : tensor<114x76xf32> init "normal" tensors ["q" = 76, "k" = 38]
tfm.parameter @norm : tensor<76xf32> init "ones" tensors ["norm" = 76]
func.func @train_step(
    %w: tensor<257x76xf32> {tfm.arg = "weight", tfm.parameter = @embed},
    %wm: tensor<257x76xf32> {tfm.arg = "state", tfm.state = "m", tfm.parameter = @embed},
    %wv: tensor<257x76xf32> {tfm.arg = "state", tfm.state = "v", tfm.parameter = @embed},
    %p: tensor<114x76xf32> {tfm.arg = "weight", tfm.parameter = @qkv},
    %s: tensor<76xf32> {tfm.arg = "weight", tfm.parameter = @norm},
    %tokens: tensor<3x8x4xi32> {tfm.arg = "tokens"}, %labels: tensor<3x8x4xi32> {tfm.arg = "labels"},
    %hyper: tensor<8xf32> {tfm.arg = "hyper"})
    -> (tensor<257x76xf32> {tfm.tied_to = 0 : i64}, tensor<257x76xf32> {tfm.tied_to = 1 : i64},
        tensor<257x76xf32> {tfm.tied_to = 2 : i64}, tensor<114x76xf32> {tfm.tied_to = 3 : i64},
        tensor<76xf32> {tfm.tied_to = 4 : i64}, tensor<f32> {tfm.result = "loss"}, tensor<i64> {tfm.result = "count"}) {
  %n = tfm.count_labels %labels : (tensor<3x8x4xi32>) -> tensor<i64>
  %g:4 = tfm.microbatches (%t : tensor<8x4xi32> in %tokens, %l : tensor<8x4xi32> in %labels)
      : (tensor<3x8x4xi32>, tensor<3x8x4xi32>) -> (tensor<257x76xf32>, tensor<114x76xf32>, tensor<76xf32>, tensor<f32>) {
    %x = tfm.embedding %t, %w : (tensor<8x4xi32>, tensor<257x76xf32>) -> tensor<8x4x76xf32>
    %h = tfm.rms_norm %x, %s {eps = 1.0e-5 : f64} : (tensor<8x4x76xf32>, tensor<76xf32>) -> tensor<8x4x76xf32>
    %qk = tfm.linear %h, %p : (tensor<8x4x76xf32>, tensor<114x76xf32>) -> tensor<8x4x114xf32>
    %q, %k = tfm.split %qk : (tensor<8x4x114xf32>) -> (tensor<8x4x76xf32>, tensor<8x4x38xf32>)
    %r = tfm.rope %k {head_dim = 2 : i64, frequencies = array<f64: 1.0>} : (tensor<8x4x38xf32>) -> tensor<8x4x38xf32>
    %y = tfm.linear %q, %w : (tensor<8x4x76xf32>, tensor<257x76xf32>) -> tensor<8x4x257xf32>
    %e = tfm.cross_entropy %y, %l, %n : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>) -> tensor<f32>
    %one = tfm.full 1.0 : tensor<f32>
    %dy = tfm.cross_entropy_grad %y, %l, %n, %one : (tensor<8x4x257xf32>, tensor<8x4xi32>, tensor<i64>, tensor<f32>) -> tensor<8x4x257xf32>
    %dq = tfm.linear_dgrad %dy, %w : (tensor<8x4x257xf32>, tensor<257x76xf32>) -> tensor<8x4x76xf32>
    %d0 = tfm.linear_wgrad %dy, %q : (tensor<8x4x257xf32>, tensor<8x4x76xf32>) -> tensor<257x76xf32>
    %dk = tfm.rope %r {head_dim = 2 : i64, frequencies = array<f64: 1.0>, inverse} : (tensor<8x4x38xf32>) -> tensor<8x4x38xf32>
    %dqk = tfm.concat %dq, %dk : (tensor<8x4x76xf32>, tensor<8x4x38xf32>) -> tensor<8x4x114xf32>
    %dh = tfm.linear_dgrad %dqk, %p : (tensor<8x4x114xf32>, tensor<114x76xf32>) -> tensor<8x4x76xf32>
    %dp = tfm.linear_wgrad %dqk, %h : (tensor<8x4x114xf32>, tensor<8x4x76xf32>) -> tensor<114x76xf32>
    %dx, %ds = tfm.rms_norm_grad %dh, %x, %s {eps = 1.0e-5 : f64} : (tensor<8x4x76xf32>, tensor<8x4x76xf32>, tensor<76xf32>) -> (tensor<8x4x76xf32>, tensor<76xf32>)
    %d1 = tfm.embedding_grad %dx, %t : (tensor<8x4x76xf32>, tensor<8x4xi32>) -> tensor<257x76xf32>
    %d = tfm.add %d0, %d1 : (tensor<257x76xf32>, tensor<257x76xf32>) -> tensor<257x76xf32>
    tfm.yield %d, %dp, %ds, %e : tensor<257x76xf32>, tensor<114x76xf32>, tensor<76xf32>, tensor<f32>
  }
  %scale = tfm.full 1.0 : tensor<f32>
  %new0, %newm, %newv = tfm.adamw %w, %wm, %wv, %g#0, %hyper, %scale {decay} : (tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>)
  %new1 = tfm.sgd %p, %g#1, %hyper, %scale {decay} : (tensor<114x76xf32>, tensor<114x76xf32>, tensor<8xf32>, tensor<f32>) -> tensor<114x76xf32>
  %new2 = tfm.sgd %s, %g#2, %hyper, %scale : (tensor<76xf32>, tensor<76xf32>, tensor<8xf32>, tensor<f32>) -> tensor<76xf32>
  return %new0, %newm, %newv, %new1, %new2, %g#3, %n : tensor<257x76xf32>, tensor<257x76xf32>, tensor<257x76xf32>, tensor<114x76xf32>, tensor<76xf32>, tensor<f32>, tensor<i64>
}
}
