#!/usr/bin/env bash
# Builds everything in Release mode and runs the tests. The last line of output is `N passed, N failed, N skipped`; the
# exit code is 0 only if tests ran and none failed.
#   usage: run_tests.sh [--full | --arm64]
# --full: every conformance case instead of the fixed subset (INFER_TEST_FULL=1)
# --arm64: the core (ggml-like and the CPU backend) cross-compiled for 64-bit Arm, under emulation
# SAN=1: only the unit tests, built with the address and undefined-behaviour sanitizers in build-san
set -euo pipefail
cd "$(dirname "$0")/.."

part=native
[ -z "${SAN:-}" ] || part=sanitized
case ${1:-} in
  "") ;;
  --full) export INFER_TEST_FULL=1 ;;
  --arm64) part=arm64 ;;
  *) echo "usage: run_tests.sh [--full | --arm64]" >&2; exit 2 ;;
esac
machine=$(uname -m)

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

case $part in
  native)
    scripts/build.sh all || failed_step "The build failed."
    run_ctest build
    report="$machine=build/tests.xml"
    ;;
  sanitized)
    BUILD_DIR=build-san scripts/build.sh unit_tests -DINFER_SANITIZE=address,undefined ||
      failed_step "The build failed."
    run_ctest build-san -L unit
    report="sanitized=build-san/tests.xml"
    ;;
  arm64)
    [ "$machine" != aarch64 ] || failed_step "This machine is a 64-bit Arm: make test runs these tests natively."
    scripts/install_deps.sh arm64 || failed_step "The cross compiler or the emulator could not be installed."
    BUILD_DIR=build-arm64 scripts/build.sh all -DINFER_CORE_ONLY=ON \
      -DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/aarch64-toolchain.cmake" || failed_step "The build for 64-bit Arm failed."
    run_ctest build-arm64
    report="arm64=build-arm64/tests.xml"
    ;;
esac

status=0
python3 scripts/count_tests.py "$report" || status=1
[ "$ctest_failed" = 0 ] || status=1
exit "$status"
