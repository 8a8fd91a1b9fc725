// RUN: gtp-opt %s --gtp-fuse --split-input-file --verify-diagnostics

#mesh = #gtp.mesh<gtp = 4>
// expected-error @below {{gtp-fuse: is not partitioned; run gtp-partition first}}
func.func @placed() attributes {gtp.mesh = #mesh} {
  return
}
