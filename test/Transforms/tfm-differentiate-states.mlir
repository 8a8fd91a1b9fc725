// What a bf16 weight has beside it, by the type of masters and states, and the count
// that a mean over sequences divides by.
// RUN: gtp-opt %s -tfm-differentiate="state-dtype=bf16" | FileCheck %s --check-prefix=BF16
// RUN: gtp-opt %s -tfm-differentiate="state-dtype=split" | FileCheck %s --check-prefixes=SPLIT,ADAMW
// RUN: gtp-opt %s -tfm-differentiate="state-dtype=split optimizer=sgd" | FileCheck %s --check-prefixes=SPLIT,SGD
// RUN: sed s/bf16/f32/g %s | not gtp-opt -tfm-differentiate="state-dtype=bf16" 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: sed s/bf16/f32/g %s | not gtp-opt -tfm-differentiate="state-dtype=split" 2>&1 | FileCheck %s --check-prefix=WHOLE
// NARROW: error: 'tfm.parameter' op has element type 'f32', of which a master of 'bf16' would lose bits; expected a state-dtype that is no narrower
// WHOLE: error: 'tfm.parameter' op has element type 'f32': state-dtype split keeps a float32 master as its bf16 weight and the 16 bits that are left; expected bf16, or state-dtype f32

tfm.parameter @table : tensor<8x4xbf16> init "normal" tensors ["table" = 8]
// BF16-LABEL: func.func @train_step(
// BF16-NOT: "master"
// BF16-NOT: "remainder"
// BF16: tfm.adamw {{.*}} -> (tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>)

// SPLIT-LABEL: func.func @train_step(
// SPLIT-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xbf16> {tfm.arg = "weight", tfm.parameter = @table}
// SPLIT-NOT: "master"
// SPLIT-SAME: %[[R:[a-z0-9]+]]: tensor<8x4xi16> {tfm.arg = "remainder", tfm.parameter = @table}
// ADAMW-SAME: %[[M:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "state", tfm.parameter = @table, tfm.state = "m"}
// ADAMW-SAME: %[[V:[a-z0-9]+]]: tensor<8x4xf32> {tfm.arg = "state", tfm.parameter = @table, tfm.state = "v"}
// SGD-NOT: "state"
// SPLIT: %[[LABELS:[a-z0-9]+]]: tensor<1x1x2xi32> {tfm.arg = "labels"}
// SPLIT: %[[N:.*]] = tfm.count_labels %[[LABELS]] {sequences}
// SPLIT: tfm.cross_entropy %{{.*}}, %{{.*}}, %[[N]] {sequence_mean}
// SPLIT: tfm.cross_entropy_grad %{{.*}} {sequence_mean}
// ADAMW: %[[U:.*]], %[[RN:.*]], %[[MN:.*]], %[[VN:.*]] = tfm.adamw_split %[[W]], %[[R]], %[[M]], %[[V]], %{{.*}} {decay} :
// ADAMW-NEXT: return %[[U]], %[[RN]], %[[MN]], %[[VN]], %{{.*}}, %{{.*}}, %[[N]]
// SGD: %[[U:.*]], %[[RN:.*]] = tfm.sgd_split %[[W]], %[[R]], %{{.*}} {decay} :
// SGD-NEXT: return %[[U]], %[[RN]], %{{.*}}, %{{.*}}, %[[N]]
func.func @forward(%tokens: tensor<1x2xi32>, %labels: tensor<1x2xi32>, %count: tensor<i64>) -> tensor<f32> {
  %table = tfm.get @table : tensor<8x4xbf16>
  %h = tfm.embedding %tokens, %table : (tensor<1x2xi32>, tensor<8x4xbf16>) -> tensor<1x2x4xbf16>
  %logits = tfm.linear %h, %table : (tensor<1x2x4xbf16>, tensor<8x4xbf16>) -> tensor<1x2x8xbf16>
  %loss = tfm.cross_entropy %logits, %labels, %count {sequence_mean} : (tensor<1x2x8xbf16>, tensor<1x2xi32>, tensor<i64>) -> tensor<f32>
  return %loss : tensor<f32>
}
