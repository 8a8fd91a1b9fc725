// RUN: gtp-opt %s -split-input-file -tfm-differentiate -verify-diagnostics
// RUN: echo "module {}" | not gtp-opt -tfm-differentiate=optimizer=lion 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// RUN: echo "module {}" | not gtp-opt -tfm-differentiate=clip-norm=-1 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: echo "module {}" | not gtp-opt -tfm-differentiate=state-dtype=f16 2>&1 | FileCheck %s --check-prefix=STATE
// RUN: echo "module {}" | not gtp-opt -tfm-differentiate=attention-backward=quick 2>&1 | FileCheck %s --check-prefix=ATTENTION
// OPTIMIZER: error: tfm-differentiate: optimizer is "lion", expected adamw or sgd
// ATTENTION: error: tfm-differentiate: attention-backward is "quick", expected deterministic or fast
// CLIP: error: tfm-differentiate: clip-norm is -1.0{{.*}}, expected 0 (off) or more
// STATE: error: tfm-differentiate: state-dtype is "f16", expected f32, bf16, f64 or split

// expected-error @below {{tfm-differentiate: expected a function @forward of one block}}
module {
}

// -----

// expected-error @below {{tfm-differentiate: @forward has type '(tensor<1x2xi32>) -> tensor<f32>', expected (tokens: tensor<BxTxi32>, labels: tensor<BxTxi32>, count: tensor<i64>) -> tensor<f32>}}
func.func @forward(%tokens: tensor<1x2xi32>) -> tensor<f32> {
  %0 = tfm.full 1.0 : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{tfm-differentiate: there is a @eval_step already}}
func.func private @eval_step()
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %0 = tfm.full 1.0 : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{tfm-differentiate: there is a @train_step already}}
func.func private @train_step()
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %0 = tfm.full 1.0 : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{tfm-differentiate: microbatches is 0 : i64, expected 1 or more}}
module attributes {tfm.model = {microbatches = 0 : i64}} {
  func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
    %0 = tfm.full 1.0 : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  // expected-error @below {{the loss depends on no parameter}}
  %0 = tfm.full 1.0 : tensor<f32>
  return %0 : tensor<f32>
}

// -----

tfm.parameter @used : tensor<8x4xf32> init "normal" tensors ["used" = 8]
// expected-error @below {{is a parameter that the loss does not depend on; remove it}}
tfm.parameter @unused : tensor<8x4xf32> init "normal" tensors ["unused" = 8]
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %w = tfm.get @used : tensor<8x4xf32>
  %logits = tfm.embedding %tokens, %w : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32>
  %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

tfm.parameter @w : tensor<4x4xf32> init "normal" tensors ["w" = 4]
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %w = tfm.get @w : tensor<4x4xf32>
  %x = tfm.embedding %tokens, %w : (tensor<1x2xi32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  // expected-error @below {{has no derivative, but the loss depends on parameters through it}}
  %logits = tfm.linear_dgrad %x, %w : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
  %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error @below {{tfm-differentiate: all 1 parameters are frozen, so there is nothing to train; leave at least one out}}
module {
  tfm.parameter @w : tensor<2xf32> init "ones" tensors ["w" = 2] frozen
  func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
    %0 = tfm.full 1.0 : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// expected-error @below {{'tfm.parameter' op is a parameter that the loss does not depend on; remove it}}
tfm.parameter @unused : tensor<2xf32> init "ones" tensors ["u" = 2] frozen
tfm.parameter @table : tensor<8x4xf32> init "normal" tensors ["table" = 8]
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %table = tfm.get @table : tensor<8x4xf32>
  %h = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32>
  %logits = tfm.linear %h, %table : (tensor<1x2x4xf32>, tensor<8x4xf32>) -> tensor<1x2x8xf32>
  %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x8xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

tfm.parameter @w : tensor<8x4xf32> init "normal" tensors ["w" = 8]
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %w = tfm.get @w : tensor<8x4xf32>
  %logits = tfm.embedding %tokens, %w : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32>
  // expected-note @below {{the other loss}}
  %a = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  // expected-error @below {{takes the count as that of sequences, another loss as that of labels; expected one kind of mean}}
  %b = tfm.cross_entropy %logits, %labels, %count {sequence_mean} : (tensor<1x2x4xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  %loss = tfm.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
