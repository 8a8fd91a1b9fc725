// RUN: not gtp-opt %s --gtp-place=mesh=pp=2 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not gtp-opt %s --gtp-place=mesh=dp=2,tp=2 2>&1 | FileCheck %s --check-prefix=TP
// RUN: not gtp-opt %s --gtp-place=mesh=cp=2 2>&1 | FileCheck %s --check-prefix=CP
// RUN: not gtp-opt %s --gtp-place=mesh=dp 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not gtp-opt %s --gtp-place=mesh=dp=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not gtp-opt %s --gtp-place=mesh=dp=2,dp=2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not gtp-opt %s --gtp-place=mesh=dp=99999999999 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not gtp-opt %s --gtp-place=mesh=dp=2, 2>&1 | FileCheck %s --check-prefix=COMMA
// RUN: not gtp-opt %s --gtp-place=mesh=dp=2,gtp=2 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: not gtp-opt %s --gtp-place=mesh=dp=2 --gtp-place=mesh=dp=2 2>&1 | FileCheck %s --check-prefix=AGAIN

// UNKNOWN: error: gtp-place: mesh=pp=2: 'pp=2' is no axis with its degree; expected for example dp=2,gtp=4 (axes: dp, gtp, tp, cp)
// TP: error: gtp-place: mesh=dp=2,tp=2: tp above 1 is not supported yet; dp and gtp are
// CP: error: gtp-place: mesh=cp=2: cp above 1 is not supported yet; dp and gtp are
// SHAPE: error: gtp-place: mesh=dp: the degree of dp is ''; expected an integer from 1 to 16777216
// ZERO: error: gtp-place: mesh=dp=0: the degree of dp is '0'; expected an integer from 1 to 16777216
// TWICE: error: gtp-place: mesh=dp=2,dp=2: axis dp appears twice
// HUGE: error: gtp-place: mesh=dp=99999999999: the degree of dp is '99999999999'; expected an integer from 1 to 16777216
// COMMA: error: gtp-place: mesh=dp=2,: '' is no axis with its degree
// BATCH: gtp-place-invalid.mlir:[[#@LINE+3]]:{{.*}}: error: a microbatch of 6 sequences cannot be cut over (dp, gtp) of #gtp.mesh<dp = 2, gtp = 2>: expected a multiple of 4
// AGAIN: error: cannot place argument #0 of type 'tensor<1x6x4xi32, {{.*}}>': expected a tensor of static shape without a placement

func.func @step(%tokens: tensor<1x6x4xi32> {tfm.arg = "tokens"}) -> tensor<i64> {
  %0 = tfm.count_labels %tokens : (tensor<1x6x4xi32>) -> tensor<i64>
  return %0 : tensor<i64>
}
