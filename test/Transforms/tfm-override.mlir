// RUN: gtp-opt %s -tfm-override | FileCheck %s --check-prefix=NONE
// RUN: gtp-opt %s -tfm-override="freeze=head|^l\.1\. replicate=norm$" | FileCheck %s --check-prefix=OPTIONS
// RUN: echo '{"l\\.0\\.[qk]": {"prefetch": 3, "replicate": true}, "norm": {"freeze": false, "prefetch": "off"}, "l.1": {"prefetch": "auto"}}' > %t.json
// RUN: gtp-opt %s -tfm-override="freeze=l\.. overrides=%t.json" | FileCheck %s --check-prefix=FILE
// RUN: gtp-opt %s -tfm-override="freeze=l\.0 replicate=q overrides=%t.json" -tfm-pack | FileCheck %s --check-prefix=PACK

// NONE: @embed {{.*}} tied ["head"]{{$}}
// NONE: @l.0.norm {{.*}}["l.0.norm" = 4]{{$}}
// NONE: @last {{.*}}["last" = 4] frozen{{$}}
// Options are searched for in names; another name of a weight finds it, too.
// What is there stays.
// OPTIONS: @embed {{.*}} tied ["head"] frozen
// OPTIONS: @l.0.norm {{.*}}["l.0.norm" = 4] replicated
// OPTIONS: @l.0.q {{.*}}["l.0.q" = 4]{{$}}
// OPTIONS: @l.0.k {{.*}}["l.0.k" = 2]{{$}}
// OPTIONS: @l.1.q {{.*}}["l.1.q" = 4] frozen{{$}}
// OPTIONS: @last {{.*}}["last" = 4] frozen{{$}}
// The file counts more than the options.
// FILE: @embed {{.*}} tied ["head"]{{$}}
// FILE: @l.0.norm {{.*}}["l.0.norm" = 4] prefetch "off"{{$}}
// FILE: @l.0.q {{.*}}["l.0.q" = 4] frozen replicated prefetch "3"{{$}}
// FILE: @l.0.k {{.*}}["l.0.k" = 2] frozen replicated prefetch "3"{{$}}
// FILE: @l.1.q {{.*}}["l.1.q" = 4] frozen prefetch "auto"{{$}}
// Only what is decided alike is joined: the values of norm are trained, q and k not.
// PACK: @"l.0.q|k" {{.*}}["l.0.q" = 4, "l.0.k" = 2] frozen replicated prefetch "3"{{$}}
// PACK: @l.1.q {{.*}} replicated prefetch "auto"{{$}}
tfm.parameter @embed : tensor<8x4xf32> init "normal" tensors ["embed" = 8] tied ["head"]
tfm.parameter @l.0.norm : tensor<4xf32> init "ones" tensors ["l.0.norm" = 4]
tfm.parameter @l.0.q : tensor<4x4xf32> init "normal" tensors ["l.0.q" = 4]
tfm.parameter @l.0.k : tensor<2x4xf32> init "normal" tensors ["l.0.k" = 2]
tfm.parameter @l.1.q : tensor<4x4xf32> init "normal" tensors ["l.1.q" = 4]
tfm.parameter @last : tensor<4xf32> init "ones" tensors ["last" = 4] frozen

func.func @forward(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x4xf32>) {
  %0 = tfm.get @l.0.q : tensor<4x4xf32>
  %1 = tfm.get @l.0.k : tensor<2x4xf32>
  %2 = tfm.get @l.1.q : tensor<4x4xf32>
  %q = tfm.linear %x, %0 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %k = tfm.linear %x, %1 : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  %r = tfm.linear %x, %2 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %q, %k, %r : tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x4xf32>
}
