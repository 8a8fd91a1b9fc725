// RUN: gtp-opt %s -split-input-file -tfm-differentiate | FileCheck %s
// RUN: gtp-opt %s -split-input-file -tfm-differentiate="optimizer=sgd clip-norm=0.5" | FileCheck %s --check-prefix=SGD
// RUN: gtp-opt %s -split-input-file -tfm-differentiate -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// A table tied to the head: two contributions, one gradient, one state.
module attributes {tfm.model = {microbatches = 3 : i64}} {
  // CHECK: tfm.parameter @table
  tfm.parameter @table : tensor<8x4xf32> init "normal" tensors ["table" = 8] tied ["head"]
  tfm.parameter @norm : tensor<4xf32> init "ones" tensors ["norm" = 4]
  // CHECK-NOT: @forward
  // CHECK-LABEL: func.func @train_step(
  // CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "weight", tfm.parameter = @table},
  // CHECK-SAME: %[[TM:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "state", tfm.parameter = @table, tfm.state = "m"},
  // CHECK-SAME: %[[TV:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "state", tfm.parameter = @table, tfm.state = "v"},
  // CHECK-SAME: %[[NORM:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "weight", tfm.parameter = @norm},
  // CHECK-SAME: %[[NM:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "state", tfm.parameter = @norm, tfm.state = "m"},
  // CHECK-SAME: %[[NV:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "state", tfm.parameter = @norm, tfm.state = "v"},
  // CHECK-SAME: %[[TOKENS:[a-z0-9]+]]: tensor<3x1x2xi32> {tfm.arg = "tokens"},
  // CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<3x1x2xi32> {tfm.arg = "labels"},
  // CHECK-SAME: %[[HYPER:[a-z0-9]+]]: tensor<8xf32> {tfm.arg = "hyper"})
  // CHECK-SAME: -> (tensor<8x4xf32> {tfm.tied_to = 0 : i64}, tensor<8x4xf32> {tfm.tied_to = 1 : i64}, tensor<8x4xf32> {tfm.tied_to = 2 : i64}, tensor<4xf32> {tfm.tied_to = 3 : i64}, tensor<4xf32> {tfm.tied_to = 4 : i64}, tensor<4xf32> {tfm.tied_to = 5 : i64}, tensor<f32> {tfm.result = "loss"}, tensor<f32> {tfm.result = "grad_norm"}, tensor<i64> {tfm.result = "count"})
  func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
    // CHECK-NEXT: %[[N:.*]] = tfm.count_labels %[[LABELS]]
    // CHECK-NEXT: %[[SUM:.*]]:3 = tfm.microbatches (%[[T:.*]]: tensor<1x2xi32> in %[[TOKENS]], %[[L:.*]]: tensor<1x2xi32> in %[[LABELS]])
    // CHECK-NEXT: %[[H:.*]] = tfm.embedding %[[T]], %[[TABLE]]
    // CHECK-NEXT: %[[X:.*]] = tfm.rms_norm %[[H]], %[[NORM]]
    // CHECK-NEXT: %[[LOGITS:.*]] = tfm.linear %[[X]], %[[TABLE]]
    // CHECK-NEXT: %[[LOSS:.*]] = tfm.cross_entropy %[[LOGITS]], %[[L]], %[[N]]
    %table = tfm.get @table : tensor<8x4xf32>
    %h = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xf32>) -> tensor<1x2x4xf32> loc("embed")
    %norm = tfm.get @norm : tensor<4xf32>
    %x = tfm.rms_norm %h, %norm {eps = 1.0e-5} : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32> loc("norm")
    %head = tfm.get @table : tensor<8x4xf32>
    %logits = tfm.linear %x, %head : (tensor<1x2x4xf32>, tensor<8x4xf32>) -> tensor<1x2x8xf32> loc("head")
    %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x8xf32>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
    // CHECK-NEXT: %[[ONE:.*]] = tfm.full 1.000000e+00 : tensor<f32>
    // CHECK-NEXT: %[[DLOGITS:.*]] = tfm.cross_entropy_grad %[[LOGITS]], %[[L]], %[[N]], %[[ONE]]
    // CHECK-NEXT: %[[DX:.*]] = tfm.linear_dgrad %[[DLOGITS]], %[[TABLE]]
    // CHECK-NEXT: %[[DHEAD:.*]] = tfm.linear_wgrad %[[DLOGITS]], %[[X]]
    // CHECK-NEXT: %[[DH:.*]], %[[DNORM:.*]] = tfm.rms_norm_grad %[[DX]], %[[H]], %[[NORM]]
    // CHECK-NEXT: %[[DEMBED:.*]] = tfm.embedding_grad %[[DH]], %[[T]]
    // CHECK-NEXT: %[[DTABLE:.*]] = tfm.add %[[DHEAD]], %[[DEMBED]]
    // CHECK-NEXT: tfm.yield %[[DTABLE]], %[[DNORM]], %[[LOSS]]
    // CHECK: %[[S0:.*]] = tfm.sum_squares %[[SUM]]#0
    // CHECK-NEXT: %[[S1:.*]] = tfm.sum_squares %[[SUM]]#1
    // CHECK-NEXT: %[[S:.*]] = tfm.add %[[S0]], %[[S1]] : (tensor<f64>, tensor<f64>) -> tensor<f64>
    // CHECK-NEXT: %[[GN:.*]], %[[SCALE:.*]] = tfm.clip_scale %[[S]] {max_norm = 0.000000e+00 : f64}
    // CHECK-NEXT: %[[W0:.*]], %[[M0:.*]], %[[V0:.*]] = tfm.adamw %[[TABLE]], %[[TM]], %[[TV]], %[[SUM]]#0, %[[HYPER]], %[[SCALE]] {decay}
    // CHECK-NEXT: %[[W1:.*]], %[[M1:.*]], %[[V1:.*]] = tfm.adamw %[[NORM]], %[[NM]], %[[NV]], %[[SUM]]#1, %[[HYPER]], %[[SCALE]] :
    // CHECK-NEXT: return %[[W0]], %[[M0]], %[[V0]], %[[W1]], %[[M1]], %[[V1]], %[[SUM]]#2, %[[GN]], %[[N]]
    return %loss : tensor<f32>
  }
  // The same loss without a derivative: weights as they are, nothing replaced.
  // CHECK-LABEL: func.func @eval_step(
  // CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "weight", tfm.parameter = @table},
  // CHECK-SAME: %[[NORM:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "weight", tfm.parameter = @norm},
  // CHECK-SAME: %[[TOKENS:[a-z0-9]+]]: tensor<3x1x2xi32> {tfm.arg = "tokens"},
  // CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<3x1x2xi32> {tfm.arg = "labels"})
  // CHECK-SAME: -> (tensor<f32> {tfm.result = "loss"}, tensor<i64> {tfm.result = "count"})
  // CHECK-NEXT: %[[N:.*]] = tfm.count_labels %[[LABELS]]
  // CHECK-NEXT: %[[SUM:.*]] = tfm.microbatches (%[[T:.*]]: tensor<1x2xi32> in %[[TOKENS]], %[[L:.*]]: tensor<1x2xi32> in %[[LABELS]])
  // CHECK-NEXT: %[[H:.*]] = tfm.embedding %[[T]], %[[TABLE]]
  // CHECK-NEXT: %[[X:.*]] = tfm.rms_norm %[[H]], %[[NORM]]
  // CHECK-NEXT: %[[LOGITS:.*]] = tfm.linear %[[X]], %[[TABLE]]
  // CHECK-NEXT: %[[LOSS:.*]] = tfm.cross_entropy %[[LOGITS]], %[[L]], %[[N]]
  // CHECK-NEXT: tfm.yield %[[LOSS]]
  // CHECK: return %[[SUM]], %[[N]]
}
// LOC: tfm.embedding {{.*}} loc("embed")
// LOC: tfm.linear_dgrad {{.*}} loc("head.dgrad")
// LOC: tfm.linear_wgrad {{.*}} loc("head.wgrad")
// LOC: tfm.rms_norm_grad {{.*}} loc("norm.grad")
// LOC: tfm.embedding_grad {{.*}} loc("embed.wgrad")
// LOC: tfm.add {{.*}} loc("table.grad")
// LOC: tfm.sum_squares {{.*}} loc("table.sum_squares")
// LOC: tfm.adamw {{.*}} loc("table.update")

