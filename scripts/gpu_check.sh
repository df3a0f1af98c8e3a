#!/usr/bin/env bash
# Tests a machine with a GPU: for each kind of accelerator (cuda, vulkan) runs the conformance and unit tests on it,
# models end to end, and the server's answers; then, for each device, prints tables of speeds as fractions of what the
# same device can do. Builds only what that needs. Needs nothing but the checkout, and about ten minutes on 16 cores.
# Every part has a limit of its own, and a part that fails or hangs does not keep the others from running; the last
# table lists all of them. Also runs on lavapipe and, with the programs named below, on the stand-in for CUDA.
#   usage: gpu_check.sh [DEVICE...]         default: all accelerators of `infer devices`
#          gpu_check.sh --copy-models       copies reference models from ../shared to build-shared, which git ignores, for
#                                           a copy of this checkout on another machine
# INFER_REQUIRE=cuda,vulkan: kinds that must be present (default: those of the devices); having none is always a
# failure. SECONDS_LIMIT=600: tables are cut short when the whole run has taken so long; TEST_SECONDS=300: the limit of
# each test. SHAPE=llama-3.1-8b: of the table of streams; MODEL=file.gguf or SHAPE:TYPE: the model for the table of
# layers (default: tinyllama-1.1b:Q4_K_M; on a software renderer the demo model); PROMPT, TOKENS, REPETITIONS: sizes of
# the measurement. INFER_TEST_MODELS=few: not every reference model, as on a software renderer; FULL=1: every case of all
# tests. INFER_BINARY and CONFORMANCE: programs that are tested instead of
# being built, such as build/bin/infer_cuda_stand_in and build/bin/conformance_cuda.
set -euo pipefail
cd "$(dirname "$0")/.."

