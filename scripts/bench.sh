#!/usr/bin/env bash
# Builds the program and measures it: prompt and generation speed on one and on all cores, three rounds interleaved. Each
# line gives the rate at which weights were read and, for comparison, the read bandwidth measured in the same run.
# The model is $MODEL, else one with random weights in the shape of TinyLlama 1.1B, Q4_K_M (needs 700 MB in build).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh infer
scripts/build.sh make_random_model
model=${MODEL:-}
if [ -z "$model" ]; then
  model=build/tinyllama-1.1b-Q4_K_M.gguf
  [ -e "$model" ] || build/bin/make_random_model tinyllama-1.1b Q4_K_M "$model"
fi
cores=$(nproc)
prompt=$(printf 'one two three %.0s' {1..12})
for round in 1 2 3; do
  for threads in 1 $([ "$cores" = 1 ] || echo "$cores"); do
    printf 'round %s, %s thread(s): ' "$round" "$threads"
    build/infer run -m "$model" --raw -p "$prompt" -n 32 --temp 0 --ignore-eos --stats -t "$threads" 2>&1 >/dev/null </dev/null | tail -n 1
  done
done
