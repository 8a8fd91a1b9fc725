// RUN: gtp-opt %S/../Dialect/Tfm/model.mlir -tfm-pack -tfm-differentiate -test-tfm-unit-gradients | FileCheck %s
// RUN: sed s/microbatches\ =\ 2/microbatches\ =\ 10/ %S/../Dialect/Tfm/model.mlir | not gtp-opt -tfm-differentiate -test-tfm-unit-gradients 2>&1 | FileCheck %s --check-prefix=TEN

// Two microbatches of a half; the loss is still the model's.
// CHECK: tfm.microbatches
// CHECK: %[[LOSS:.*]] = tfm.cross_entropy
// CHECK-NOT: tfm.{{.*}}grad
// CHECK: %[[G:.*]] = tfm.full 5.000000e-01 : tensor<32x16xf32>
// CHECK: tfm.yield %[[G]], {{.*}} %[[LOSS]] :

// TEN: error:{{.*}}: sums of 1/10 over 10 microbatches are not exactly 1 in 'f32'
