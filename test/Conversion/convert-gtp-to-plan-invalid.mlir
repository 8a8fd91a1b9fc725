// RUN: gtp-opt %s --split-input-file --verify-diagnostics --convert-gtp-to-plan

// expected-error@+1 {{there is no function @train_step of one block}}
module @no_step {
}

// -----

module @not_partitioned {
  // expected-error@+1 {{@train_step is not partitioned; run gtp-place and gtp-partition first}}
  func.func @train_step() {
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
module @no_microbatches {
  // expected-error@+1 {{there are 0 tfm.microbatches, expected one with inputs}}
  func.func @train_step() attributes {gtp.mesh = #mesh, gtp.partitioned} {
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
#x = #gtp.placement<#mesh, [2, 4]>
module @argument_of_no_role {
  // expected-error@+1 {{argument 0 has no tfm.arg}}
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids>) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
#x = #gtp.placement<#mesh, [2, 4]>
#columns = #gtp.placement<#mesh, [2, 4 cut (gtp)]>
module @gathers_columns {
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      %x = tfm.full 1.0 : tensor<2x2xf32, #columns>
      // expected-error@+1 {{works along dimension 1, plans only join and cut the first}}
      %y = gtp.all_gather %x dim 1 over (gtp) : tensor<2x2xf32, #columns> -> tensor<2x4xf32, #x>
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @no_kernel {
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      // expected-error@+1 {{is no kernel or collective that a plan can have}}
      func.call @train_step(%tokens) : (tensor<1x2x4xi32, #ids>) -> ()
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @argument_of_no_parameter {
  // expected-error@+1 {{argument 1 belongs to @nowhere, which is no tfm.parameter of the module}}
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}, %w: tensor<2x4xi32, #id> {tfm.arg = "weight", tfm.parameter = @nowhere}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @parameter_without_argument {
  // expected-error@+1 {{has no weight among the arguments of @train_step}}
  tfm.parameter @w : tensor<4xf32> init "ones" tensors ["w" = 4]
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @argument_without_bytes {
  // expected-error@+1 {{argument 1 has type 'i64', which no buffer of a plan can hold; expected a ranked tensor of static shape, of f32, bf16, f64, i32, i64 or i8}}
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}, %n: i64 {tfm.arg = "hyper"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @value_without_bytes {
  func.func private @number() -> i64
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      // expected-error@+1 {{has a result of type 'i64', which no buffer of a plan can hold}}
      %n = func.call @number() : () -> i64
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
module @result_that_nobody_gets {
  // expected-error@+1 {{result 0 has neither tfm.tied_to nor tfm.result, so nothing would read it}}
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) -> tensor<1x2x4xi32, #ids> attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    return %tokens : tensor<1x2x4xi32, #ids>
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
#whole = #gtp.placement<#mesh, [4, 4]>
#half = #gtp.placement<#mesh, [4, 4 cut (gtp)]>
module @slices_columns {
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      %x = tfm.full 1.0 : tensor<4x4xf32, #whole>
      // expected-error@+1 {{slices another dimension than the first of a dense value, which plans do not do yet}}
      %y = gtp.slice %x dim 1 over (gtp) : tensor<4x4xf32, #whole> -> tensor<4x2xf32, #half>
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
#sum = #gtp.placement<#mesh, [2, 6], sum (gtp) in f32>
#part = #gtp.placement<#mesh, [2, 3], sum (gtp) in f32>
#done = #gtp.placement<#mesh, [2, 3]>
module @reduces_columns {
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      %x = tfm.full 1.0 : tensor<2x6xf32, #sum>
      %a, %b = tfm.split %x : (tensor<2x6xf32, #sum>) -> (tensor<2x3xf32, #part>, tensor<2x3xf32, #part>)
      // expected-error@+1 {{works on a value whose rows are apart in memory}}
      %y = gtp.all_reduce %a over (gtp) : tensor<2x3xf32, #part> -> tensor<2x3xf32, #done>
      tfm.yield
    }
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
#w = #gtp.placement<#mesh, [10, 4]>
#eight = #gtp.placement<#mesh, [8]>
#scalar = #gtp.placement<#mesh, []>
module @updates_no_parameter {
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}, %hyper: tensor<8xf32, #eight> {tfm.arg = "hyper"}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    %w = tfm.full 1.0 : tensor<10x4xf32, #w>
    %scale = tfm.full 1.0 : tensor<f32, #scalar>
    // expected-error@+1 {{updates a value that is no parameter's}}
    %new = tfm.sgd %w, %w, %hyper, %scale : (tensor<10x4xf32, #w>, tensor<10x4xf32, #w>, tensor<8xf32, #eight>, tensor<f32, #scalar>) -> tensor<10x4xf32, #w>
    return
  }
}

// -----

#mesh = #gtp.mesh<gtp = 2>
#ids = #gtp.placement<#mesh, [1, 2, 4]>
#id = #gtp.placement<#mesh, [2, 4]>
#w = #gtp.placement<#mesh, [10, 4]>
#eight = #gtp.placement<#mesh, [8]>
#scalar = #gtp.placement<#mesh, []>
module @gradient_of_no_microbatch {
  tfm.parameter @w : tensor<10x4xf32> init "ones" tensors ["w" = 10]
  func.func @train_step(%tokens: tensor<1x2x4xi32, #ids> {tfm.arg = "tokens"}, %w: tensor<10x4xf32, #w> {tfm.arg = "weight", tfm.parameter = @w}, %hyper: tensor<8xf32, #eight> {tfm.arg = "hyper"}) -> (tensor<10x4xf32, #w> {tfm.tied_to = 1 : i64}) attributes {gtp.mesh = #mesh, gtp.partitioned} {
    tfm.microbatches (%t : tensor<2x4xi32, #id> in %tokens) : (tensor<1x2x4xi32, #ids>) -> () {
      tfm.yield
    }
    %g = tfm.full 1.0 : tensor<10x4xf32, #w>
    %scale = tfm.full 1.0 : tensor<f32, #scalar>
    // expected-error@+1 {{reads a gradient that is no sum over microbatches}}
    %new = tfm.sgd %w, %g, %hyper, %scale : (tensor<10x4xf32, #w>, tensor<10x4xf32, #w>, tensor<8xf32, #eight>, tensor<f32, #scalar>) -> tensor<10x4xf32, #w>
    return %new : tensor<10x4xf32, #w>
  }
}
