// RUN: gtp-opt %s --cse | FileCheck %s

// Buffers of one kind, size and name stay apart; one that nothing uses goes.

// CHECK-LABEL: plan.program @alike
plan.program @alike mesh <gtp = 2> arena 4096 {
  // CHECK: %[[A:.*]] = plan.buffer output 64 "x"
  // CHECK-NEXT: %[[B:.*]] = plan.buffer output 64 "x"
  // CHECK-NOT: plan.buffer
  %a = plan.buffer output 64 "x"
  %b = plan.buffer output 64 "x"
  %unused = plan.buffer transient 64
  // CHECK: plan.output "loss" %[[A]]
  // CHECK: plan.output "grad_norm" %[[B]]
  plan.output "loss" %a
  plan.output "grad_norm" %b
}
