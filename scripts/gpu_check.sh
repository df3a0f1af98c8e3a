#!/usr/bin/env bash
# Tests a machine with a GPU: for each kind of accelerator (cuda, vulkan) runs the conformance and unit tests on it,
# models end to end, and the server's answers; then, for each device, prints tables of speeds as fractions of what the
# same device can do. Builds only what that needs. Needs nothing but the checkout, and about ten minutes on 16 cores.
# Also runs on lavapipe.
#   usage: gpu_check.sh [DEVICE...]         default: all accelerators of `infer devices`
#          gpu_check.sh --copy-models       copies reference models from ../shared to build-shared, which git ignores, for
#                                           a copy of this checkout on another machine
# INFER_REQUIRE=cuda,vulkan: kinds that must be present (default: those of the devices); having none is always a
# failure. SECONDS_LIMIT=600: tables are cut short when the whole run has taken so long. MODEL=file.gguf or SHAPE:TYPE:
# the model for the table of layers (default: tinyllama-1.1b:Q4_K_M; on a software renderer the demo model); PROMPT,
# TOKENS, REPETITIONS: sizes of the measurement. FULL=1 runs every case of all tests.
set -euo pipefail
cd "$(dirname "$0")/.."

shared=build-shared
if [ "${1:-}" = --copy-models ]; then
  [ -d ../shared/goldens/arch ] || { echo "gpu_check.sh: ../shared has no reference models" >&2; exit 1; }
  mkdir -p $shared/goldens/arch
  find ../shared/goldens/arch -size -700k \( -name '*.gguf' -o -name '*.json' \) -exec cp -u {} $shared/goldens/arch/ \;
  echo "$(du -sh $shared | cut -f1) in $shared"
  exit 0
fi
[ -d ../shared/goldens ] || [ ! -d $shared/goldens ] || export INFER_SHARED=$PWD/$shared

scripts/build.sh infer
devices=("$@")
if [ $# = 0 ]; then
  mapfile -t devices < <(build/infer devices --json | python3 -c '
import json, sys
for device in json.load(sys.stdin)["devices"]:
    if device["name"] not in ("cpu", "ref"): print(device["name"])')
fi
kinds=$(printf '%s\n' "${devices[@]%%[0-9]*}" | sort -u | paste -sd, -)
export INFER_REQUIRE=${INFER_REQUIRE:-$kinds}
none() {
  echo "gpu_check.sh: infer devices lists no $1: $(build/infer devices | grep -m1 '^\[' ||
    echo "a driver is missing, or the program was built without the backend")" >&2
  exit 1
}
[ -n "$INFER_REQUIRE" ] || none accelerator
for kind in ${INFER_REQUIRE//,/ }; do
  [[ ,$kinds, = *,$kind,* ]] || none "$kind device"
done
build/infer devices
scripts/build.sh gpu_check_programs
[ -z "${FULL:-}" ] || export INFER_TEST_FULL=1
logs=build/gpu_check
mkdir -p $logs

# Tests run side by side; each prints its log when all have ended. Failures are listed at the end.
failed=()
names=()
pids=()
start() {
  local name=$1
  shift
  "$@" >"$logs/$name.log" 2>&1 &
  names+=("$name: $*")
  pids+=($!)
}
finish() {
  local i name
  for i in "${!pids[@]}"; do
    name=${names[$i]%%:*}
    if wait "${pids[$i]}"; then
      echo "ok      $name: $(tail -n 1 "$logs/$name.log")"
    else
      failed+=("${names[$i]}")
      echo "FAILED  $name (rerun: ${names[$i]#*: })"
      tail -n 40 "$logs/$name.log"
    fi
  done
  names=() pids=()
}

# Reads and writes outside of allocations, races in shared memory, and wrong barriers.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
start_sanitizer() {
  local device=$1 tool
  for tool in memcheck racecheck synccheck; do
    start "sanitizer_$tool" "$sanitizer" --tool $tool --error-exitcode 9 build/infer run -m tests/data/spm.gguf \
      -p 'once upon a time' -n 4 --temp 0 --device "$device" -ngl all
  done
}

for kind in ${INFER_REQUIRE//,/ }; do
  start "conformance_$kind" env INFER_DEVICES="$kind" build/bin/conformance
  [ ! -x "build/bin/unit_$kind" ] || start "unit_$kind" "build/bin/unit_$kind"
  for test in tests/e2e/"${kind}"_*test.py; do
    [ ! -e "$test" ] || start "$(basename "$test" .py)" python3 "$test"
  done
  start "same_answer_$kind" python3 tests/e2e/serve_same_answer_test.py \
    "with_half_of_the_layers_on_a_device_too.$kind" \
    "log_probabilities_on_a_device_do_not_depend_on_the_neighbours.$kind"
  first=$(printf '%s\n' "${devices[@]}" | grep -m1 "^$kind")
  if [ "$kind" = cuda ] && [ -n "$sanitizer" ]; then start_sanitizer "$first"
  elif [ "$kind" = cuda ]; then echo "skipped: compute-sanitizer (not installed)"
  fi
done
finish

limit=${SECONDS_LIMIT:-600}
left() { echo $((limit > SECONDS ? limit - SECONDS : 0)); }
table() {
  echo "== $*"
  "$@" || failed+=("$*")
}
# A device is a software renderer if a run without --device would not use it.
gpu=$(INFER_DEVICE='' build/infer plan --shape tiny --json | python3 -c '
import json, sys
print(*[device["device"] for device in json.load(sys.stdin)["devices"]][1:])')
for device in "${devices[@]}"; do
  model=models/infer-demo-5m-q8_0.gguf
  if [ -n "$gpu" ]; then
    model=tinyllama-1.1b:Q4_K_M
    table python3 scripts/gpu_streams.py "$device" --seconds $(($(left) / ${#devices[@]}))
  fi
  if [ "$(left)" = 0 ]; then
    echo "skipped: the table of layers on $device: the run has taken $limit seconds (SECONDS_LIMIT)"
    continue
  fi
  table python3 scripts/gpu_table.py "$device" "${MODEL:-$model}" --prompt "${PROMPT:-512}" --tokens "${TOKENS:-64}" \
    --repetitions "${REPETITIONS:-3}"
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'gpu_check.sh: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "gpu check: all passed in $SECONDS seconds"
