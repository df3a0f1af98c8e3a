#!/usr/bin/env bash
# Runs the conformance tests on this machine's GPUs; a backend that is built but finds no device is then a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

backends=()
for name in cuda vulkan; do
  [ ! -e "backends/$name/CMakeLists.txt" ] || backends+=("$name")
done
if [ ${#backends[@]} = 0 ]; then
  echo "This version has no GPU backend: there is nothing to check." >&2
  exit 1
fi
scripts/build.sh all
INFER_REQUIRE=$(IFS=,; echo "${backends[*]}") ctest --test-dir build -L conformance --output-on-failure
