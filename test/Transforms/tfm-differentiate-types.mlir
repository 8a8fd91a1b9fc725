// Gradients in a type of their own: the kernel that makes one writes it, and what
// only passes through is cast.
// RUN: gtp-opt %s -tfm-differentiate="grad-dtype=f32 optimizer=sgd" | FileCheck %s

tfm.parameter @table : tensor<8x4xbf16> init "normal" tensors ["table" = 8]
tfm.parameter @bias : tensor<4xbf16> init "zeros" tensors ["bias" = 4]
tfm.parameter @norm : tensor<4xbf16> init "ones" tensors ["norm" = 4]
// CHECK-LABEL: @train_step
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %table = tfm.get @table : tensor<8x4xbf16>
  %bias = tfm.get @bias : tensor<4xbf16>
  %norm = tfm.get @norm : tensor<4xbf16>
  %sum = tfm.add %norm, %bias : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %h = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xbf16>) -> tensor<1x2x4xbf16>
  %x = tfm.rms_norm %h, %sum {eps = 1.0e-5} : (tensor<1x2x4xbf16>, tensor<4xbf16>) -> tensor<1x2x4xbf16>
  %logits = tfm.linear %x, %table : (tensor<1x2x4xbf16>, tensor<8x4xbf16>) -> tensor<1x2x8xbf16>
  %loss = tfm.cross_entropy %logits, %labels, %count : (tensor<1x2x8xbf16>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  // CHECK: tfm.linear_wgrad {{.*}} -> tensor<8x4xf32>
  // CHECK: %{{.*}}, %[[DSUM:.*]] = tfm.rms_norm_grad {{.*}} -> (tensor<1x2x4xbf16>, tensor<4xf32>)
  // CHECK: tfm.embedding_grad {{.*}} -> tensor<8x4xf32>
  // CHECK: tfm.add {{.*}} -> tensor<8x4xf32>
  // CHECK: %[[CAST:.*]] = tfm.cast %[[DSUM]] : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK-DAG: %[[DNORM:.*]] = tfm.cast %[[CAST]] : (tensor<4xbf16>) -> tensor<4xf32>
  // CHECK: tfm.yield
  return %loss : tensor<f32>
}
