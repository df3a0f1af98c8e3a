#!/usr/bin/env bash
# Runs the conformance and unit tests of the Vulkan backend under the Khronos validation layer, with synchronization
# validation, which must have nothing to say. Uses the build of the tests in $BUILD_DIR (default build).
#   usage: vulkan_validation.sh [TEST_CASE...]      names of doctest cases of tests/conformance; default: all
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh build test vulkan
folder=${BUILD_DIR:-build}
[ -x "$folder/bin/conformance" ] && [ -x "$folder/bin/unit_vulkan" ] || scripts/build.sh all

log=$(mktemp)
settings=$(mktemp -d)
trap 'rm -rf "$log" "$settings"' EXIT
cat >"$settings/vk_layer_settings.txt" <<ROWS
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = $log
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
ROWS
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_SETTINGS_PATH=$settings
export INFER_REQUIRE=vulkan INFER_DEVICES=vulkan

status=0
for name in "${@:-*}"; do
  "$folder/bin/conformance" -tc="$name" || status=1
done
[ $# -gt 0 ] || "$folder/bin/unit_vulkan" || status=1
# What the layer says of its own version, or of a driver's, is no finding.
findings=$(grep -cE "Validation (Error|Warning)|SYNC-|VUID-" "$log" || true)
if [ "$findings" != 0 ]; then
  head -c 20000 "$log" >&2
  echo "vulkan_validation.sh: the validation layer reported $findings lines" >&2
  exit 1
fi
[ "$status" = 0 ] || exit 1
echo "validation: nothing reported"
