// RUN: gtp-opt %s --gtp-place=mesh=gtp=2 --split-input-file --verify-diagnostics

tfm.parameter @w : tensor<4x4xf32> init "normal" tensors ["w" = 4]
func.func @forward_program(%tokens: tensor<2x4xi32>) -> tensor<4x4xf32> {
  // expected-error @below {{'tfm.get' op has no placement rule; gtp-place takes the training step that tfm-differentiate makes}}
  %0 = tfm.get @w : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error @below {{expected tokens and labels of [..., batch, sequence], found 'tensor<4xi32>'}}
func.func @no_batch(%tokens: tensor<4xi32> {tfm.arg = "tokens"}) {
  return
}

// -----

// expected-error @below {{cannot place argument #0 of type 'i32'}}
func.func @no_tensor(%x: i32) {
  return
}
