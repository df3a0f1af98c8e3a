#!/usr/bin/env bash
# What to run on a machine with a GPU: for each kind of accelerator (vulkan, cuda) the conformance and unit tests on it
# and models end to end, then for each device a table of speeds with none, half and all of the layers on it. Runs on
# lavapipe as well.
#   usage: gpu_check.sh [DEVICE...]      default: all accelerators of `infer devices`
# INFER_REQUIRE=cuda,vulkan: kinds that must be there (default: those of the devices); none at all is always a failure.
# MODEL=file.gguf or SHAPE:TYPE is what the table is measured with (default: tinyllama-1.1b:Q4_K_M, on a processor that
# plays a GPU the demo model); PROMPT, TOKENS, REPETITIONS: how much of it. FULL=1 takes every case of all tests.
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

# Everything is run; what failed is said at the end.
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

# Whether a device plays a GPU is known by what a run without --device would take.
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
