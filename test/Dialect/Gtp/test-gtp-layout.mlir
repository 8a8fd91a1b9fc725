// RUN: gtp-opt %s --test-gtp-layout 2>&1 | FileCheck %s

// CHECK: remark: {{[0-9]+}} dimensions are alike
module {}