shared=build-shared
if [ "${1:-}" = --copy-models ]; then
  [ -d ../shared/goldens/arch ] || { echo "gpu_check.sh: ../shared has no reference models" >&2; exit 1; }
  mkdir -p $shared/goldens/arch $shared/goldens/generate $shared/models
  find ../shared/goldens/arch -size -700k \( -name '*.gguf' -o -name '*.json' \) -exec cp -u {} $shared/goldens/arch/ \;
  cp -u ../shared/goldens/generate/*.json $shared/goldens/generate/
  cp -u ../shared/models/*.gguf $shared/models/
  echo "$(du -sh $shared | cut -f1) in $shared"
  exit 0
fi
[ -d ../shared/goldens ] || [ ! -d $shared/goldens ] || export INFER_SHARED=$PWD/$shared

[ -n "${INFER_BINARY:-}" ] || scripts/build.sh gpu_check_programs
export INFER_BINARY=${INFER_BINARY:-$PWD/build/infer}
conformance=${CONFORMANCE:-build/bin/conformance}
built=$SECONDS
limit=${SECONDS_LIMIT:-600} test_limit=${TEST_SECONDS:-300}
listed() { timeout 60 "$INFER_BINARY" devices "$@"; }
devices=("$@")
if [ $# = 0 ]; then
  mapfile -t devices < <(listed --json | python3 -c '
import json, sys
for device in json.load(sys.stdin)["devices"]:
    if device["name"] not in ("cpu", "ref"): print(device["name"])')
fi
kinds=$(printf '%s\n' "${devices[@]%%[0-9]*}" | sort -u | paste -sd, -)
export INFER_REQUIRE=${INFER_REQUIRE:-$kinds}
none() {
  echo "gpu_check.sh: infer devices lists no $1: $(listed | grep -m1 '^\[' ||
    echo "a driver is missing, or the program was built without the backend")" >&2
  exit 1
}
[ -n "$INFER_REQUIRE" ] || none accelerator
for kind in ${INFER_REQUIRE//,/ }; do
  [[ ,$kinds, = *,$kind,* ]] || none "$kind device"
done
listed
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv ||
    echo "gpu_check.sh: nvidia-smi failed, so the clocks and the power limit are not known"
fi
echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(nproc) cores, built in $built seconds"
[ -z "${FULL:-}" ] || export INFER_TEST_FULL=1
logs=build/gpu_check
rm -rf $logs
mkdir -p $logs

# From here on nothing ends the script: what fails is noted.
set +e
summary=()
failed=0
note() {  # NAME EXIT_CODE SECONDS COMMAND...
  local name=$1 code=$2 seconds=$3 verdict=ok
  shift 3
  case $code in
    0) ;;
    124 | 137) verdict="FAILED: not done in time" ;;
    skipped) verdict=skipped ;;
    *) verdict="FAILED: exit code $code" ;;
  esac
  summary+=("$(printf '%-28s %5s s  %s' "$name" "$seconds" "$verdict")")
  [[ $verdict != FAILED* ]] || { failed=$((failed + 1)); summary+=("    rerun: $*"); }
}

# Tests run side by side; each prints its log when all have ended.
names=()
commands=()
start() {  # NAME COMMAND...
  local name=$1
  shift
  names+=("$name")
  commands+=("$*")
  (
    begin=$SECONDS
    timeout --kill-after=10 "$test_limit" "$@"
    echo "$? $((SECONDS - begin))" >"$logs/$name.result"
  ) >"$logs/$name.log" 2>&1 </dev/null &
}
finish() {
  local i name code seconds
  wait
  for i in "${!names[@]}"; do
    name=${names[$i]} code=1 seconds=0
    read -r code seconds <"$logs/$name.result"
    note "$name" "$code" "$seconds" "${commands[$i]}"
    if [ "$code" = 0 ]; then
      echo "ok      $name: $(tail -n 1 "$logs/$name.log")"
    else
      echo "FAILED  $name ($code; all of it in $logs/$name.log)"
      tail -n 40 "$logs/$name.log"
    fi
  done
  names=() commands=()
}

# Reads and writes outside of allocations, races in shared memory, and wrong barriers.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
start_sanitizer() {
  local device=$1 tool
  for tool in memcheck racecheck synccheck; do
    start "sanitizer_$tool" "$sanitizer" --tool $tool --error-exitcode 9 "$INFER_BINARY" run -m tests/data/spm.gguf \
      -p 'once upon a time' -n 4 --temp 0 --device "$device" -ngl all
  done
}

# A device is a software renderer if a run without --device would not use it.
gpu=$(INFER_DEVICE='' timeout 60 "$INFER_BINARY" plan --shape tiny --json | python3 -c '
import json, sys
print(*[device["device"] for device in json.load(sys.stdin)["devices"]][1:])')
[ -z "$gpu" ] || export INFER_TEST_MODELS=${INFER_TEST_MODELS:-all}

# The models of a kind are divided among several processes: a process that opens a GPU takes most of a second.
shares=$(($(nproc) / 2 > 1 ? $(nproc) / 2 : 1))
for kind in ${INFER_REQUIRE//,/ }; do
  start "conformance_$kind" env INFER_DEVICES="$kind" "$conformance"
  [ ! -x "build/bin/unit_$kind" ] || start "unit_$kind" "build/bin/unit_$kind"
  for test in tests/e2e/"${kind}"_*test.py; do
    [ -e "$test" ] || continue
    name=$(basename "$test" .py)
    if [ "$name" != "${kind}_test" ]; then
      start "$name" python3 "$test"
      continue
    fi
    for share in $(seq "$shares"); do
      start "${name}_$share" env INFER_TEST_SHARE="$share/$shares" python3 "$test"
    done
  done
  start "same_answer_$kind" python3 tests/e2e/serve_same_answer_test.py \
    "with_half_of_the_layers_on_a_device_too.$kind" \
    "log_probabilities_on_a_device_do_not_depend_on_the_neighbours.$kind"
  first=$(printf '%s\n' "${devices[@]}" | grep -m1 "^$kind")
  if [ "$kind" = cuda ] && [ -n "$sanitizer" ]; then start_sanitizer "$first"
  elif [ "$kind" = cuda ]; then note compute-sanitizer skipped 0
  fi
done
finish

left() { echo $((limit > SECONDS ? limit - SECONDS : 0)); }
table() {  # NAME COMMAND...
  local name=$1 begin=$SECONDS
  shift
  if [ "$(left)" = 0 ]; then
    note "$name" skipped 0
    return
  fi
  echo "== $*"
  timeout --kill-after=10 $(($(left) + 30)) "$@" 2>&1 | tee "$logs/$name.log"
  note "$name" "${PIPESTATUS[0]}" $((SECONDS - begin)) "$@"
}
n_left=${#devices[@]}
for device in "${devices[@]}"; do
  model=models/infer-demo-5m-q8_0.gguf
  if [ -n "$gpu" ]; then
    model=tinyllama-1.1b:Q4_K_M
    table "streams_$device" python3 scripts/gpu_streams.py "$device" --shape "${SHAPE:-llama-3.1-8b}" \
      --seconds $(($(left) * 3 / 4 / n_left))
  fi
  table "layers_$device" python3 scripts/gpu_table.py "$device" "${MODEL:-$model}" --prompt "${PROMPT:-512}" \
    --tokens "${TOKENS:-64}" --repetitions "${REPETITIONS:-3}"
  n_left=$((n_left - 1))
done

echo "== all parts"
printf '%s\n' "${summary[@]}" | tee $logs/summary.txt
if [ $failed -gt 0 ]; then
  echo "gpu_check.sh: $failed parts failed in $SECONDS seconds" >&2
  exit 1
fi
echo "gpu check: all passed in $SECONDS seconds"
