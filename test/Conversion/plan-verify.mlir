// The checker accepts what the passes make, on any mesh, with one microbatch and
// more, with and without asynchronous collectives.

// DEFINE: %{tail} = --convert-gtp-to-plan --plan-assign-memory --plan-insert-events --plan-verify -o %t.plan
// DEFINE: %{mesh} = gtp=8
// DEFINE: %{place} = --gtp-place=mesh=%{mesh} --gtp-partition
// DEFINE: %{in} = %S/Inputs/step.mlir
// DEFINE: %{each} = gtp-opt %{in} %{place} --gtp-plan-step --gtp-prefetch %{tail} && gtp-opt %{in} %{place} --gtp-plan-step=prefetch=2 --gtp-prefetch %{tail} && gtp-opt %{in} %{place} --gtp-prefetch %{tail} && gtp-opt %{in} %{place} %{tail}

// RUN: %{each}
// REDEFINE: %{mesh} = dp=8
// RUN: %{each}
// REDEFINE: %{mesh} = dp=2,gtp=4
// RUN: %{each}
// REDEFINE: %{mesh} = gtp=2,dp=4
// RUN: %{each}
// RUN: sed 's/3x8x4xi32/1x8x4xi32/g; s/global_batch = 24/global_batch = 8/; s/microbatches = 3/microbatches = 1/' %S/Inputs/step.mlir > %t.one
// REDEFINE: %{in} = %t.one
// RUN: %{each}
// REDEFINE: %{mesh} = gtp=8
// RUN: %{each}
// RUN: sed 's/micro_batch = 1/micro_batch = 4/' %S/Inputs/step.mlir > %t.two
// REDEFINE: %{in} = %t.two
// REDEFINE: %{mesh} = gtp=2
// RUN: %{each}
// RUN: sed 's/micro_batch = 1/micro_batch = 8/' %S/Inputs/step.mlir > %t.alone
// REDEFINE: %{in} = %t.alone
// REDEFINE: %{mesh} = gtp=1
// RUN: %{each}

// A plan that lacks its waits is refused where it goes wrong.
// RUN: gtp-opt %t.two --gtp-place=mesh=gtp=2 --gtp-partition %{tail}
// RUN: sed 's/ waits \[[0-9, ]*\]//' %t.plan > %t.race
// RUN: not gtp-opt %t.race --plan-verify 2>&1 | FileCheck %s
// CHECK: race:[[#]]:[[#]]: error: plan-verify: race: region 0 (ONCE), operation 1
// CHECK-NEXT: plan.collective all_reduce
// CHECK:      note: the other operation is here
// CHECK-NEXT: plan.kernel "count_labels"

// It works on text as well as in the pipeline.
// RUN: gtp-opt %t.plan --plan-verify -o /dev/null

// Addresses and events must be there.
// RUN: gtp-opt %t.two --gtp-place=mesh=gtp=2 --gtp-partition --convert-gtp-to-plan -o %t.raw
// RUN: not gtp-opt %t.raw --plan-verify 2>&1 | FileCheck %s --check-prefix=OFFSET
// OFFSET: error: 'plan.buffer' op has no offset; run plan-assign-memory first
// RUN: not gtp-opt %t.raw --plan-assign-memory --plan-verify 2>&1 | FileCheck %s --check-prefix=EVENTS
// EVENTS: op still waits for tokens; run plan-insert-events first

// Equal inputs give equal plans, with and without threads.
// RUN: gtp-opt %S/Inputs/step.mlir --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step --gtp-prefetch %{tail}
// RUN: cp %t.plan %t.first
// RUN: gtp-opt %S/Inputs/step.mlir --mlir-disable-threading --gtp-place=mesh=dp=2,gtp=4 --gtp-partition --gtp-plan-step --gtp-prefetch %{tail}
// RUN: diff %t.first %t.plan

// Fields that the message cannot hold are errors.
// RUN: sed '/plan.program/s/vocabulary = 257 : i64}/vocabulary = 170141183460469231731687303715884105727 : i128}/' %t.plan | not gtp-opt --plan-verify 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: 'plan.program' op has no field 'vocabulary' of the kind of {{.*}} : i128 in message Model
// RUN: sed 's/compute = f32/compute = f16/' %t.plan | not gtp-opt --plan-verify 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: error: 'plan.program' op has no field 'compute' of the kind of f16 in message Numerics
