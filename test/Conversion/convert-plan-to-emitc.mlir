// RUN: gtp-opt %s --split-input-file --verify-diagnostics --convert-plan-to-emitc | FileCheck %s

// The plan's calls, without layers that repeat.

// CHECK-NOT:     plan.program
// CHECK:         emitc.include "gtp-rt/PlanBuilder.h"
// CHECK:         emitc.global static @plan : !emitc.opaque<"PlanBuilder">
// CHECK:         emitc.global static const @x_buffer : !emitc.opaque<"Buffer"> = #emitc.opaque<"0">
// CHECK:         emitc.func @train_step_body() attributes {specifiers = ["static"]} {
// CHECK:           call_opaque "plan.region"() {args = [#emitc.opaque<"pb::Region::BODY">, #emitc.opaque<"3">, #emitc.opaque<"1">]}
// CHECK:           call_opaque "plan.fill"() {args = [#emitc.opaque<"f32(x_buffer, {4})">, #emitc.opaque<"255">, #emitc.opaque<"on(compute_stream).signals(0).when(pb::Operation::FIRST)">]}
// CHECK:           call_opaque "plan.copy"() {args = [#emitc.opaque<"f32(x_buffer, {4}).offset(16).perIteration(16)">, #emitc.opaque<"f32(y_buffer, {4}).perRank(0, 32)">, #emitc.opaque<"{{.*}}on(gather_stream).after(0).takes(7)">]}
// CHECK:         emitc.func @main

plan.program @moves mesh <gtp = 2> arena 512 attributes {model = {vocabulary = 9 : i64}} {
  %x = plan.buffer transient 64 "x" at 0
  %y = plan.buffer transient 64 "y" at 256
  plan.stream compute
  plan.stream gather
  plan.region body repeat 3 events 1 {
    %t = plan.fill 255(%x <f32[4]>) stream 0 event 0 when first
    %u = plan.copy(%x <f32[4], offset 16, iteration 16>, %y <f32[4], ranks [0, 32]>) stream 1 waits [0] time 7
  }
}

// -----

plan.program @no_address mesh <gtp = 2> attributes {model = {vocabulary = 9 : i64}} {
  // expected-error@+1 {{has no offset; run plan-assign-memory first}}
  %x = plan.buffer transient 64 "x"
}
