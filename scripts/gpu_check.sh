#!/usr/bin/env bash
# Tests a machine with a GPU: for each kind of accelerator (vulkan, cuda) runs the conformance and unit tests on it and
# models end to end, then prints for each device a table of speeds with none, half and all of the layers on it. Also
# runs on lavapipe.
#   usage: gpu_check.sh [DEVICE...]      default: all accelerators of `infer devices`
# INFER_REQUIRE=cuda,vulkan: kinds that must be present (default: those of the devices); having none is always a
# failure. MODEL=file.gguf or SHAPE:TYPE: the model for the table (default: tinyllama-1.1b:Q4_K_M; on a software
# renderer the demo model); PROMPT, TOKENS, REPETITIONS: sizes of the measurement. FULL=1 runs every case of all tests.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh all
build/infer devices --ops
devices=("$@")
if [ $# = 0 ]; then
  mapfile -t devices < <(build/infer devices --json | python3 -c '
import json, sys
for device in json.load(sys.stdin)["devices"]:
    if device["name"] not in ("cpu", "ref"): print(device["name"])')
fi
kinds=$(printf '%s\n' "${devices[@]%%[0-9]*}" | sort -u | paste -sd, -)
export INFER_REQUIRE=${INFER_REQUIRE:-$kinds}
if [ -z "$INFER_REQUIRE" ]; then
  echo "gpu_check.sh: infer devices lists no accelerator (a driver, or the backend, is missing)" >&2
  exit 1
fi
[ -z "${FULL:-}" ] || export INFER_TEST_FULL=1

# Runs everything; failures are listed at the end.
failed=()
step() {
  echo "== $*"
  "$@" || failed+=("$*")
}
for kind in ${INFER_REQUIRE//,/ }; do
  step env INFER_DEVICES="$kind" build/bin/conformance
  [ ! -x "build/bin/unit_$kind" ] || step "build/bin/unit_$kind"
  for test in tests/e2e/"${kind}"_*test.py; do
    [ ! -e "$test" ] || step python3 "$test"
  done
  for test in $(grep -oE "^def \w*_${kind}_\w*\(\)" tests/e2e/serve_same_answer_test.py | sed 's/def //; s/()//'); do
    step python3 tests/e2e/serve_same_answer_test.py "$test"
  done
done

# A device is a software renderer if a run without --device would not use it.
gpu=$(INFER_DEVICE='' build/infer plan --shape tiny --json | python3 -c '
import json, sys
print(*[device["device"] for device in json.load(sys.stdin)["devices"]][1:])')
for device in "${devices[@]}"; do
  model=models/infer-demo-5m-q8_0.gguf
  [ -z "$gpu" ] || model=tinyllama-1.1b:Q4_K_M
  step python3 scripts/gpu_table.py "$device" "${MODEL:-$model}" --prompt "${PROMPT:-512}" --tokens "${TOKENS:-64}" \
    --repetitions "${REPETITIONS:-3}"
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'gpu_check.sh: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "gpu check: all passed"
