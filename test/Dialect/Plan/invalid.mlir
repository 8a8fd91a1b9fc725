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

plan.program @unknown_second_parameter mesh <gtp = 2> {
  %b = plan.buffer persistent 64 "w"
  plan.parameter @w [4] <[<4>]> ones uses 1 tensors ["w"] [4] compute %b
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{names no parameter: @v}}
    plan.kernel "concat" @w and @v(%b <f32[4]>, %b <f32[4]>) stream 0
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
    // expected-error@+1 {{element type 'f16', expected f32, bf16, f64, i32, i64, i16 or i8}}
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

// -----

plan.program @negative_offset mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{offset and iteration stride may not be negative}}
    plan.fill(%b <i8[4], offset -1>) stream 0
  }
}

// -----

plan.program @short_pitch mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{pitch 3 must be at least the last dimension}}
    plan.fill(%b <i8[2x4], pitch 3>) stream 0
  }
}

// -----

plan.program @odd_rank_strides mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{rank strides are pairs of axis and stride}}
    plan.fill(%b <i8[4], ranks [0]>) stream 0
  }
}

// -----

plan.program @half_a_pair mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{has 1 views, expected pairs of source and destination}}
    plan.collective all_gather @c(%b <f32[4]>) wire f32 accumulate f32 stream 0
  }
}

// -----

plan.program @scratch_of_floats mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c reduce axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{has scratch of 'f32', expected i8}}
    plan.collective all_reduce @c(%b <f32[4]>, %b <f32[4]>, %b <f32[4]>) wire f32 accumulate f32 transport pairwise stream 0
  }
}

// -----

plan.program @two_types mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{has a source of}}
    plan.collective all_gather @c(%b <f32[4]>, %b <bf16[8]>) wire f32 accumulate f32 stream 0
  }
}

// -----

plan.program @gaps mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{has a view with gaps}}
    plan.collective all_gather @c(%b <f32[2x1], pitch 2>, %b <f32[4x1]>) wire f32 accumulate f32 stream 0
  }
}

// -----

plan.program @copy_of_one mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{has 1 views, expected a source and a destination}}
    plan.copy(%b <f32[4]>) stream 0
  }
}

// -----

plan.program @copy_accumulates mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{may not accumulate}}
    plan.copy(%b <f32[4]>, %b <f32[4], accumulate>) stream 0
  }
}

// -----

plan.program @fill_with_gaps mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{expects one dense view}}
    plan.fill(%b <i8[2x4], pitch 8>) stream 0
  }
}

// -----

plan.program @module_in_a_region mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{may not appear in a region}}
    builtin.module {}
  }
}

// -----

plan.program @more_buffers_than_views mesh <gtp = 2> {
  %b = plan.buffer transient 64
  plan.communicator @c gather axes [0]
  plan.stream compute
  plan.region once {
    // expected-error@+1 {{has 2 buffers but 1 views}}
    "plan.fill"(%b, %b) {views = [#plan.view<i8[4]>], byte = 0 : i64, stream = 0 : i64, operandSegmentSizes = array<i32: 2, 0>} : (!plan.buffer, !plan.buffer) -> !plan.token
  }
}

// -----

// expected-error@+1 {{mesh has more than 2^31 ranks}}
plan.program @too_many_ranks mesh <gtp = 4294967296> {
}

// -----

plan.program @tensors_without_rows mesh <gtp = 2> {
  %b = plan.buffer persistent 64
  // expected-error@+1 {{has 2 tensors but rows of 1}}
  plan.parameter @w [4] <[<4>]> normal uses 1 tensors ["w", "v"] [4] compute %b
}

// -----

plan.program @layout_of_more_dimensions mesh <gtp = 2> {
  %b = plan.buffer persistent 64
  // expected-error@+1 {{has 1 dimensions but a layout of 2}}
  plan.parameter @w [4] <[<4>, <1>]> normal uses 1 tensors ["w"] [4] compute %b
}

// -----

plan.program @step mesh <gtp = 1> {
  // expected-error @below {{'plan.subprogram' op is a training step, which is the program around it}}
  plan.subprogram train_step {
  }
}

// -----

plan.program @step mesh <gtp = 1> {
  plan.subprogram eval {
    // expected-error @below {{'plan.stream' op}}
    plan.stream compute
  }
}

// -----

plan.program @step mesh <gtp = 1> {
  plan.subprogram eval {
    // expected-error @below {{may not appear in a subprogram, which has buffers, inputs, outputs and regions only}}
    builtin.module {}
  }
}

// -----

plan.program @step mesh <gtp = 1> {
  plan.stream compute
  %x = plan.buffer transient 64
  plan.subprogram eval {
    plan.region once {
      // expected-error @below {{runs on stream 1 of a program with 1}}
      %0 = plan.fill(%x <i8[64]>) stream 1
    }
  }
}

// -----

plan.program @step mesh <gtp = 1> {
  plan.stream compute
  %x = plan.buffer transient 64
  plan.region once {
    // expected-error @below {{names @w as the parameter of a second weight and none of the first; expected both}}
    %0 = "plan.kernel"(%x, %x, %x, %x) <{name = "linear_bias", operandSegmentSizes = array<i32: 4, 0>, second_parameter = @w, stream = 0 : i64, views = [#plan.view<f32[1x4]>, #plan.view<f32[4x4]>, #plan.view<f32[4]>, #plan.view<f32[1x4]>]}> : (!plan.buffer, !plan.buffer, !plan.buffer, !plan.buffer) -> !plan.token
  }
}
