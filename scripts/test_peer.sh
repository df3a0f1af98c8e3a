#!/usr/bin/env bash
# Builds the program and compares it with other programs of the field, taken from npm: see tests/peer. They are
# installed in build/peer. The last line of the output is `N passed, N failed, N skipped`; the exit code is 0 only when
# tests ran and none failed.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null || { echo "The peer tests need Node.js 20 or later and npm."; exit 1; }
scripts/build.sh infer

# npm wants the tests beside the packages they import.
folder=build/peer
mkdir -p "$folder"
cp tests/peer/package.json tests/peer/*.mjs "$folder/"
# llama.cpp's packages for every system and GPU weigh 700 MB; the one for this processor is enough.
version=$(node -p 'require("./tests/peer/package.json").dependencies["node-llama-cpp"]')
platform=linux-$(node -p process.arch)
npm --prefix "$folder" install --no-package-lock --no-save --no-audit --no-fund --ignore-scripts --omit=optional \
  --loglevel=error "@node-llama-cpp/$platform@$version"

counts=(0 0 0)
for test in "$folder"/*_test.mjs; do
  status=0
  output=$(INFER_SOURCE_DIR="$PWD" INFER_BINARY="$PWD/build/infer" node "$test") || status=$?
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
