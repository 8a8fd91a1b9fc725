// RUN: gtp-opt %s --split-input-file --plan-insert-events | FileCheck %s

// Order that streams or other waits give needs no event.
// CHECK-LABEL: plan.program @least_waits
// CHECK-SAME: stats = {events = 2 : i64, naive_events = 3 : i64, naive_waits = 5 : i64, waits = 2 : i64}
plan.program @least_waits mesh <gtp = 1> {
  %a = plan.buffer transient 4 at 0
  plan.stream compute
  plan.stream gather
  // CHECK: plan.region once events 2 {
  plan.region once {
    // CHECK-NEXT: plan.fill(%{{.*}}) stream 0{{$}}
    %0 = plan.fill(%a <i8[1]>) stream 0
    // CHECK-NEXT: plan.fill(%{{.*}}) stream 0 event 0
    %1 = plan.fill(%a <i8[1], offset 1>) stream 0 after %0
    // CHECK-NEXT: plan.fill(%{{.*}}) stream 1 waits [0]{{$}}
    %2 = plan.fill(%a <i8[1], offset 2>) stream 1 after %0, %1
    // CHECK-NEXT: plan.fill(%{{.*}}) stream 1 event 1
    %3 = plan.fill(%a <i8[1], offset 3>) stream 1 after %0
    // CHECK-NEXT: plan.fill(%{{.*}}) stream 0 waits [1]{{$}}
    %4 = plan.fill(%a <i8[1], offset 2>) stream 0 after %3
    // CHECK-NEXT: plan.fill(%{{.*}}) stream 0{{$}}
    %5 = plan.fill(%a <i8[1]>) stream 0 after %3
  }
}

// -----

// Each region has its own events.
// CHECK-LABEL: plan.program @regions_count_alone
plan.program @regions_count_alone mesh <gtp = 1> {
  %a = plan.buffer transient 4 at 0
  plan.stream compute
  plan.stream gather
  // CHECK: plan.region once events 1 {
  plan.region once {
    %0 = plan.fill(%a <i8[1]>) stream 0
    %1 = plan.fill(%a <i8[1]>) stream 1 after %0
  }
  // CHECK: plan.region update events 1 {
  plan.region update {
    // CHECK-NEXT: stream 1 event 0
    %0 = plan.fill(%a <i8[1]>) stream 1
    // CHECK-NEXT: stream 0 waits [0]
    %1 = plan.fill(%a <i8[1]>) stream 0 after %0
  }
}
