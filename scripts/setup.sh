#!/usr/bin/env bash
# Installs what building and testing gtp needs on Debian 12; safe to run again.
# Asks nothing with CI=true or as root; else it uses sudo.
set -euo pipefail

packages=(
  cmake ninja-build g++ git python3 python3-pip time
  clang-22 lld-22 libclang-rt-22-dev clang-format-22
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  protobuf-compiler libprotobuf-dev
  libopenblas-pthread-dev
  nlohmann-json3-dev libcli11-dev libxxhash-dev
  libgtest-dev
)

# What a machine lacks of the list. dpkg-query fails when it has never heard of a package.
missing() {
  { dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' "${packages[@]}" 2>/dev/null || true; } |
    awk '$2 == "ii" { print $1 }' | sort -u > "$installed"
  printf '%s\n' "${packages[@]}" | sort -u | comm -23 - "$installed"
}

if ! command -v apt-get >/dev/null || ! grep -qs '^VERSION_ID="12"' /etc/os-release; then
  cat >&2 <<TEXT
setup.sh: error: this script knows Debian 12 (bookworm) only; found: $(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-unknown}" || uname -s)
Install by hand: CMake >= 3.22, Ninja, clang 22 with lld and its sanitizer runtimes, LLVM and MLIR 22.1
(development files, mlir-tblgen, FileCheck, lit), Protocol Buffers >= 3.21, OpenBLAS,
nlohmann-json >= 3.11, CLI11 >= 2.1, xxhash >= 0.8, GoogleTest >= 1.12, Python >= 3.9.
TEXT
  exit 1
fi

installed=$(mktemp)
trap 'rm -f "$installed"' EXIT
mapfile -t wanted < <(missing)
if [ ${#wanted[@]} -eq 0 ]; then
  echo "setup.sh: everything is installed"
  exit 0
fi

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "setup.sh: installing ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
if ! apt-cache show clang-22 >/dev/null 2>&1; then
  echo "setup.sh: error: no package clang-22; Debian 12 has it in bookworm-security: enable that suite in /etc/apt/sources.list" >&2
  exit 1
fi
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
mapfile -t wanted < <(missing)
if [ ${#wanted[@]} -ne 0 ]; then
  echo "setup.sh: error: still missing: ${wanted[*]}" >&2
  exit 1
fi
echo "setup.sh: done"
