#!/usr/bin/env bash
# Feeds damaged inputs to every reader, in process under AddressSanitizer and
# UBSan, and prints a table.
#   scripts/fuzz.sh [COUNT [SEED]]    COUNT cases a kind (10000), of mlir a tenth
# A case that crashes, hangs or ends wrongly leaves its input in build/fuzz, with
# seed and number in the name; `build/asan/bin/gtp-fuzz KIND --seed=S --case=N`
# runs it again. Exit code 1 when there is one.
set -uo pipefail
cd "$(dirname "$0")/.."

count=${1:-10000} seed=${2:-1}
[[ $count =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]] ||
  { echo "fuzz.sh: error: expected [COUNT [SEED]], two numbers" >&2; exit 1; }
kept=build/fuzz
mkdir -p "$kept"
rm -f "$kept"/*-seed"$seed"-*
cmake --preset asan >"$kept/configure.log" || { cat "$kept/configure.log"; exit 1; }
cmake --build build/asan --target gtp-fuzz || exit 1

# Leaks of MLIR's and protobuf's statics are not ours; LLVM's allocators poison in
# our objects what the shared library, not built with ASan, does not unpoison.
export ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0:hard_rss_limit_mb=8000
export UBSAN_OPTIONS=print_stacktrace=1

rows=() bad=0
for kind in config plan data dataset weights mlir; do
  cases=$count from=0 crashes=0 total=(0 0 0 0 0) began=$SECONDS
  [ "$kind" = mlir ] && cases=$(((count + 9) / 10))
  while [ "$from" -lt "$cases" ]; do
    log=$kept/$kind-from$from.log
    build/asan/bin/gtp-fuzz "$kind" --count="$cases" --seed="$seed" --from="$from" \
      --keep="$kept" >"$log" 2>&1
    status=$?
    # "KIND cases N refused N accepted N ran N failed N seconds N seed N"
    if read -r _ _ a _ b _ c _ d _ e _ < <(grep -E "^$kind +cases " "$log"); then
      total=($((total[0] + a)) $((total[1] + b)) $((total[2] + c)) $((total[3] + d))
             $((total[4] + e)))
      [ "$status" -eq 0 ] || { bad=1; grep -v "^$kind +cases " "$log"; }
      break
    fi
    # The process died in the case whose input is the last one left.
    bad=1 crashes=$((crashes + 1))
    last=$(ls -t "$kept"/"$kind"-seed"$seed"-case* 2>/dev/null | head -1)
    [ -n "$last" ] || { cat "$log"; break; }
    number=${last##*-case} number=${number%%.*}
    echo "$last: the process died (exit code $status); its output is $log"
    grep -m1 -E "SUMMARY|Assertion|too long" "$log"
    total[0]=$((total[0] + number - from + 1)) from=$((number + 1))
    [ "$crashes" -lt 50 ] || break
  done
  rows+=("$(printf '%-8s %7d %8d %9d %6d %7d %8d %8d %5d' "$kind" "${total[@]}" "$crashes" \
    $((SECONDS - began)) "$seed")")
done
printf '\n%-8s %7s %8s %9s %6s %7s %8s %8s %5s\n' kind cases refused accepted ran failed \
  crashes seconds seed
printf '%s\n' "${rows[@]}"
echo
[ "$bad" -eq 0 ] && echo "no case crashed, hung or failed"
exit "$bad"
