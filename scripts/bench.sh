#!/usr/bin/env bash
# Builds the program and measures the model of $MODEL on this machine; $ARGS is passed on (see `infer bench --help`).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh infer
arguments=()
[ -z "${MODEL:-}" ] || arguments+=(-m "$MODEL")
[ -z "${ARGS:-}" ] || eval "arguments+=($ARGS)"  # as the shell splits words
if [ ${#arguments[@]} = 0 ]; then
  echo 'usage: make bench MODEL=file.gguf [ARGS="..."]' >&2
  exit 2
fi
exec build/infer bench "${arguments[@]}"
