#!/usr/bin/env bash
# Installs what is needed, builds and runs the tests.
#   scripts/check.sh        the suite a change must pass
#   scripts/check.sh --ci   and the cuda backend, the sanitizers, the sweep of configs and the race test
# Ends with a table of seconds a stage and `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."

ci=false
for argument in "$@"; do
  case "$argument" in
    --ci) ci=true ;;
    *) echo "check.sh: error: unknown option '$argument'; it takes --ci" >&2; exit 1 ;;
  esac
done

logs=build/logs
mkdir -p "$logs"
rows=() total_passed=0 total_failed=0 started=$SECONDS

# What a test program's log says it counted: "passed failed".
count() {
  awk '
    /^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3 }                  # our scripts
    /tests passed, [0-9]+ tests failed out of/ { failed += $4; passed += $9 - $4 }  # ctest
    /^ *Passed *: *[0-9]+/ { sub(/.*: */, ""); passed += $1 }                       # lit
    /^ *(Failed|Unresolved|Timed Out|Unexpectedly Passed) *: *[0-9]+/ { sub(/.*: */, ""); failed += $1 }
    END { print passed + 0, failed + 0 }' "$1"
}

# stage NAME COMMAND...: runs it, shows and keeps its output, counts its tests. A
# stage that fails without counting a failure is one failure.
stage() {
  local name=$1 log begin status passed failed
  shift
  log=$logs/${name// /-}.log begin=$SECONDS
  printf '\n== %s\n' "$name"
  "$@" 2>&1 </dev/null | tee "$log"
  status=${PIPESTATUS[0]}
  read -r passed failed < <(count "$log")
  [ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
  total_passed=$((total_passed + passed)) total_failed=$((total_failed + failed))
  rows+=("$(printf '%-28s %6d s %8d passed %6d failed' "$name" $((SECONDS - begin)) "$passed" "$failed")")
  return "$status"
}

finish() {
  printf '\n%-28s %8s\n' "stage" "seconds"
  printf '%s\n' "${rows[@]}"
  printf '%-28s %6d s\n\n' "all" $((SECONDS - started))
  echo "$total_passed passed, $total_failed failed"
  [ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
  exit
}

build() { # build PRESET: configures and builds build/PRESET, one line a step
  cmake --preset "$1" >"$logs/configure-$1.log" || { cat "$logs/configure-$1.log"; return 1; }
  cmake --build --preset "$1" -- -k 20
}
unit() { ctest --test-dir "build/$1" --output-on-failure -j2 --no-tests=error "${@:2}"; }
lit() { cmake --build "build/$1" --target check-gtp; }
run() { python3 "test/Run/$1.py" --bin="build/$2/bin" "${@:3}"; }
format() {
  git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-22 --dry-run -Werror &&
    echo "clang-format finds nothing to change"
}

stage "set-up" scripts/setup.sh || finish
stage "format" format
stage "error sentences" python3 test/Run/error_sentences.py
stage "build dev" build dev || finish
stage "unit tests" unit dev
stage "lit" lit dev
stage "PyTorch parity" run torch_parity dev
stage "mesh equality" run mesh_equality dev
stage "packed documents" run packed_documents dev
stage "handwritten model" run handwritten_model dev
stage "overrides" run overrides dev
stage "unit gradients" run unit_gradients dev
stage "determinism" run determinism dev
stage "plan mutations" run mutations dev
stage "element types" run dtypes dev
stage "fusion" run fusion dev
stage "training loop" run training_loop dev
stage "held-out loss" run held_out dev
stage "demo curve" run demo_curve dev
stage "tutorial" run tutorial dev
stage "plan size" run plan_size dev
stage "standalone programs" run standalone dev
if $ci; then
  stage "config sweep" run config_sweep dev
  # Tests of kernels skip themselves where there is no GPU.
  if stage "set-up cuda" scripts/setup_cuda.sh && stage "build cuda" build cuda; then
    stage "unit tests cuda" unit cuda -R '^(runtime-cuda-tests|gtp-run-tests)$'
  fi
  # UBSan stops at the first finding; leaks of MLIR's and protobuf's statics are not ours.
  # LLVM's allocators poison in our objects what the shared library, not built with ASan, does
  # not unpoison.
  export ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0 UBSAN_OPTIONS=print_stacktrace=1
  if stage "build asan" build asan; then
    stage "unit tests asan" unit asan
    stage "lit asan" lit asan
    stage "PyTorch parity asan" run torch_parity asan
  fi
  if stage "build tsan" build tsan; then
    stage "unit tests tsan" unit tsan
    stage "races" run races dev --tsan-bin=build/tsan/bin
  fi
fi
finish
