#!/usr/bin/env bash
# Installs what compiling the cuda backend needs into build/cuda-toolkit, from PyPI: NVIDIA has no
# package in Debian. No GPU or driver is needed, and nothing else on the machine is touched. Safe to
# run again.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
  nvidia-cuda-nvrtc==13.0.88 nvidia-nvtx==13.0.85
  nvidia-cublas==13.1.0.3 nvidia-nccl-cu13==2.28.9
  nvidia-cudnn-cu13==9.19.1.2 nvidia-cudnn-frontend==1.32.0
)
target=build/cuda-toolkit
installed=$target/packages.txt

if [ -f "$installed" ] && [ "$(cat "$installed")" = "${packages[*]}" ]; then
  echo "setup_cuda.sh: everything is installed"
  exit 0
fi
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "setup_cuda.sh: error: python3 has no pip; run scripts/setup.sh, or install python3-pip" >&2
  exit 1
fi
rm -rf "$target"
mkdir -p "$target"
echo "setup_cuda.sh: installing ${packages[*]}"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --no-compile --target "$target" "${packages[@]}"

# Compilers and linkers look for names without a version, and nvcc for lib64.
toolkit=$target/nvidia/cu13
for library in "$toolkit"/lib/*.so.* "$target"/nvidia/nccl/lib/*.so.*; do
  ln -sf "$(basename "$library")" "${library%%.so.*}.so"
done
ln -sfn lib "$toolkit/lib64"
"$toolkit/bin/nvcc" --version | grep -q 'release 13.0'
echo "${packages[*]}" >"$installed"
echo "setup_cuda.sh: done"
