// RUN: gtp-opt %s --split-input-file --plan-assign-memory | FileCheck %s

// CHECK-LABEL: plan.program @dead_memory_is_used_again
// CHECK-SAME: arena 2048
// CHECK-SAME: claims = {arena_bytes = 2048 : i64, gathered_peak_bytes = 0 : i64, max_live_bytes = 2048 : i64, persistent_bytes = 512 : i64}
plan.program @dead_memory_is_used_again mesh <gtp = 1> {
  // CHECK: plan.buffer persistent 300 at 0
  %w = plan.buffer persistent 300
  // CHECK: plan.buffer input 4 at [[$IN:[0-9]+]]
  %x = plan.buffer input 4
  // CHECK: plan.buffer transient 500 at [[$A:[0-9]+]]
  %a = plan.buffer transient 500
  // CHECK: plan.buffer transient 512 at [[$B:[0-9]+]]
  %b = plan.buffer transient 512
  // CHECK: plan.buffer transient 400 at [[$A]]
  %c = plan.buffer transient 400
  // CHECK: plan.buffer output 4 at
  %y = plan.buffer output 4
  plan.stream compute
  plan.region once {
    plan.copy(%x <f32[]>, %a <f32[]>) stream 0
    plan.copy(%a <f32[]>, %b <f32[]>) stream 0
    plan.copy(%b <f32[]>, %c <f32[]>) stream 0
    plan.copy(%c <f32[]>, %y <f32[]>) stream 0
    plan.copy(%y <f32[]>, %w <f32[]>) stream 0
  }
}

// -----

// On two streams without an edge nothing is dead for the other.
// CHECK-LABEL: plan.program @unordered_streams_share_nothing
// CHECK-SAME: arena 1536
plan.program @unordered_streams_share_nothing mesh <gtp = 1> {
  %a = plan.buffer transient 512
  %b = plan.buffer transient 512
  %c = plan.buffer transient 512
  plan.stream compute
  plan.stream gather
  plan.region once {
    plan.fill(%a <i8[512]>) stream 0
    plan.copy(%a <i8[512]>, %c <i8[512]>) stream 0
    plan.fill(%b <i8[512]>) stream 1
  }
}

// -----

// With the edge, the second buffer takes the memory of the first.
// CHECK-LABEL: plan.program @ordered_streams_share
// CHECK-SAME: arena 512
plan.program @ordered_streams_share mesh <gtp = 1> {
  // CHECK: plan.buffer transient 512 at 0
  // CHECK: plan.buffer transient 512 at 0
  %a = plan.buffer transient 512
  %b = plan.buffer transient 512
  plan.stream compute
  plan.stream gather
  plan.region once {
    %t = plan.fill(%a <i8[512]>) stream 0
    plan.fill(%b <i8[512]>) stream 1 after %t
  }
}

// -----

// What iterations add to keeps its memory from the first to the last.
// CHECK-LABEL: plan.program @sums_live_through_all_iterations
// CHECK-SAME: arena 768
plan.program @sums_live_through_all_iterations mesh <gtp = 1> {
  // CHECK: plan.buffer transient 4 at [[$X:[0-9]+]]
  %x = plan.buffer transient 4
  // CHECK: plan.buffer transient 4 at [[$DEAD:[0-9]+]]
  %early = plan.buffer transient 4
  // CHECK: plan.buffer transient 4 at [[$DEAD]]
  %late = plan.buffer transient 4
  // CHECK-NOT: at [[$DEAD]]{{$}}
  // CHECK: plan.stream
  %sum = plan.buffer transient 4
  plan.stream compute
  plan.region body repeat 2 {
    plan.kernel "full"(%early <f32[]>) with {value = 1.0 : f64} stream 0
    plan.kernel "add"(%early <f32[]>, %x <f32[]>) stream 0
    plan.kernel "add"(%x <f32[]>, %late <f32[]>) stream 0
    plan.kernel "add"(%late <f32[]>, %sum <f32[], accumulate>) stream 0
  }
  plan.region update {
    plan.kernel "add"(%sum <f32[]>, %x <f32[]>) stream 0
  }
}

// -----

// The gathered peak counts full weights only.
// CHECK-LABEL: plan.program @gathered_peak
// CHECK-SAME: gathered_peak_bytes = 1024 : i64
plan.program @gathered_peak mesh <gtp = 2> {
  %w = plan.buffer persistent 512
  %full = plan.buffer transient 1024
  %again = plan.buffer transient 1024
  %x = plan.buffer transient 1024
  plan.parameter @w [256] <[<256 storage [0]>]> normal uses 1 tensors ["w"] [256] compute %w
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.stream gather
  plan.region once {
    %g = plan.collective all_gather @c on @w(%w <f32[128]>, %full <f32[256]>) wire f32 accumulate f32 stream 1
    %t = plan.copy(%full <f32[256]>, %x <f32[256]>) stream 0 after %g
    %h = plan.collective all_gather @c on @w(%w <f32[128]>, %again <f32[256]>) wire f32 accumulate f32 stream 1 after %t
    plan.copy(%again <f32[256]>, %x <f32[256]>) stream 0 after %h
  }
}
