// An op without a case, and a cotangent without a product, are errors.
// RUN: not gtp-opt %s -split-input-file -test-tfm-vjp=all -o /dev/null 2>&1 | FileCheck %s

// CHECK-NOT: tfm.add has no case
// CHECK-DAG: error: tfm.attention has no case
// CHECK-DAG: error: tfm.swiglu has no case
func.func @add(%a: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = tfm.add %a : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// -----

// CHECK: error: 'tfm.attention' op has no product for a cotangent of lse
func.func @attention_whose_statistics_are_used(
    %q: tensor<2x3x6xf64>, %k: tensor<2x3x6xf64>, %v: tensor<2x3x6xf64>) -> tensor<2x3x3xf64> {
  %0, %lse = tfm.attention %q, %k, %v {heads = 3, kv_heads = 3, scale = 1.3, causal = false}
    : (tensor<2x3x6xf64>, tensor<2x3x6xf64>, tensor<2x3x6xf64>) -> (tensor<2x3x6xf64>, tensor<2x3x3xf64>)
  return %lse : tensor<2x3x3xf64>
}
