#!/usr/bin/env bash
# Checks of the CUDA backend on the GPUs of this machine, at most ten minutes each.
#
#   scripts/gpu_check.sh parity     kernels, models and replays against the host and PyTorch's
#                                   numbers, on one GPU and on two; memcheck and racecheck
#   scripts/gpu_check.sh faults     ranks that are killed or stopped, another plan on one, launchers (2 GPUs)
#   ... --make-plans=DIR            makes the plans and stops: for a machine without gtp-opt
#   ... --plans=DIR                 takes them from there
#   ... --bin=DIR                   takes the programs from that folder instead of building them
#
# What is left out, and why, is a row of the table at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/gpu_build.sh"

gpu_programs "gtp-run runtime-cuda-tests" "$@"
exec python3 "$here/gpu_check.py" "$@" "${bin[@]}"
