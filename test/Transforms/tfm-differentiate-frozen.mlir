// RUN: gtp-opt %s -split-input-file -tfm-differentiate | FileCheck %s
// RUN: gtp-opt %s -split-input-file -tfm-differentiate="state-dtype=f64" | FileCheck %s --check-prefix=STATE

// A frozen table that is tied to the head, and a frozen norm: arguments without a
// result, no gradient, no state. What is below the trained weight has no backward
// pass; what is above has its gradients of activations.
module {
  tfm.parameter @table : tensor<8x4xf32> init "normal" tensors ["table" = 8] tied ["head"] frozen
  tfm.parameter @low : tensor<4xf32> init "ones" tensors ["low" = 4] frozen
  tfm.parameter @w : tensor<4x4xf32> init "normal" tensors ["w" = 4]
  tfm.parameter @high : tensor<4xf32> init "ones" tensors ["high" = 4] frozen
  // CHECK-LABEL: func.func @train_step(
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x4xf32> {tfm.arg = "weight", tfm.parameter = @w},
  // CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<4x4xf32> {tfm.arg = "state", tfm.parameter = @w, tfm.state = "m"},
  // CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4x4xf32> {tfm.arg = "state", tfm.parameter = @w, tfm.state = "v"},
  // CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "weight", tfm.parameter = @table},
  // CHECK-SAME: %[[LOW:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "weight", tfm.parameter = @low},
  // CHECK-SAME: %[[HIGH:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "weight", tfm.parameter = @high},
  // CHECK-SAME: %{{[a-z0-9]+}}: tensor<1x1x2xi32> {tfm.arg = "tokens"},
  // CHECK-SAME: -> (tensor<4x4xf32> {tfm.tied_to = 0 : i64}, tensor<4x4xf32> {tfm.tied_to = 1 : i64}, tensor<4x4xf32> {tfm.tied_to = 2 : i64}, tensor<f32> {tfm.result = "loss"},
  // A master copy of what is trained alone.
  // STATE: {tfm.arg = "master", tfm.parameter = @w}
  // STATE-NOT: {tfm.arg = "master"
  // STATE: {tfm.arg = "hyper"}
  func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
    %table = tfm.get @table : tensor<8x4xf32>
    %low = tfm.get @low : tensor<4xf32>
    %w = tfm.get @w : tensor<4x4xf32>
    %high = tfm.get @high : tensor<4xf32>
    // CHECK: %[[H:.*]] = tfm.embedding
    // CHECK: %[[X:.*]] = tfm.rms_norm %[[H]], %[[LOW]]
    // CHECK: %[[Y:.*]] = tfm.linear %[[X]], %[[W]]
    // CHECK: tfm.rms_norm %[[Y]], %[[HIGH]]
    %h = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32>
    %x = tfm.rms_norm %h, %low {eps = 1.0e-5} : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
    %y = tfm.linear %x, %w : (tensor<1x2x4xf32>, tensor<4x4xf32>) -> tensor<1x2x4xf32>
    %z = tfm.rms_norm %y, %high {eps = 1.0e-5} : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
    %logits = tfm.linear %z, %table : (tensor<1x2x4xf32>, tensor<8x4xf32>) -> tensor<1x2x8xf32>
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x8xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
    // CHECK: tfm.cross_entropy_grad
    // CHECK-NEXT: %[[DZ:.*]] = tfm.linear_dgrad %{{.*}}, %[[TABLE]]
    // CHECK-NEXT: %[[DY:.*]] = tfm.rms_norm_grad %[[DZ]], %[[Y]], %[[HIGH]] {eps = 1.000000e-05 : f64} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
    // CHECK-NEXT: %[[DW:.*]] = tfm.linear_wgrad %[[DY]], %[[X]]
    // CHECK-NEXT: tfm.yield %[[DW]], %
    // CHECK-COUNT-1: tfm.sum_squares
    // CHECK-NOT: tfm.sum_squares
    // CHECK-COUNT-1: tfm.adamw
    // CHECK-NOT: tfm.adamw
    return %loss : tensor<f32>
  }
}

// -----

// The same of the other norm.
module {
  tfm.parameter @table : tensor<8x4xf32> init "normal" tensors ["table" = 8]
  tfm.parameter @norm : tensor<4xf32> init "ones" tensors ["norm" = 4] frozen
  tfm.parameter @head : tensor<8x4xf32> init "normal" tensors ["head" = 8] frozen
  // CHECK-LABEL: func.func @train_step(
  func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
    %table = tfm.get @table : tensor<8x4xf32>
    %norm = tfm.get @norm : tensor<4xf32>
    %head = tfm.get @head : tensor<8x4xf32>
    %h = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32>
    %x = tfm.layer_norm %h, %norm {eps = 1.0e-5} : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
    %logits = tfm.linear %x, %head : (tensor<1x2x4xf32>, tensor<8x4xf32>) -> tensor<1x2x8xf32>
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x8xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
    // CHECK: tfm.linear_dgrad
    // CHECK-NEXT: tfm.layer_norm_grad {{.*}} -> tensor<1x2x4xf32>
    // CHECK-NEXT: tfm.embedding_grad
    // CHECK-NEXT: tfm.yield
    return %loss : tensor<f32>
  }
}
