#!/usr/bin/env bash
# Runs the conformance and unit tests of the Vulkan backend under the Khronos validation layer, with synchronization
# validation, which must have nothing to say; and mistakes on purpose first, which it must report. Uses the build of the
# tests in $BUILD_DIR (default build).
#   usage: vulkan_validation.sh [TEST_CASE...]      names of doctest cases of tests/conformance; default: all
# INFER_TEST_FULL=1 takes every conformance case instead of the fixed subset.
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

# What the layer says of its own version, or of a driver's, is no finding.
findings() { grep -cE "Validation (Error|Warning)|SYNC-|VUID-" "$log" 2>/dev/null || true; }

# checked WHAT COMMAND...: one line on a run, its findings and its failures; the layer's words behind it.
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

# must_report PATTERN TEST_CASE: a mistake that the layer has to find.
must_report() {
  rm -f "$log"
  # However it ends: these are mistakes on purpose, and what counts is what the layer wrote of them.
  "$folder/bin/unit_vulkan" -tc="$2" --no-skip >"$settings/output" 2>&1 || true
  if ! grep -q "$1" "$log" 2>/dev/null; then
    echo "vulkan_validation.sh: the layer did not report $1 in \"$2\": is it installed?" >&2
    cat "$settings/output" >&2
    exit 1
  fi
  echo "seen to report $1 ($2)"
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
  # The shaders of products that a software device does not take by itself.
  INFER_VULKAN_KERNELS=dot,matrix-emulated checked "products, other shaders" \
    "$folder/bin/conformance" -tc=matmul,matmul_experts
  checked "unit tests" "$folder/bin/unit_vulkan"
  # Whole models: many operations in one recording, borders between devices; and with transfers by staging, as on a GPU
  # with memory of its own, which the layer of the tests makes of any device.
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
  # Where a call finds no memory, what was made before must be given back.
  for call in $(seq 2 10 152); do
    INFER_FAULTS_MEMORY=$call checked "call $call finds no memory" \
      bash -c '"$@" || [ $? = 1 ]' - "$folder/infer" run -m tests/data/spm.gguf -p "once upon" -n 3 --temp 0
  done
fi
[ "$status" = 0 ] || exit 1
echo "validation: nothing reported"