// SGD-LABEL: func.func @train_step(
// SGD-SAME: %[[TABLE:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "weight", tfm.parameter = @table},
// SGD-SAME: %[[NORM:[a-z0-9]+]]: tensor<4xf32> {tfm.arg = "weight", tfm.parameter = @norm},
// SGD-SAME: {tfm.arg = "tokens"}
// SGD: tfm.clip_scale %{{.*}} {max_norm = 5.000000e-01 : f64}
// SGD: %[[W0:.*]] = tfm.sgd %[[TABLE]], %{{.*}} {decay}
// SGD-NEXT: %[[W1:.*]] = tfm.sgd %[[NORM]], %{{.*}} :
// SGD-NEXT: return %[[W0]], %[[W1]],


// -----

// bf16 weights: float32 masters and moments; a weight used in two layers; a value
// used twice; the grad type of the default. No tfm.model: one microbatch.
tfm.parameter @table : tensor<8x4xbf16> init "normal" tensors ["table" = 8]
tfm.parameter @shared : tensor<4x4xbf16> init "normal" tensors ["shared" = 4]
tfm.parameter @head : tensor<8x4xbf16> init "normal" tensors ["head" = 8]
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<8x4xbf16> {tfm.arg = "weight", tfm.parameter = @table},
// CHECK-SAME: %[[MASTER:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "master", tfm.parameter = @table},
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "state", tfm.parameter = @table, tfm.state = "m"},
// CHECK-SAME: %[[SHARED:[a-z0-9]+]]: tensor<4x4xbf16> {tfm.arg = "weight", tfm.parameter = @shared},
// CHECK-SAME: tensor<1x1x2xi32> {tfm.arg = "tokens"}
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %table = tfm.get @table : tensor<8x4xbf16>
  %shared = tfm.get @shared : tensor<4x4xbf16>
  %head = tfm.get @head : tensor<8x4xbf16>
  %h0 = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xbf16>) -> tensor<1x2x4xbf16> loc("embed")
  %a = tfm.linear %h0, %shared : (tensor<1x2x4xbf16>, tensor<4x4xbf16>) -> tensor<1x2x4xbf16>
  %h1 = tfm.add %h0, %a : (tensor<1x2x4xbf16>, tensor<1x2x4xbf16>) -> tensor<1x2x4xbf16>
  %b = tfm.linear %h1, %shared : (tensor<1x2x4xbf16>, tensor<4x4xbf16>) -> tensor<1x2x4xbf16>
  // CHECK: %[[LOGITS:.*]] = tfm.linear {{.*}} -> tensor<1x2x8xbf16>
  %logits = tfm.linear %b, %head : (tensor<1x2x4xbf16>, tensor<8x4xbf16>) -> tensor<1x2x8xbf16>
  %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x8xbf16>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  // CHECK: tfm.linear_wgrad {{.*}} -> tensor<8x4xbf16>
  // CHECK: %[[DH1:.*]] = tfm.linear_dgrad %{{.*}}, %[[SHARED]]
  // CHECK: %[[D2:.*]] = tfm.linear_wgrad {{.*}} -> tensor<4x4xbf16>
  // CHECK: %[[DA:.*]] = tfm.linear_dgrad %[[DH1]], %[[SHARED]]
  // CHECK: %[[D1:.*]] = tfm.linear_wgrad %[[DH1]]
  // CHECK-NEXT: %[[DSHARED:.*]] = tfm.add %[[D2]], %[[D1]]
  // CHECK-NEXT: %[[DH0:.*]] = tfm.add %[[DH1]], %[[DA]]
  // CHECK-NEXT: %[[DTABLE:.*]] = tfm.embedding_grad %[[DH0]], %{{.*}}
  // CHECK-NEXT: tfm.yield %[[DTABLE]], %[[DSHARED]],
  // CHECK: %[[W:.*]], %[[MN:.*]], %[[V:.*]], %[[PUBLISHED:.*]] = tfm.adamw %[[MASTER]], %[[M]], %{{.*}} {decay} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8xf32>, tensor<f32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>)
  // CHECK: return %[[PUBLISHED]], %[[W]], %[[MN]], %[[V]],
  return %loss : tensor<f32>
}
