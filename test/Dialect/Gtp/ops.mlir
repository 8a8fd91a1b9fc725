// RUN: gtp-opt %s | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --mlir-print-op-generic | gtp-opt | FileCheck %s
// RUN: gtp-opt %s --emit-bytecode | gtp-opt | FileCheck %s

#mesh = #gtp.mesh<dp = 2, gtp = 4>
#weight = #gtp.placement<#mesh, [257 stored (gtp) granule 4, 77]>
#whole = #gtp.placement<#mesh, [257, 77]>
#wgrad = #gtp.placement<#mesh, [257, 77], sum (dp, gtp) in f32>
#scattered = #gtp.placement<#mesh, [257 stored (gtp) granule 4, 77], sum (dp) in f32>
#activation = #gtp.placement<#mesh, [8 cut (dp, gtp), 77]>
#all = #gtp.placement<#mesh, [8, 77]>
#count = #gtp.placement<#mesh, [], sum (dp, gtp) in i64>
#scalar = #gtp.placement<#mesh, []>

// CHECK-LABEL: func @placed
func.func @placed(%dw: tensor<257x77xf32, #wgrad>) -> tensor<257x77xf32, #weight> {
  // CHECK: gtp.convert %{{.*}} : tensor<257x77xf32, #{{.*}}> -> tensor<257x77xf32, #{{.*}}>
  %g = gtp.convert %dw : tensor<257x77xf32, #wgrad> -> tensor<257x77xf32, #weight>
  return %g : tensor<257x77xf32, #weight>
}

// CHECK-LABEL: func @partitioned
func.func @partitioned(%w: tensor<68x77xbf16, #weight>, %dw: tensor<257x77xf32, #wgrad>,
                       %x: tensor<1x77xf32, #activation>, %n: tensor<i64, #count>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  // CHECK: gtp.materialize %{{.*}} plane forward interval 3 : tensor<68x77xbf16, #{{.*}}> -> tensor<257x77xbf16, #{{.*}}>
  %0 = gtp.materialize %w plane forward interval 3 : tensor<68x77xbf16, #weight> -> tensor<257x77xbf16, #whole>
  // CHECK: gtp.materialize %{{.*}} plane backward interval 4 {gtp.trigger = -1 : i64} :
  %1 = gtp.materialize %w plane backward interval 4 {gtp.trigger = -1 : i64} : tensor<68x77xbf16, #weight> -> tensor<257x77xbf16, #whole>
  // CHECK: gtp.reduce_scatter %{{.*}} dim 0 over (gtp) wire bf16 order ring {gtp.release_before = 7 : i64} :
  %2 = gtp.reduce_scatter %dw dim 0 over (gtp) wire bf16 order ring {gtp.release_before = 7 : i64} : tensor<257x77xf32, #wgrad> -> tensor<68x77xf32, #scattered>
  // CHECK: gtp.all_reduce %{{.*}} over (dp) : tensor<68x77xf32, #{{.*}}> -> tensor<68x77xf32, #{{.*}}>
  %3 = gtp.all_reduce %2 over (dp) : tensor<68x77xf32, #scattered> -> tensor<68x77xf32, #weight>
  // CHECK: gtp.all_reduce %{{.*}} over (dp, gtp) wire i64 : tensor<i64
  %4 = gtp.all_reduce %n over (dp, gtp) wire i64 : tensor<i64, #count> -> tensor<i64, #scalar>
  // CHECK: gtp.all_gather %{{.*}} dim 0 over (dp, gtp) : tensor<1x77xf32, #{{.*}}> -> tensor<8x77xf32, #{{.*}}>
  %5 = gtp.all_gather %x dim 0 over (dp, gtp) : tensor<1x77xf32, #activation> -> tensor<8x77xf32, #all>
  // CHECK: gtp.slice %{{.*}} dim 0 over (dp, gtp) : tensor<8x77xf32, #{{.*}}> -> tensor<1x77xf32, #{{.*}}>
  %6 = gtp.slice %5 dim 0 over (dp, gtp) : tensor<8x77xf32, #all> -> tensor<1x77xf32, #activation>
  // CHECK: gtp.keep_first %{{.*}} over (dp, gtp) : tensor<i64, #{{.*}}> -> tensor<i64, #{{.*}}>
  %7 = gtp.keep_first %4 over (dp, gtp) : tensor<i64, #scalar> -> tensor<i64, #count>
  return
}

// CHECK-LABEL: func @asynchronous
func.func @asynchronous(%w: tensor<68x77xbf16, #weight>, %dw: tensor<257x77xf32, #wgrad>,
                        %x: tensor<1x77xf32, #activation>, %n: tensor<i64, #count>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
  // CHECK: %[[T:.*]] = gtp.prefetch materialize %{{.*}} plane backward interval 4 : tensor<68x77xbf16, #{{.*}}> -> !gtp.ticket<tensor<257x77xbf16, #{{.*}}>>
  %t0 = gtp.prefetch materialize %w plane backward interval 4 : tensor<68x77xbf16, #weight> -> !gtp.ticket<tensor<257x77xbf16, #whole>>
  // CHECK: %[[FULL:.*]] = gtp.await %[[T]] : !gtp.ticket<tensor<257x77xbf16, #{{.*}}>>
  %full = gtp.await %t0 : !gtp.ticket<tensor<257x77xbf16, #whole>>
  // CHECK: gtp.release %[[FULL]] : tensor<257x77xbf16, #{{.*}}>
  gtp.release %full : tensor<257x77xbf16, #whole>
  // CHECK: %[[R:.*]] = gtp.prefetch reduce_scatter %[[DW:.*]] dim 0 over (gtp) wire f32 order ring :
  %t1 = gtp.prefetch reduce_scatter %dw dim 0 over (gtp) wire f32 order ring : tensor<257x77xf32, #wgrad> -> !gtp.ticket<tensor<68x77xf32, #scattered>>
  // CHECK: gtp.release %[[DW]] after %[[R]] : tensor<257x77xf32, #{{.*}}>, !gtp.ticket<tensor<68x77xf32, #{{.*}}>>
  gtp.release %dw after %t1 : tensor<257x77xf32, #wgrad>, !gtp.ticket<tensor<68x77xf32, #scattered>>
  // CHECK: gtp.prefetch all_gather %{{.*}} dim 0 over (dp, gtp) :
  %t2 = gtp.prefetch all_gather %x dim 0 over (dp, gtp) : tensor<1x77xf32, #activation> -> !gtp.ticket<tensor<8x77xf32, #all>>
  // CHECK: gtp.prefetch all_reduce %{{.*}} over (dp, gtp) :
  %t3 = gtp.prefetch all_reduce %n over (dp, gtp) : tensor<i64, #count> -> !gtp.ticket<tensor<i64, #scalar>>
  return
}
