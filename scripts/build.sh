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
generator=()
[ -e "$folder/CMakeCache.txt" ] || generator=(-G Ninja)
cmake -S . -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "$@" >"$folder/configure.log" 2>&1 || {
  cat "$folder/configure.log" >&2
  exit 1
}
[ -z "${VERBOSE:-}" ] || cat "$folder/configure.log"
cmake --build "$folder" --target "$target" --parallel "${JOBS:-$(nproc)}" ${VERBOSE:+--verbose}
