// RUN: gtp-opt %S/Inputs/step.mlir --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step | FileCheck %s
// RUN: gtp-opt %S/Inputs/step.mlir --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step=prefetch=off | FileCheck %s --check-prefix=OFF
// RUN: gtp-opt %S/Inputs/step.mlir --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step=prefetch=1 | FileCheck %s --check-prefix=ONE
// RUN: gtp-opt %S/Inputs/step.mlir --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step=memory-budget=400000 | FileCheck %s --check-prefix=FITS
// RUN: not gtp-opt %S/Inputs/step.mlir --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step=memory-budget=200000 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not gtp-opt %S/Inputs/step.mlir --gtp-plan-step 2>&1 | FileCheck %s --check-prefix=LOGICAL
// RUN: not gtp-opt %S/Inputs/step.mlir --gtp-place --gtp-partition --gtp-plan-step=prefetch=0 2>&1 | FileCheck %s --check-prefix=PREFETCH
// RUN: not gtp-opt %S/Inputs/step.mlir --gtp-place --gtp-partition --gtp-plan-step=target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not gtp-opt %S/Inputs/step.mlir --gtp-place --gtp-partition --gtp-plan-step=memory-budget=18446744073709551615 2>&1 | FileCheck %s --check-prefix=HUGE

// Predictions go along; on ranks that are threads collectives cost more than
// kernels this small.
// CHECK: gtp.plan_step = {claims = {budget_bytes = 0 : i64, overhead_bytes = 0 : i64, step_ns = {{[0-9]+}} : i64}, stats = {compute_us = {{[0-9.e+]+}} : f64, contention_us = {{[0-9.e+]+}} : f64, stall_us = {{[0-9.e+]+}} : f64, step_lower_bound_us = {{[0-9.e+]+}} : f64, step_us = {{[0-9.e+]+}} : f64}}

// So the first gathers are issued at the start; nothing waits for gradients but the
// end of the region, which is position 27.
// CHECK: tfm.microbatches
// CHECK-NEXT: gtp.materialize %arg0 plane forward interval 0 {gtp.trigger = -1 : i64}
// CHECK: gtp.materialize %arg3 plane forward interval 1 {gtp.trigger = -1 : i64}
// CHECK: gtp.materialize %arg3 plane backward interval 3 {gtp.trigger = {{[0-9]+}} : i64}
// CHECK: gtp.reduce_scatter {{.*}} {gtp.release_before = 27 : i64}
// CHECK: gtp.reduce_scatter {{.*}} {gtp.release_before = 27 : i64}

// Off: behind the kernel before the use, and each gradient is awaited at once.
// OFF: gtp.materialize %arg0 plane forward interval 0 {gtp.trigger = -1 : i64}
// OFF: gtp.materialize %arg3 plane forward interval 1 {gtp.trigger = 2 : i64}
// OFF: gtp.materialize %arg0 plane forward interval 2 {gtp.trigger = 6 : i64}
// OFF: gtp.reduce_scatter {{.*}} {gtp.release_before = 21 : i64}

// A distance of one: behind the kernel before the first use of the gather before.
// ONE: gtp.materialize %arg0 plane forward interval 0 {gtp.trigger = -1 : i64}
// ONE: gtp.materialize %arg3 plane forward interval 1 {gtp.trigger = -1 : i64}
// ONE: gtp.materialize %arg0 plane forward interval 2 {gtp.trigger = 2 : i64}

// FITS: gtp.plan_step = {claims = {budget_bytes = 400000 : i64
// FITS-SAME: rank_bytes = {{[0-9]+}} : i64
// FITS-NOT: plan.program
// FITS-NOT: module {

// BUDGET: step.mlir:{{.*}}: error: memory budget of 200000 bytes (195.31 KiB) cannot be met: the step needs [[NEED:[0-9]+]] bytes ({{.*}}KiB), an arena of [[NEED]] and 0 of the target's overhead; the largest part is {{[a-z ]+}}, {{[0-9.]+}} KiB, and of it {{.+}}
// BUDGET: note: memory of a rank at its peak{{$}}
// BUDGET: {{[0-9.]+}} KiB {{ *[0-9.]+}}% master weights
// BUDGET: {{[0-9.]+}} KiB {{ *}}100.0% total of a budget of 195.31 KiB: {{[0-9.]+}} KiB too much
// BUDGET-NEXT: {{.*}} of the total are padding of shards
// BUDGET-NEXT: largest items
// LOGICAL: error: gtp-plan-step: there is no partitioned @train_step; run gtp-partition first
// PREFETCH: error: gtp-plan-step: prefetch is "0", expected auto, off or a distance of 1 or more
// TARGET: error: {{.*}}abacus
// HUGE: error: gtp-plan-step: memory-budget is 18446744073709551615, expected less than 2^63 bytes
