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

bin=() needs=(gtp-run)
for argument in "$@"; do
  case $argument in
    --bin=* | --bin | --help | -h) bin=(given) ;;
    --make-plans=* | --make-plans) needs=(gtp-opt) ;;
  esac
done

# With LLVM 22 the compiler is built too; without it plans must be given.
if [ ${#bin[@]} -eq 0 ]; then
  build=$root/build-bench
  options=(-DGTP_BUILD_COMPILER=OFF)
  if command -v llvm-config-22 >/dev/null; then
    options=(-DGTP_BUILD_COMPILER=ON)
    needs=(gtp-opt "${needs[@]/gtp-opt/}")
  fi
  command -v clang++-22 >/dev/null &&
    options+=(-DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22)
  [ "${needs[*]}" = gtp-opt ] || options+=(-DGTP_ENABLE_CUDA=ON)
  mkdir -p "$build"
  echo "building ${needs[*]} in $build (log: $build/bench.log)"
  if ! { cmake -G Ninja -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release "${options[@]}" &&
         ninja -C "$build" ${needs[*]}; } >"$build/bench.log" 2>&1; then
    tail -20 "$build/bench.log" >&2
    echo "run.sh: error: the build failed; scripts/setup.sh lists what it needs, and --bin=DIR takes programs that were built elsewhere" >&2
    exit 1
  fi
  bin=(--bin="$build/bin")
else
  bin=()
fi
exec python3 "$here/bench.py" "${bin[@]}" "$@"
