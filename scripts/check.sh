#!/usr/bin/env bash
# Everything a change must pass: format, layers, file sizes, personal paths, spelling, the tests, and the instruction
# sets of the built objects. Each check first proves on known-bad input that it can fail. All checks run, even if one
# fails.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1

scripts/install_deps.sh build test check
failures=()
step() {
  local name=$1
  shift
  "$@" || failures+=("$name")
}

step "format: self-test" scripts/format.sh --self-test
step "format" scripts/format.sh --check
for name in layers file_sizes paths spelling; do
  step "$name: self-test" python3 "scripts/check_$name.py" --self-test
  step "$name" python3 "scripts/check_$name.py"
done
step "chart of speeds" python3 scripts/draw_speed_chart.py --check
step "counting of tests: self-test" python3 scripts/count_tests.py --self-test
step "tests" scripts/run_tests.sh
[ "$(uname -m)" = aarch64 ] || step "tests for 64-bit Arm" scripts/run_tests.sh --arm64
step "isa: self-test" python3 scripts/check_isa.py --self-test
for folder in build build-arm64; do
  [ ! -d "$folder" ] || step "isa" python3 scripts/check_isa.py "$folder"
done

if [ ${#failures[@]} -gt 0 ]; then
  printf 'check failed: %s\n' "${failures[@]}"
  exit 1
fi
echo "check passed"
