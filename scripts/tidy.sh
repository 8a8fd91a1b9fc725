#!/usr/bin/env bash
# Runs clang-tidy-22 over the project's sources and the headers they include; any warning is a
# failure. `.clang-tidy` has the checks. The build directory must have been built: MLIR's generated
# headers lie there, and what includes what.
#   scripts/tidy.sh                        every file that build/dev compiles
#   scripts/tidy.sh lib/Plan/ 'Data.*Test' those whose path matches one of the regexes
#   scripts/tidy.sh --changed[=COMMIT]     those that differ from COMMIT (main) or include what does
#   --build=DIR   another build directory: build/cuda has the cuda backend, kernels included
#   --jobs=N      processes at a time (as many as processors)
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "tidy.sh: error: $*" >&2; exit 1; }

build=build/dev jobs=$(nproc) since='' patterns=()
for argument in "$@"; do
  case "$argument" in
    --build=*) build=${argument#*=} ;;
    --jobs=*) jobs=${argument#*=} ;;
    --changed) since=main ;;
    --changed=*) since=${argument#*=} ;;
    -*) fail "unknown option '$argument'; it takes --build=DIR, --jobs=N, --changed[=COMMIT] and regexes of paths" ;;
    *) patterns+=("$argument") ;;
  esac
done
for tool in clang-tidy-22 run-clang-tidy-22; do
  command -v $tool >/dev/null || fail "no $tool; Debian has it in the package clang-tidy-22"
done
[ -f "$build/compile_commands.json" ] ||
  fail "$build has no compile_commands.json; build it first, or name another directory with --build=DIR"
[ -z "$since" ] || base=$(git merge-base "$since" HEAD 2>/dev/null) || fail "git knows no '$since'"

database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
{
  git ls-files '*.cpp' '*.cu'
} >"$database/sources"
if [ -n "$since" ]; then
  { git diff --name-only "$base"; git ls-files --others --exclude-standard; } >"$database/changed"
  ninja -C "$build" -t deps >"$database/deps"
fi

# The compile database of the files that are asked for. clang takes none of nvcc's options, so a
# kernel is given what clang needs instead.
python3 - "$build" "$database" "${patterns[@]}" <<'PYTHON' || exit 1
import json, os, re, shlex, sys

build, database, *patterns = sys.argv[1:]
root = os.getcwd()
lines = lambda name: open(os.path.join(database, name)).read().splitlines()
wanted = {path for path in lines("sources")
          if not patterns or any(re.search(pattern, path) for pattern in patterns)}
if os.path.exists(os.path.join(database, "changed")):
    changed, touched, depends = set(lines("changed")), set(), []
    for line in lines("deps") + [""]:
        if line.startswith(" "):
            depends.append(os.path.relpath(os.path.join(build, line.strip()), root))
        elif depends:
            if changed & set(depends):
                touched.add(depends[0])
            depends = []
    wanted &= changed | touched

def for_clang(entry):
    words = shlex.split(entry["command"])
    if not words[0].endswith("nvcc"):
        return entry
    toolkit = os.path.dirname(os.path.dirname(words[0]))
    kept = [word for i, word in enumerate(words)
            if re.match("-I|-D|-std=|-isystem", word) or words[i - 1] == "-isystem"]
    arch = re.search(r"sm_\w+", entry["command"]).group()
    return {"directory": entry["directory"], "file": entry["file"], "arguments": [
        "clang++", "-x", "cuda", "--cuda-path=" + toolkit, "--cuda-gpu-arch=" + arch,
        # NVIDIA's toolkits are newer than what clang has been told of.
        "-Wno-unknown-cuda-version", *kept,
        # Where nvcc finds CUB by itself.
        "-isystem", os.path.join(toolkit, "include", "cccl"), "-c", entry["file"]]}

chosen, compiled = {}, set()
for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
    path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
    compiled.add(path)
    if path in wanted:
        chosen[path] = for_clang(entry)
json.dump(list(chosen.values()), open(os.path.join(database, "compile_commands.json"), "w"))
others = [path for path in wanted if path not in compiled]
print(f"tidy.sh: {len(chosen)} file{'' if len(chosen) == 1 else 's'}" +
      (f"; {len(others)} more are none of {build}, such as {min(others)}" if others else ""), flush=True)
if not chosen and not os.path.exists(os.path.join(database, "changed")):
    sys.exit(f"tidy.sh: error: {build} compiles no file that was asked for")
PYTHON
[ "$(cat "$database/compile_commands.json")" != '[]' ] || exit 0

run-clang-tidy-22 -p "$database" -j "$jobs" -quiet -warnings-as-errors='*'
