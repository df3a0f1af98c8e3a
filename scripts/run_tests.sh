#!/usr/bin/env bash
# Builds everything in Release mode and runs the tests here and, emulated, on 64-bit Arm. The last line of output is `N
# passed, N failed, N skipped`; the exit code is 0 only if tests ran and none failed.
#   usage: run_tests.sh [--full]      --full: every conformance case instead of the fixed subset (INFER_TEST_FULL=1)
# SAN=1: only the unit tests, built with the address and undefined-behaviour sanitizers in build-san.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  "") ;;
  --full) export INFER_TEST_FULL=1 ;;
  *) echo "usage: run_tests.sh [--full]" >&2; exit 2 ;;
esac

failed_step() {
  echo "$1"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

# run_ctest FOLDER [CTEST_OPTION...]: writes FOLDER/tests.xml with the complete output of every test.
ctest_failed=0
run_ctest() {
  local folder=$1
  shift
  rm -f "$folder/tests.xml"
  ctest --test-dir "$folder" -j2 --output-on-failure --output-junit tests.xml \
    --test-output-size-passed 100000000 --test-output-size-failed 100000000 "$@" || ctest_failed=1
}

reports=()
if [ -n "${SAN:-}" ]; then
  BUILD_DIR=build-san scripts/build.sh unit_tests -DINFER_SANITIZE=address,undefined || failed_step "The build failed."
  run_ctest build-san -L unit
  reports+=("sanitized=build-san/tests.xml")
else
  scripts/build.sh all || failed_step "The build failed."
  run_ctest build
  reports+=("$(uname -m)=build/tests.xml")
  if [ "$(uname -m)" != aarch64 ]; then
    if scripts/install_deps.sh arm64; then
      BUILD_DIR=build-arm64 scripts/build.sh all -DINFER_CORE_ONLY=ON \
        -DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/aarch64-toolchain.cmake" || failed_step "The build for 64-bit Arm failed."
      run_ctest build-arm64
      reports+=("arm64=build-arm64/tests.xml")
    else
      reports+=("--skip" "arm64: no cross compiler or no emulator (scripts/install_deps.sh arm64)")
    fi
  fi
fi

status=0
python3 scripts/count_tests.py "${reports[@]}" || status=1
[ "$ctest_failed" = 0 ] || status=1
exit "$status"
