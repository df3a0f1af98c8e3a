#!/usr/bin/env bash
# Runs the conformance and unit tests of the Vulkan backend under the Khronos validation layer, with synchronization
# validation, and fails on any report. Deliberate mistakes run first, which the layer must report. Uses the tests built
# in $BUILD_DIR (default build).
#   usage: vulkan_validation.sh [TEST_CASE...]      names of doctest cases of tests/conformance; default: all
# INFER_TEST_FULL=1 runs every conformance case instead of the fixed subset.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh build test vulkan
folder=${BUILD_DIR:-build}
BUILD_DIR=$folder scripts/build.sh all

settings=$(mktemp -d)
trap 'rm -rf "$settings"' EXIT
log=$settings/log
cat >"$settings/vk_layer_settings.txt" <<ROWS
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = $log
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
ROWS
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_SETTINGS_PATH=$settings
export INFER_REQUIRE=vulkan INFER_DEVICES=vulkan

# What the layer says about its own version, or a driver's, is not a finding.
findings() { grep -cE "Validation (Error|Warning)|SYNC-|VUID-" "$log" 2>/dev/null || true; }

# checked WHAT COMMAND...: prints one line per run, with its findings and failures, followed by the layer's messages.
status=0
checked() {
  local what=$1 start=$SECONDS found result=passed
  shift
  rm -f "$log"
  "$@" >"$settings/output" 2>&1 || result=failed
  found=$(findings)
  printf '%-40s %s, %s findings, %d s\n' "$what" "$result" "${found:-0}" $((SECONDS - start))
  [ "$result" = passed ] || tail -n 30 "$settings/output" >&2
  [ "${found:-0}" = 0 ] || head -c 20000 "$log" >&2
  [ "$result" = passed ] && [ "${found:-0}" = 0 ] || status=1
}

# must_report PATTERN TEST_CASE: a mistake that the layer must find.
must_report() {
  rm -f "$log"
  # The exit code does not matter: these mistakes are deliberate, and only the layer's reports count.
  "$folder/bin/unit_vulkan" -tc="$2" --no-skip >"$settings/output" 2>&1 || true
  if ! grep -q "$1" "$log" 2>/dev/null; then
    echo "vulkan_validation.sh: the layer did not report $1 in \"$2\": is it installed?" >&2
    cat "$settings/output" >&2
    exit 1
  fi
  echo "$1 was reported ($2)"
}
must_report SYNC-HAZARD "control: a race*"
must_report VUID- "control: a binding*"
must_report VUID-vkDestroyDevice "control: memory*"

mapfile -t operations < <("$folder/bin/conformance" -ltc --no-colors | grep -xE '[a-z_]+')
[ ${#operations[@]} -gt 0 ] || { echo "vulkan_validation.sh: conformance lists no operations" >&2; exit 1; }
for operation in "${@:-${operations[@]}}"; do
  checked "$operation" "$folder/bin/conformance" -tc="$operation"
done
if [ $# = 0 ]; then
  # Matmul shaders that a software device does not choose by itself.
  INFER_VULKAN_KERNELS=dot,matrix-emulated checked "products, other shaders" \
    "$folder/bin/conformance" -tc=matmul,matmul_experts
  checked "unit tests" "$folder/bin/unit_vulkan"
  # Whole models: many operations in one recording, and borders between devices. Also with transfers through staging
  # memory, as on a GPU with its own memory; the tests' layer simulates that on any device.
  demo=models/infer-demo-5m-q8_0.gguf
  for model in "$demo" tests/data/arch/*.gguf; do
    for layers in all 2; do
      checked "$(basename "$model") -ngl $layers" "$folder/infer" run -m "$model" --device vulkan0 -ngl $layers \
        --raw -p "Once upon a time there was a" -n 4 --temp 0
    done
  done
  export VK_LAYER_PATH=$folder/layers:/usr/share/vulkan/explicit_layer.d INFER_FAULTS_TYPE=discrete
  VK_INSTANCE_LAYERS+=:VK_LAYER_INFER_faults
  checked "own memory" "$folder/infer" run -m "$demo" --raw -p "Once upon a time" -n 4 --temp 0
  checked "own memory, half" "$folder/infer" run -m "$demo" --raw -p "Once upon a time" -n 4 --temp 0 -ngl 4
  # After a failed allocation, everything created before must be released.
  for call in $(seq 2 10 152); do
    INFER_FAULTS_MEMORY=$call checked "call $call finds no memory" \
      bash -c '"$@" || [ $? = 1 ]' - "$folder/infer" run -m tests/data/spm.gguf -p "once upon" -n 3 --temp 0
  done
fi
[ "$status" = 0 ] || exit 1
echo "validation: nothing reported"
