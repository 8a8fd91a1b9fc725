// RUN: gtp-opt %s --split-input-file --verify-diagnostics --gtp-plan-step

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @no_kernel {
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    // expected-error@+1 {{there is no kernel to schedule}}
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    return
  }
}
