// RUN: gtp-opt %s -split-input-file -verify-diagnostics

plan.program @misaligned_offset mesh <gtp = 2> {
  // expected-error@+1 {{is at 100, expected a multiple of 256}}
  %b = plan.buffer transient 64 at 100
}

// -----

plan.program @negative_size mesh <gtp = 2> {
  // expected-error@+1 {{non-negative}}
  %b = plan.buffer transient -1
}

// -----

// expected-error@+1 {{axis "gtp" has degree 0, expected 1 or more}}
plan.program @empty_axis mesh <gtp = 0> {
}

// -----

// expected-error@+1 {{axis "dp" appears more than once}}
plan.program @same_axis mesh <dp = 2, dp = 2> {
}

// -----

plan.program @view_outside_its_buffer mesh <gtp = 2> {
  // expected-note@+1 {{buffer of 64 bytes}}
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{reaches outside its buffer}}
    plan.fill(%b <i8[64], offset 1>) stream 0
  }
}

// -----

plan.program @last_iteration_outside mesh <gtp = 2> {
  // expected-note@+1 {{buffer of 64 bytes}}
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region body repeat 3 {
    // expected-error@+1 {{reaches outside its buffer}}
    plan.fill(%b <i8[32], iteration 32>) stream 0
  }
}

// -----

plan.program @last_rank_outside mesh <gtp = 4> {
  // expected-note@+1 {{buffer of 64 bytes}}
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{reaches outside its buffer}}
    plan.fill(%b <i8[32], ranks [0, 16]>) stream 0
  }
}

// -----

plan.program @unknown_kernel mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{calls kernel "no_such", which is not registered}}
    plan.kernel "no_such"(%b <f32[4]>) stream 0
  }
}

// -----

plan.program @wrong_operand_count mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{passes 1 operands to kernel "linear", which takes another number}}
    plan.kernel "linear"(%b <f32[4]>) stream 0
  }
}

// -----

plan.program @kernel_cannot_accumulate mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{accumulates into operand 'out', which kernel "concat" cannot do}}
    plan.kernel "concat"(%b <f32[4]>, %b <f32[4], accumulate>) stream 0
  }
}

// -----

plan.program @gather_cannot_accumulate mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{accumulates, which only destinations of reductions do}}
    plan.collective all_gather @c(%b <f32[4]>, %b <f32[8], accumulate>) wire f32 accumulate f32 stream 0
  }
}

// -----

plan.program @unknown_communicator mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{names no communicator: @c}}
    plan.collective all_reduce @c(%b <f32[4]>, %b <f32[4]>) wire f32 accumulate f32 stream 0
  }
}

// -----

plan.program @unknown_parameter mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{names no parameter: @w}}
    plan.kernel "concat" @w(%b <f32[4]>, %b <f32[4]>) stream 0
  }
}

// -----

plan.program @unknown_stream mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{runs on stream 1 of a program with 1}}
    plan.fill(%b <i8[4]>) stream 1
  }
}

// -----

plan.program @copies_other_elements mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{expected as many elements of the same type}}
    plan.copy(%b <f32[4]>, %b <f32[5]>) stream 0
  }
}

// -----

plan.program @event_that_nobody_records mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once events 1 {
    // expected-error@+1 {{waits for event 0, which no earlier operation records}}
    plan.fill(%b <i8[4]>) stream 0 waits [0]
  }
}

// -----

plan.program @event_recorded_twice mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once events 1 {
    // expected-note@+1 {{recorded here before}}
    plan.fill(%b <i8[4]>) stream 0 event 0
    // expected-error@+1 {{records event 0 again}}
    plan.fill(%b <i8[4]>) stream 0 event 0
  }
}

// -----

plan.program @unknown_view_field mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{unknown field 'stride', expected offset, pitch, iteration, ranks or accumulate}}
    plan.fill(%b <i8[4], stride 3>) stream 0
  }
}

// -----

plan.program @element_type_without_kernels mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{element type 'f16', expected f32, bf16, f64, i32, i64 or i8}}
    plan.fill(%b <f16[4]>) stream 0
  }
}

// -----

plan.program @tensors_do_not_add_up mesh <gtp = 2> {
  %b = plan.buffer persistent 64
  // expected-error@+1 {{has tensors of 3 rows, expected 4}}
  plan.parameter @w [4, 4] <[<4>, <4>]> normal uses 1 tensors ["w"] [3] compute %b
}

// -----

plan.program @layout_of_another_shape mesh <gtp = 2> {
  %b = plan.buffer persistent 64
  // expected-error@+1 {{has a dimension of 4 that its layout calls 5}}
  plan.parameter @w [4] <[<5>]> normal uses 1 tensors ["w"] [4] compute %b
}

// -----

plan.program @more_events_than_operations mesh <gtp = 2> {
  // expected-error@+1 {{has 99999999999999 events, expected 0 to 0, one an operation at most}}
  plan.region once events 99999999999999 {
  }
}
