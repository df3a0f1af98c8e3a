#!/usr/bin/env bash
# Runs the whole program under the address and undefined-behaviour sanitizers with the Vulkan backend: chat, bench,
# server, devices and plan, with all and half of the layers on vulkan0. Builds in build-san as `SAN=1 make test` does.
#   usage: vulkan_sanitize.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh build vulkan
folder=${BUILD_DIR:-build-san}
BUILD_DIR=$folder scripts/build.sh infer -DINFER_SANITIZE=address,undefined

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 INFER_BINARY=$folder/infer

status=0
# clean COMMAND...: prints one line per run, followed by the sanitizers' reports.
clean() {
  local result=clean
  "$@" >"$work/output" 2>&1 </dev/null || result="exit code $?"
  if grep -qE "runtime error|ERROR: (Address|Leak)Sanitizer" "$work/output"; then result=FINDINGS; fi
  printf '%-80s %s\n' "$(printf '%s ' "${@:2}" | cut -c1-78)" "$result"
  [ "$result" = clean ] || { status=1; head -c 20000 "$work/output" >&2; }
}
# First a deliberate leak: if it is not reported (as in a debugger), nothing below proves anything.
echo 'int main() { volatile char* p = new char[7]; p = nullptr; }' | c++ -x c++ -fsanitize=address -o "$work/leak" -
if "$work/leak" >"$work/output" 2>&1 || ! grep -q "LeakSanitizer" "$work/output"; then
  echo "vulkan_sanitize.sh: a deliberate leak was not reported" >&2
  exit 1
fi
echo "a deliberate leak was reported"
demo=models/infer-demo-5m-q8_0.gguf
clean "$folder/infer" devices --ops
for layers in all 4; do
  device=(--device vulkan0 -ngl "$layers")
  clean "$folder/infer" plan -m "$demo" "${device[@]}" -c 256
  clean "$folder/infer" run -m "$demo" "${device[@]}" -p "Where is Lindale?" -n 6 --temp 0
  clean "$folder/infer" bench -m "$demo" "${device[@]}" -p 16 -n 4
  for model in tests/data/arch/*.gguf; do
    parts=$layers
    [ "$layers" = all ] || parts=2
    clean "$folder/infer" run -m "$model" --device vulkan0 -ngl "$parts" --raw -p "Once upon a time" -n 4 --temp 0
  done
done
clean python3 tests/e2e/serve_same_answer_test.py log_probabilities_on_a_vulkan_device_do_not_depend_on_the_neighbours
[ "$status" = 0 ] || exit 1
echo "sanitizers: nothing reported"
