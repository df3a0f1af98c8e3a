#!/usr/bin/env bash
# Configures and builds in Release mode.
#   usage: build.sh TARGET [CMAKE_OPTION...]      TARGET: infer, unit_tests, or all (with every test)
# BUILD_DIR chooses the folder (default build), JOBS the number of compilers at a time, VERBOSE=1 shows the commands.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:?target}
shift
folder=${BUILD_DIR:-build}
groups=(build)
[ "$target" = infer ] || groups+=(test)
scripts/install_deps.sh "${groups[@]}"

mkdir -p "$folder"
options=()
[ -e "$folder/CMakeCache.txt" ] || options=(-G Ninja)
# Kernels for other machines take minutes to compile. The tests use them, and what is installed may run elsewhere.
if [ "$target" != infer ]; then
  options+=(-DINFER_NATIVE=OFF)
elif [ ! -e "$folder/CMakeCache.txt" ]; then
  options+=(-DINFER_NATIVE=ON)
fi
cmake -S . -B "$folder" "${options[@]}" -DCMAKE_BUILD_TYPE=Release "$@" >"$folder/configure.log" 2>&1 || {
  cat "$folder/configure.log" >&2
  exit 1
}
[ -z "${VERBOSE:-}" ] || cat "$folder/configure.log"
cmake --build "$folder" --target "$target" --parallel "${JOBS:-$(nproc)}" ${VERBOSE:+--verbose}
