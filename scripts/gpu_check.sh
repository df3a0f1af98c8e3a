#!/usr/bin/env bash
# What to run on a machine with a GPU: the conformance tests on it, models end to end, and a table of speeds with none,
# half and all of the layers on it. A backend that is built but finds no device is a failure. Runs on lavapipe as well.
#   usage: gpu_check.sh [DEVICE]      default: the first accelerator of `infer devices`
# MODEL=file.gguf is what the table is measured with (default: models/'s target); FULL=1 takes every conformance case.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh all
device=${1:-}
if [ -z "$device" ]; then
  device=$(build/infer devices --json | python3 -c '
import json, sys
names = [d["name"] for d in json.load(sys.stdin)["devices"] if d["name"] not in ("cpu", "ref")]
print(names[0] if names else "")')
fi
if [ -z "$device" ]; then
  echo "gpu_check.sh: infer devices lists no accelerator (a driver, or the backend, is missing)" >&2
  exit 1
fi
build/infer devices --ops
kind=${device%%[0-9]*}

echo "== Conformance on $kind"
export INFER_REQUIRE=$kind
[ -z "${FULL:-}" ] || export INFER_TEST_FULL=1
INFER_DEVICES=$kind build/bin/conformance
[ ! -x "build/bin/unit_$kind" ] || "build/bin/unit_$kind"

echo "== Models end to end on $kind"
python3 "tests/e2e/${kind}_test.py"

echo "== Speed on $device"
python3 scripts/gpu_table.py "$device" "${MODEL:-models/infer-demo-5m-q8_0.gguf}"
