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
root=$(dirname "$here")

. "$root/scripts/gpu_build.sh"

bin=()
given=
targets=(gtp-run)
for argument in "$@"; do
  case $argument in
    --bin=* | --bin | --help | -h) given=yes ;;
    --make-plans=* | --make-plans) targets=() ;;
  esac
done
if [ -z "$given" ]; then
  gpu_build "$root/build-gpu" "${targets[@]}"
  bin=(--bin="$root/build-gpu/bin")
fi
exec python3 "$here/bench.py" "${bin[@]}" "$@"
