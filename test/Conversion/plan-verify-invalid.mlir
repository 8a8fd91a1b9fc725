// RUN: gtp-opt %s --split-input-file --verify-diagnostics --plan-verify

plan.program @module_in_a_program mesh <gtp = 2> arena 256 attributes {model = {vocabulary = 9 : i64}} {
  // expected-error@+1 {{is not part of a plan}}
  builtin.module {
  }
}

// -----

plan.program @setting_of_text mesh <gtp = 2> arena 256 attributes {model = {vocabulary = 9 : i64}} {
  %b = plan.buffer transient 64 at 0
  plan.stream compute
  plan.region body repeat 1 {
    // expected-error@+1 {{has setting 'scale' that is no f64, i64 or list of f64}}
    plan.kernel "concat"(%b <f32[4]>, %b <f32[4]>) with {scale = "large"} stream 0
  }
}
