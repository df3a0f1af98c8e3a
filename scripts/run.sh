#!/usr/bin/env bash
# Builds the program and starts it: with the model of $MODEL, else with the first one under models/, else it shows
# what the program and this machine can do. $ARGS is passed on.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh infer
model=${MODEL:-}
if [ -z "$model" ]; then
  for file in models/*.gguf; do
    [ ! -e "$file" ] || { model=$file; break; }
  done
fi
arguments=()
[ -z "${ARGS:-}" ] || eval "arguments=($ARGS)"  # as the shell splits words, so that a quoted prompt stays one
if [ -n "$model" ]; then
  exec build/infer run -m "$model" "${arguments[@]}"
fi
build/infer --help
echo
build/infer devices
echo
echo "No model was given. To run a GGUF file: make run MODEL=path/to/file.gguf"
