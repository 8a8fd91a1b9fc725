// RUN: gtp-opt %S/../Dialect/Tfm/model.mlir -tfm-pack -tfm-differentiate -test-tfm-unit-gradients | FileCheck %s
// RUN: sed s/microbatches\ =\ 2/microbatches\ =\ 10/ %S/../Dialect/Tfm/model.mlir | not gtp-opt -tfm-differentiate -test-tfm-unit-gradients 2>&1 | FileCheck %s --check-prefix=TEN

// Two microbatches of a half; contributions are made, but of a loss that does not
// count; the loss that is reported is still the model's.
// CHECK: tfm.microbatches
// CHECK: %[[LOSS:.*]] = tfm.cross_entropy
// CHECK: %[[ZERO:.*]] = tfm.full 0.000000e+00 : tensor<f32>
// CHECK: tfm.cross_entropy_grad %{{.*}}, %[[ZERO]]
// CHECK: %[[G:.*]] = tfm.add {{.*}} : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
// CHECK: %[[HALF:.*]] = tfm.full 5.000000e-01 : tensor<32x16xf32>
// CHECK: %[[UNIT:.*]] = tfm.add %[[G]], %[[HALF]]
// CHECK: tfm.yield %[[UNIT]], {{.*}} %[[LOSS]] :

// TEN: error:{{.*}}: sums of 1/10 over 10 microbatches are not exactly 1 in 'f32'
