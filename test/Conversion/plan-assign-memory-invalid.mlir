// RUN: gtp-opt %s --split-input-file --verify-diagnostics --plan-assign-memory

// expected-error@+1 {{there is no plan.program; run convert-gtp-to-plan first}}
module @no_program {
}

// -----

module {
  // expected-note@+1 {{the first is here}}
  plan.program @first mesh <gtp = 1> {
  }
  // expected-error@+1 {{there is a second plan.program}}
  plan.program @second mesh <gtp = 1> {
  }
}

// -----

plan.program @nobody_touches_it mesh <gtp = 1> {
  // expected-error@+1 {{is never touched}}
  %b = plan.buffer transient 4
}
