#!/usr/bin/env bash
# gtp-run beside PyTorch FSDP2 + torch.compile, on the GPUs of this machine, in ten minutes.
#
#   bench/run.sh                    builds what it needs, makes the plans, measures, prints
#   bench/run.sh --make-plans=DIR   makes the plans and stops: for a machine without gtp-opt
#   bench/run.sh --plans=DIR        takes them from there
#   bench/run.sh --bin=DIR          takes gtp-run, and gtp-opt if it is there, from that folder
#   bench/run.sh --help             all options
#
# Tables and every number go to --out (bench/out): results.md, results.json and logs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../scripts/gpu_build.sh"

gpu_programs gtp-run "$@"
exec python3 "$here/bench.py" "${bin[@]}" "$@"
