# For scripts of GPU machines to source: builds targets of this tree with CUDA.
#
#   gpu_build FOLDER TARGET...   gtp-opt too where LLVM 22 is; fails with the log's end
#   gpu_build FOLDER             gtp-opt alone, without CUDA
#   gpu_programs "TARGET..." OPTION...
#       builds them in build-gpu, and makes `bin` the --bin option of that folder, unless the
#       script's options name one or ask for help; for --make-plans, gtp-opt alone

gpu_build() {
  local root build=$1
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  shift
  local options=(-DCMAKE_BUILD_TYPE=Release) targets=("$@")
  [ $# -eq 0 ] || options+=(-DGTP_ENABLE_CUDA=ON)
  if [ $# -eq 0 ] || command -v llvm-config-22 >/dev/null; then
    targets+=(gtp-opt)
  else
    options+=(-DGTP_BUILD_COMPILER=OFF)
  fi
  command -v clang++-22 >/dev/null &&
    options+=(-DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22)
  mkdir -p "$build"
  echo "building ${targets[*]} in $build"
  if ! { cmake -G Ninja -S "$root" -B "$build" "${options[@]}" &&
         ninja -C "$build" "${targets[@]}"; } >"$build/gpu_build.log" 2>&1; then
    tail -20 "$build/gpu_build.log" >&2
    echo "error: the build failed (all of it: $build/gpu_build.log); scripts/setup.sh lists what it needs, and --bin=DIR takes programs that were built elsewhere" >&2
    return 1
  fi
}

gpu_programs() {
  local build argument targets
  read -ra targets <<<"$1"
  build=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build-gpu
  shift
  bin=()
  for argument in "$@"; do
    case $argument in
      --bin=* | --bin | --help | -h) return ;;
      --make-plans=* | --make-plans) targets=() ;;
    esac
  done
  gpu_build "$build" "${targets[@]}"
  bin=(--bin="$build/bin")
}
