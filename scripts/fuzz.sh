#!/usr/bin/env bash
# Builds the fuzz targets with clang in build-fuzz and runs each for a while; exits with 1 if one finds a bug. New
# inputs are kept in build-fuzz/corpus/NAME, findings in build-fuzz/findings/NAME; add such a file to tests/regress.
#   usage: fuzz.sh [SECONDS [NAME...]]      default: 60 seconds for each of all targets
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: fuzz.sh [SECONDS [NAME...]]" >&2; exit 2; }
[ $# -eq 0 ] || shift
folder=${BUILD_DIR:-build-fuzz}
scripts/install_deps.sh fuzz
BUILD_DIR=$folder scripts/build.sh fuzz_targets -DINFER_FUZZ=ON -DINFER_PRECOMPILE=OFF -DCMAKE_CXX_COMPILER=clang++ \
  -DINFER_SANITIZE=fuzzer-no-link,address,undefined

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names <"$folder/fuzz_targets.txt"
found=()
for name in "${names[@]}"; do
  corpora=("$folder/corpus/$name")
  [ ! -d "tests/fuzz/corpus/$name" ] || corpora+=("tests/fuzz/corpus/$name")
  mkdir -p "$folder/corpus/$name" "$folder/findings/$name"
  echo "fuzz_$name: $seconds seconds"
  # libFuzzer's output goes to a log whose last lines say what happened. Memory is capped, so an allocation sized by an
  # untrusted input is a finding.
  log=$folder/fuzz_$name.log
  "$folder/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=256 \
    -print_final_stats=1 -artifact_prefix="$folder/findings/$name/" "${corpora[@]}" >"$log" 2>&1 || {
    found+=("$name")
    tail -n 40 "$log" >&2
    continue
  }
  grep -E "^stat::number_of_executed_units|^Done" "$log"
done
if [ ${#found[@]} -gt 0 ]; then
  echo "Findings in: ${found[*]} (inputs in $folder/findings)" >&2
  exit 1
fi
