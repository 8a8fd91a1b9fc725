#!/usr/bin/env bash
# Installs what is needed, builds, compiles a small Llama for 4 ranks, trains it on
# the text in examples/demo and measures the loss on text it has not seen.
#   scripts/demo.sh [--build-dir DIR] [--steps N]
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release steps=400
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build=${2:?--build-dir needs a directory}; shift 2 ;;
    --steps) steps=${2:?--steps needs a number}; shift 2 ;;
    *) echo "demo.sh: error: unknown option '$1'; it takes --build-dir DIR and --steps N" >&2; exit 1 ;;
  esac
done
say() { printf '\n== %s\n' "$*"; }

say "Set-up"
scripts/setup.sh
say "Build (a few minutes the first time)"
cmake --preset release -B "$build" -DGTP_BUILD_TESTS=OFF >"/tmp/gtp-demo-configure.$$" 2>&1 || {
  cat "/tmp/gtp-demo-configure.$$"; exit 1; }
rm -f "/tmp/gtp-demo-configure.$$"
cmake --build "$build" --target gtp-opt gtp-run

out=$build/demo
mkdir -p "$out"
held_out=65536
head -c -$held_out examples/demo/kjv.txt >"$out/train.txt"
tail -c $held_out examples/demo/kjv.txt >"$out/held-out.txt"

say "Compile: Llama, 2 layers, for 4 ranks, each weight cut in 4"
"$build/bin/gtp-opt" examples/demo/config.json --mesh=gtp=4 --seq=128 --micro-batch=4 \
  --dtype=f32 --clip-norm=1 --emit=plan -o "$out/demo.gtpplan"
ls -l "$out/demo.gtpplan"

say "Train: $steps steps of 2,048 bytes on 4 CPU ranks; the last 64 KiB are held out"
"$build/bin/gtp-run" "$out/demo.gtpplan" --data="$out/train.txt" --steps="$steps" --lr=1e-3 \
  --seed=1 --eval-data="$out/held-out.txt" --eval-every=100 --metrics="$out/train.jsonl" \
  --dump-weights="$out/weights.safetensors"

python3 - "$out" <<'PYTHON'
import json, sys
out = sys.argv[1]
steps = [json.loads(line) for line in open(f"{out}/train.jsonl")]
train, held_out = [step["loss"] for step in steps], steps[-1]["eval_loss"]
width, height = 64, 12
top, low = max(train), min(train)
columns = [train[i * len(train) // width:(i + 1) * len(train) // width] or [train[-1]] for i in range(min(width, len(train)))]
level = [round((sum(c) / len(c) - low) / ((top - low) or 1) * (height - 1)) for c in columns]
print(f"\n  loss (nats a byte) over {len(train)} steps")
for row in range(height - 1, -1, -1):
    label = low + (top - low) * row / (height - 1)
    print(f"  {label:5.2f} |" + "".join("*" if l == row else " " for l in level))
print("        +" + "-" * len(level))
print(f"\n  first step {train[0]:.3f}, last step {train[-1]:.3f}, held out {held_out:.3f} nats a byte")
if not held_out < 2.3:
    sys.exit("demo.sh: error: the held-out loss is not below 2.3 nats a byte")
PYTHON
