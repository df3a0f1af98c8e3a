#!/usr/bin/env bash
# Builds the program and compares it with other LLM programs from npm, installed in build/peer: see tests/peer. The last
# line of output is `N passed, N failed, N skipped`; the exit code is 0 only if tests ran and none failed.
set -euo pipefail
cd "$(dirname "$0")/.."
# The other programs compute on the CPU, and so does this one, even if there is a GPU.
export INFER_DEVICE=cpu

scripts/build.sh infer
scripts/install_peer.sh
folder=build/peer

counts=(0 0 0)
for test in "$folder"/*_test.mjs; do
  status=0
  output=$(INFER_SOURCE_DIR="$PWD" INFER_BINARY="$PWD/build/infer" "$folder/node" "$test") || status=$?
  echo "$output"
  line=$(tail -n 1 <<<"$output")
  if [[ $line =~ ^[^\ ]+:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    for i in 0 1 2; do counts[i]=$((counts[i] + BASH_REMATCH[i + 1])); done
    if [ "$status" != 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then
      echo "$(basename "$test"): ended with exit code $status although no test failed"
      counts[1]=$((counts[1] + 1))
    fi
  else
    echo "$(basename "$test"): ended without a count of its tests"
    counts[1]=$((counts[1] + 1))
  fi
done
echo "${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped"
[ "${counts[0]}" -gt 0 ] && [ "${counts[1]}" -eq 0 ]
